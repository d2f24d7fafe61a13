"""Behaviour tables of the game, from assets/doom/*.csv to the arrays of the packed blob.

Rows are numbered as in DeHackEd; in the files rows refer to each other by name.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from ofa_tui import locations
from ofa_tui.doom import layout
from ofa_tui.errors import OfaError

LINE_SPECIALS, SECTOR_SPECIALS = 142, 18
FIXED = 1 << 16

# Enumerators of cuda/doom/blob.h, in order.
TRIGGERS = ("NONE", "CROSS", "SWITCH", "DOOR", "SHOOT", "ALWAYS")
KINDS = ("NONE", "DOOR", "FLOOR", "CEILING", "PLAT", "STAIRS", "DONUT", "LIGHT", "TELEPORT", "EXIT", "SECRET_EXIT",
         "STOP_PLAT", "STOP_CEILING", "SCROLL")
VARIANTS = (
    "NONE", "DOOR_NORMAL", "DOOR_CLOSE_30_OPEN", "DOOR_CLOSE", "DOOR_OPEN", "DOOR_RAISE_IN_5_MINUTES",
    "DOOR_BLAZE_NORMAL", "DOOR_BLAZE_OPEN", "DOOR_BLAZE_CLOSE",
    "FLOOR_LOWER", "FLOOR_LOWER_TO_LOWEST", "FLOOR_TURBO_LOWER", "FLOOR_RAISE", "FLOOR_RAISE_TO_NEAREST",
    "FLOOR_RAISE_TO_TEXTURE", "FLOOR_LOWER_AND_CHANGE", "FLOOR_RAISE_24", "FLOOR_RAISE_24_AND_CHANGE",
    "FLOOR_RAISE_CRUSH", "FLOOR_RAISE_TURBO", "FLOOR_DONUT_RAISE", "FLOOR_RAISE_512",
    "CEILING_LOWER_TO_FLOOR", "CEILING_RAISE_TO_HIGHEST", "CEILING_LOWER_AND_CRUSH", "CEILING_CRUSH_AND_RAISE",
    "CEILING_FAST_CRUSH", "CEILING_SILENT_CRUSH", "CEILING_RAISE_AND_FLOOR_LOWER",
    "PLAT_PERPETUAL", "PLAT_DOWN_WAIT_UP", "PLAT_RAISE_AND_CHANGE", "PLAT_RAISE_TO_NEAREST_AND_CHANGE", "PLAT_BLAZE",
    "STAIRS_8", "STAIRS_16_TURBO", "LIGHT_SET", "LIGHT_MAX_NEIGHBOUR", "LIGHT_STROBE", "LIGHT_MIN_NEIGHBOUR",
)
MONSTERS = ("NO", "TOO", "ONLY")
KEYS = ("-", "BLUE", "YELLOW", "RED")
SECTOR_KINDS = ("NONE", "FLICKER", "STROBE", "GLOW", "FIRE_FLICKER", "DOOR_CLOSE_30", "DOOR_RAISE_5_MINUTES")
AMMO = ("BULLETS", "SHELLS", "CELLS", "ROCKETS")
_NO_AMMO = 5

FLAGS = (
    "SPECIAL", "SOLID", "SHOOTABLE", "NOSECTOR", "NOBLOCKMAP", "AMBUSH", "JUSTHIT", "JUSTATTACKED", "SPAWNCEILING",
    "NOGRAVITY", "DROPOFF", "PICKUP", "NOCLIP", "SLIDE", "FLOAT", "TELEPORT", "MISSILE", "DROPPED", "SHADOW", "NOBLOOD",
    "CORPSE", "INFLOAT", "COUNTKILL", "COUNTITEM", "SKULLFLY", "NOTDMATCH",
)
"""Flag words of a thing; number i is bit i of DeHackEd's "Bits"."""


@dataclass(frozen=True)
class AnimationRow:
    is_texture: bool
    first: str
    last: str
    tics: int


@dataclass(frozen=True)
class SwitchRow:
    off: str
    on: str
    doom2_only: bool


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """Rows of assets/doom/`name`.csv as strings by column; lines that begin with # are comments.

    Raises OfaError when the file is missing: the installation is incomplete.
    """
    path = locations.assets() / "doom" / f"{name}.csv"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise OfaError(f"The installation lacks {path}; install ofa-tui again.") from error
    return tuple(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@cache
def numbers(name: str) -> Mapping[str, int]:
    """Row number by the column `name` of an indexed table (states, things, sprites, sounds, weapons)."""
    table = rows(name)
    if [int(row["index"]) for row in table] != list(range(len(table))):
        raise OfaError(f"assets/doom/{name}.csv is not numbered from 0 upwards; restore it.")
    return {row["name"]: number for number, row in enumerate(table)}


@cache
def actions() -> tuple[str, ...]:
    """Code pointers in the order in which states first use them; 0 is "-", none."""
    return tuple(dict.fromkeys(["-", *(row["action"] for row in rows("states"))]))


def sprite_names() -> list[str]:
    return list(numbers("sprites"))


def types_by_number() -> dict[int, int]:
    """Thing type by editor number. The original takes the first type with that number."""
    found: dict[int, int] = {}
    for index, row in enumerate(rows("things")):
        if int(row["number"]) > 0:
            found.setdefault(int(row["number"]), index)
    return found


def animations() -> list[AnimationRow]:
    return [
        AnimationRow(row["is_texture"] == "1", row["first"], row["last"], int(row["tics"]))
        for row in rows("animations")
    ]


def switches() -> list[SwitchRow]:
    return [SwitchRow(row["off"], row["on"], row["doom2_only"] == "1") for row in rows("switches")]


@cache
def behaviour_tables() -> Mapping[str, np.ndarray]:
    """Arrays of the blob by their name in WadBlob."""
    return {
        "states": states(), "thing_types": thing_types(), "weapons": weapons(), "line_specials": line_specials(),
        "sector_specials": sector_specials(),
        "random": np.array([int(row["value"]) for row in rows("random")], np.uint8),
    }


def states() -> np.ndarray:
    """STATE [967]."""
    sprites, by_name = numbers("sprites"), numbers("states")
    action = {name: number for number, name in enumerate(actions())}
    return np.array([
        (sprites[row["sprite"]], ord(row["frame"]) - ord("A"), int(row["bright"]), action[row["action"]],
         int(row["tics"]), by_name[row["next"]])
        for row in rows("states")
    ], layout.STATE)


def thing_types() -> np.ndarray:
    """THING_TYPE [137]."""
    by_state, by_sound = numbers("states"), numbers("sounds")
    table = np.zeros(len(rows("things")), layout.THING_TYPE)
    for index, row in enumerate(rows("things")):
        for field in layout.THING_TYPE.names or ():
            value = row[field]
            if field.endswith("_state"):
                table[field][index] = by_state[value]
            elif field.endswith("_sound"):
                table[field][index] = by_sound[value]
            elif field == "flags":
                table[field][index] = sum(1 << FLAGS.index(word) for word in value.split("|") if word != "-")
            else:
                table[field][index] = int(value) * (FIXED if field in ("radius", "height") else 1)
    return table


def weapons() -> np.ndarray:
    """WEAPON_TYPE [9]."""
    by_state = numbers("states")
    return np.array([
        (_NO_AMMO if row["ammo"] == "-" else AMMO.index(row["ammo"]), by_state[row["up_state"]],
         by_state[row["down_state"]], by_state[row["ready_state"]], by_state[row["attack_state"]],
         by_state[row["flash_state"]], int(row["ammo_per_shot"]))
        for row in rows("weapons")
    ], layout.WEAPON_TYPE)


def line_specials() -> np.ndarray:
    """LINE_SPECIAL [142], by special number."""
    table = np.zeros(LINE_SPECIALS, layout.LINE_SPECIAL)
    for row in rows("line_specials"):
        table[int(row["number"])] = (
            TRIGGERS.index(row["trigger"]), KINDS.index(row["kind"]), VARIANTS.index(row["variant"]),
            int(row["repeats"]), MONSTERS.index(row["monsters"]), KEYS.index(row["key"]), (0, 0), int(row["argument"]),
        )
    return table


def sector_specials() -> np.ndarray:
    """SECTOR_SPECIAL [18], by special number."""
    table = np.zeros(SECTOR_SPECIALS, layout.SECTOR_SPECIAL)
    for row in rows("sector_specials"):
        table[int(row["number"])] = (
            SECTOR_KINDS.index(row["kind"]),
            *(int(row[field]) for field in ("damage", "leaks", "secret", "ends_level", "synchronous", "dark_tics")), 0,
        )
    return table
