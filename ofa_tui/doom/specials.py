"""What the lines of a level can do for a player on the way: sectors they move, exits, teleporters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui.doom import tables
from ofa_tui.doom.levels import LevelData

USES = {"CROSS": 0, "SWITCH": 1, "DOOR": 1, "SHOOT": 2}
"""NavUse of blob.h for each trigger."""

_HELPFUL = {"DOOR", "FLOOR", "PLAT", "STAIRS", "DONUT"}
_UNHELPFUL_DOORS = {"DOOR_CLOSE", "DOOR_CLOSE_30_OPEN", "DOOR_BLAZE_CLOSE"}
_MOVING = {*_HELPFUL, "CEILING"}
_BOSS_TAGS = (666, 667)
_TELEPORT_EXIT = 14
_TOGETHER_ONLY = 16


@dataclass(frozen=True)
class LineUse:
    """A line a player can trigger: sectors moved (-1 for an exit)."""

    line: int
    sector: int
    use: int
    key: int
    exits: int
    repeats: bool


@dataclass(frozen=True)
class Specials:
    """`movable` and `hurts` bool [sectors]; `teleports` leads from a line to the map thing it sends to."""

    movable: np.ndarray
    hurts: np.ndarray
    uses: list[LineUse]
    teleports: dict[int, int]
    door_key: dict[int, int]
    """Lines that open the sector behind them when used, and the key that takes (0 none)."""
    crossed: set[int]
    """Lines with a special that crossing triggers."""


def read_specials(level: LevelData, thing_sector: np.ndarray) -> Specials:
    """`thing_sector` i8 [things]: the sector each map thing stands in."""
    table = {int(row["number"]): row for row in tables.rows("line_specials")}
    by_tag: dict[int, list[int]] = {}
    for sector, tag in enumerate(level.sectors["tag"].tolist()):
        by_tag.setdefault(tag, []).append(sector)
    exits_of: dict[int, int] = {}
    alone = (level.things["options"] & _TOGETHER_ONLY) == 0
    for thing, number in enumerate(level.things["number"].tolist()):
        if number == _TELEPORT_EXIT and alone[thing]:
            exits_of.setdefault(int(thing_sector[thing]), thing)
    movable = np.zeros(len(level.sectors), bool)
    for tag in _BOSS_TAGS:
        movable[by_tag.get(tag, [])] = True
    movable[np.isin(level.sectors["special"], _sectors_with("DOOR_CLOSE_30", "DOOR_RAISE_5_MINUTES"))] = True
    hurtful = [int(row["number"]) for row in tables.rows("sector_specials") if int(row["damage"])]
    result = Specials(movable, np.isin(level.sectors["special"], hurtful), [], {}, {}, set())
    for line in np.flatnonzero(level.lines["special"]).tolist():
        row = table.get(int(level.lines["special"][line]))
        if row is None or row["monsters"] == "ONLY" or row["trigger"] == "ALWAYS":
            continue
        if row["trigger"] == "CROSS":
            result.crossed.add(line)
        tagged = _affected(level, line, row, by_tag)
        if row["kind"] in _MOVING:
            movable[tagged] = True
        if row["kind"] == "TELEPORT":
            exit_thing = next((exits_of[sector] for sector in tagged if sector in exits_of), None)
            if exit_thing is not None:
                result.teleports[line] = exit_thing
        if row["trigger"] == "DOOR":
            result.door_key[line] = tables.KEYS.index(row["key"])
        result.uses.extend(_uses(line, row, tagged))
    return result


def _sectors_with(*kinds: str) -> list[int]:
    return [int(row["number"]) for row in tables.rows("sector_specials") if row["kind"] in kinds]


def _affected(level: LevelData, line: int, row: dict[str, str], by_tag: dict[int, list[int]]) -> list[int]:
    """Sectors the line's special acts on."""
    if row["trigger"] == "DOOR":
        back = int(level.lines["sector"][line, 1])
        return [back] if back >= 0 else []
    tag = int(level.lines["tag"][line])
    tagged = by_tag.get(tag, []) if tag else []
    if row["kind"] == "STAIRS":
        return [step for sector in tagged for step in _stairs(level, sector)]
    if row["kind"] == "DONUT":
        return [sector for pool in tagged for sector in (pool, *_neighbours(level, pool)[:1])]
    return tagged


def _lines_of(level: LevelData, sector: int) -> np.ndarray:
    first = int(level.sectors["first_line"][sector])
    return level.sector_lines[first:first + int(level.sectors["n_lines"][sector])]


def _neighbours(level: LevelData, sector: int) -> list[int]:
    pairs = level.lines["sector"][_lines_of(level, sector)]
    return [int(b if a == sector else a) for a, b in pairs.tolist() if b >= 0 and a != b]


def _stairs(level: LevelData, sector: int) -> list[int]:
    """The steps that rise with a first one: through lines that face it, as long as the floor looks the same."""
    flat = int(level.sectors["floor_flat"][sector])
    steps = [sector]
    while True:
        pairs = level.lines["sector"][_lines_of(level, steps[-1])].tolist()
        following = next((back for front, back in pairs if front == steps[-1] and back >= 0 and back not in steps
                          and int(level.sectors["floor_flat"][back]) == flat), None)
        if following is None:
            return steps
        steps.append(following)


def _uses(line: int, row: dict[str, str], tagged: list[int]) -> list[LineUse]:
    use, key, repeats = USES[row["trigger"]], tables.KEYS.index(row["key"]), row["repeats"] == "1"
    if row["kind"] in ("EXIT", "SECRET_EXIT"):
        return [LineUse(line, -1, use, key, 1 if row["kind"] == "EXIT" else 2, repeats)]
    helps = row["kind"] in _HELPFUL and row["variant"] not in _UNHELPFUL_DOORS
    if helps or row["variant"] == "CEILING_RAISE_AND_FLOOR_LOWER":
        return [LineUse(line, sector, use, key, 0, repeats) for sector in tagged]
    return []
