"""What a player does is a demo: it replays to the identical trace, whatever draws it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ofa_tui.cli import main
from ofa_tui.doom import library, trace
from ofa_tui.doom.lmp import Demo
from ofa_tui.doom.players import BEHAVIOURS
from tests.wads import freedoom

LENGTHS = (350, pytest.param(3500, marks=[pytest.mark.slow, pytest.mark.timeout(900)]))
PLACES = {"freedoom1": ("E1M2", "E2M1", "E3M3"), "freedoom2": ("MAP02", "MAP11", "MAP15")}
LONGEST_HOLD = 40
"""Tics that a person holds a key."""


def played(game: library.TracedGame, behaviour: str, tics: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Stretches of the game, as `play_scripted` gives them; where a person plays, the keys change between them."""
    rng = random.Random(tics)
    while tics:
        stretch = min(tics, rng.randint(1, LONGEST_HOLD)) if behaviour == "manual" else tics
        game.set_keys(rng.choice((50, 50, 25, -25)), rng.choice((0, 24, -40)), rng.choice((0, 640, -1280)) & ~255,
                      rng.choice((0, 1, 2)))
        yield game.play_scripted(stretch)
        tics -= stretch


@pytest.mark.parametrize("tics", LENGTHS)
@pytest.mark.parametrize(("number", "behaviour"), list(enumerate(BEHAVIOURS)))
def test_replays_to_the_identical_trace(number: int, behaviour: str, tics: int, tmp_path: Path) -> None:
    name = list(PLACES)[number % 2]
    wad = freedoom(name)
    episode, map_ = wad.episode_and_map(PLACES[name][number // 2 % 3])
    start = {"episode": episode, "map": map_, "skill": number % 5}
    game = library.TracedGame(wad.blob, behaviour=BEHAVIOURS.index(behaviour), seed=number, **start)
    commands, rows, loads = map(np.concatenate, zip(*played(game, behaviour, tics), strict=True))
    demo = Demo(commands, **start)
    recorded = trace.trace_of(demo, trace.Played(rows, loads, {}), wad.sha256)
    file = tmp_path / "run.lmp"
    file.write_bytes(demo.encode())
    for lanes in ("serial", "reversed", "8"):
        saved = tmp_path / f"{lanes}.npz"
        assert main(["doom", "demo", str(file), "--wad", wad.path, "--lanes", lanes, "--trace", str(saved)]) == 0
        replayed = trace.load_trace(saved)
        assert set(replayed) == set(recorded)
        assert not trace.compare(recorded, replayed), lanes


def test_a_game_after_a_game_replays_like_the_first() -> None:
    """Behind the last level a new game begins in the same state struct: nothing of the old one may be left in it."""
    wad = freedoom("freedoom2")
    start = {"episode": 1, "map": 1, "skill": 2}
    fresh, used = library.Game(wad.blob), library.Game(wad.blob)
    fresh.start(**start, seed=1)
    commands = fresh.play(1000)
    used.start(episode=1, map=30, skill=2, seed=9)
    used.play(500)
    used.begin_again(1, 1)
    everyone = np.zeros((len(commands), library.MAX_PLAYERS), library.COMMAND)
    everyone[:, 0] = commands
    for row in everyone:
        used.tic(row)
    again, once = used.row(), fresh.row()
    assert all(np.array_equal(again[name], once[name]) for name in library.ROW.names or () if name != "_pad")
