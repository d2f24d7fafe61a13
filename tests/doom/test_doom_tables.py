"""Behaviour tables: consistent in themselves, and with what the golden traces show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ofa_tui.doom import math_tables, tables
from tests.doom.golden_demos import REFERENCE, REFERENCE_NAMES, file, golden_trace

STATES = tables.states()
TYPES = tables.thing_types()
# Columns of the golden object tables.
TYPE, ANGLE, HEALTH, STATE, TICS, MOM_X, MOM_Y, FLAGS, LAST_LOOK, RADIUS, HEIGHT = 0, 4, 5, 6, 7, 8, 9, 11, 16, 19, 20
AMBUSH, MISSILE = 0x20, 0x10000
FIXED = 1 << 16


@pytest.fixture(scope="module")
def tables_of_objects() -> list[Path]:
    """Files of the reference with objects at some tics."""
    return [file(REFERENCE, f"{name}-frames.npz") for name in REFERENCE_NAMES]


def reachable(first: list[int]) -> set[int]:
    """States that follow from `first` without any code pointer's help."""
    seen: set[int] = set()
    for state in first:
        while state not in seen:
            seen.add(state)
            state = int(STATES["next"][state])
    return seen


def test_tables_have_the_sizes_dehacked_numbers() -> None:
    assert (len(STATES), len(TYPES), len(tables.weapons()), len(tables.sprite_names())) == (967, 137, 9, 138)
    assert len(tables.rows("sounds")) == 109 and len(tables.behaviour_tables()["random"]) == 256
    numbers = [int(row["number"]) for row in tables.rows("line_specials")]
    assert numbers == [number for number in range(1, 142) if number not in (78, 85)]


def test_every_state_belongs_to_a_thing_or_a_weapon() -> None:
    first = [int(state) for field in TYPES.dtype.names if field.endswith("_state") for state in TYPES[field]]
    weapons = tables.weapons()
    first += [int(state) for field in weapons.dtype.names if field.endswith("_state") for state in weapons[field]]
    left = set(range(len(STATES))) - reachable(first)
    by_name = list(tables.numbers("states"))
    # States that only code pointers enter, or that nothing enters at all in the original.
    assert {by_name[state].rstrip("0123456789") for state in left} == {
        "DSNR", "CHAINFLASH", "PLASMAFLASH", "PLAY_ATK", "VILE_HEAL", "BRAINEXPLODE", "STALAG", "DEADTORSO",
        "DEADBOTTOM"}


def test_objects_of_a_fresh_level_are_as_their_type_says(tables_of_objects: list[Path]) -> None:
    seen = set()
    for path in tables_of_objects:
        with np.load(path) as data:
            for name in data.files:
                if not name.startswith("mobjs_load"):
                    continue
                objects = data[name]
                objects = objects[objects[:, TYPE] != 0]  # players bring health and colour along
                kinds = TYPES[objects[:, TYPE]]
                seen |= set(objects[:, TYPE].tolist())
                assert (objects[:, STATE] == kinds["spawn_state"]).all()
                assert (objects[:, RADIUS] == kinds["radius"]).all() and (objects[:, HEIGHT] == kinds["height"]).all()
                assert (objects[:, HEALTH] == kinds["health"]).all()
                assert (objects[:, FLAGS] & ~AMBUSH == kinds["flags"].astype(np.int64)).all()
    assert len(seen) > 80


def test_first_level_draws_the_random_numbers_of_the_table(tables_of_objects: list[Path]) -> None:
    random = tables.behaviour_tables()["random"].astype(int)
    used = set()
    for path in tables_of_objects:
        with np.load(path) as data:
            if "mobjs_load0" not in data.files:
                continue
            index = 0
            for row in data["mobjs_load0"]:
                index = (index + 1) & 255
                used.add(index)
                assert row[LAST_LOOK] == random[index] % 4
                tics = int(STATES["tics"][row[STATE]])
                if tics > 0:
                    index = (index + 1) & 255
                    used.add(index)
                    assert row[TICS] == 1 + random[index] % tics
    assert len(used) == 256


def test_objects_in_play_stay_in_their_states(tables_of_objects: list[Path]) -> None:
    attack, crushed = (tables.numbers("states")[name] for name in ("PLAY_ATK2", "GIBS"))
    allowed = [
        reachable([int(kind[field]) for field in TYPES.dtype.names if field.endswith("_state")]) | {attack, crushed}
        for kind in TYPES
    ]
    for path in tables_of_objects:
        with np.load(path) as data:
            for name in data.files:
                if name.startswith("mobjs_tic"):
                    objects = data[name]
                    tics = STATES["tics"][objects[:, STATE]]
                    assert ((objects[:, TICS] == -1) == (tics == -1)).all()
                    assert (objects[:, TICS] <= tics).all()
                    assert all(state in allowed[kind] for kind, state in objects[:, [TYPE, STATE]].tolist())


def test_weapon_states_last_as_long_as_traced() -> None:
    entered = set()
    for name in REFERENCE_NAMES:
        weapon = golden_trace(REFERENCE, name)["psp"][:, 0]
        state, tics = weapon[:, 0], weapon[:, 1]
        fresh = np.flatnonzero((state[1:] != state[:-1]) & (state[1:] >= 0)) + 1
        assert (tics[fresh] == STATES["tics"][state[fresh]]).all()
        entered |= set(state[fresh].tolist())
    assert len(entered) > 60


def test_trigonometry_has_the_known_entries() -> None:
    sine, tangent, arc = math_tables.fine_sine(), math_tables.fine_tangent(), math_tables.tan_to_angle()
    assert (len(sine), len(tangent), len(arc)) == (10240, 4096, 2049)
    assert sine[:5].tolist() == [25, 75, 125, 175, 226] and sine[2047:2049].tolist() == [65535, 65535]
    assert tangent[:4].tolist() == [-170910304, -56965752, -34178904, -24413316]
    assert arc[[0, 1, 2, 1024, 2048]].tolist() == [0, 333772, 667544, 316933408, 1 << 29]
    assert np.abs(sine[2048:6144] + sine[6144:10240]).max() <= 1


def test_traced_angles_and_speeds_come_from_the_tables(tables_of_objects: list[Path]) -> None:
    """Monsters face targets at table angles; missiles fly at speed times table sine, to the last bit."""
    arc = math_tables.tan_to_angle().astype(np.int64)
    turns = np.add.outer(np.arange(4) << 30, np.concatenate((arc, -arc, -1 - arc))).ravel() % (1 << 32)
    sine = math_tables.fine_sine().astype(np.int64)
    angles, misses, shots = [], 0, 0
    for path in tables_of_objects:
        with np.load(path) as data:
            objects = np.concatenate([data[name] for name in data.files if name.startswith("mobjs_tic")])
        angle = objects[:, ANGLE].astype(np.int64) % (1 << 32)
        angles.append(angle[(objects[:, TYPE] != 0) & (angle % (1 << 29) != 0)])
        kind = TYPES[objects[:, TYPE]]
        flying = (objects[:, FLAGS] & MISSILE != 0) & (objects[:, STATE] == kind["spawn_state"])
        if "-s5-" in path.name:
            flying[:] = False  # on the hardest skill some fly faster
        fine = angle[flying] >> 19
        shots += int(flying.sum())
        speed = kind["speed"][flying].astype(np.int64)
        for field, shift in ((MOM_X, 2048), (MOM_Y, 0)):
            misses += int((objects[flying, field] != speed * sine[fine + shift] >> 16).sum())
    assert shots > 20 and misses == 0
    # Spread, confusion and map angles of things make up the rest.
    assert np.isin(np.unique(np.concatenate(angles)), turns).mean() > 0.98
