"""Broken maps, damaged WADs and demos: played, or refused with one sentence; never a crash, a traceback or a hang."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ofa_tui.doom import layout, library, packer
from ofa_tui.doom.wad import WadError, parse_wad
from ofa_tui.engine import compiler
from ofa_tui.errors import OfaError
from tests.doom import fuzzing
from tests.doom.broken_maps import BROKEN_MAPS
from tests.doom.fuzz_cases import commands, random_game

TICS = 70


def play(blob: np.ndarray, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and the last picture of a game of two players who run about."""
    rng = random_game(3)
    with library.TracedGame(blob, lanes, present=3, skill=3) as game:
        rows, _ = game.play(commands(rng, TICS))
        game.play_scripted(TICS)
        return rows, game.picture()


@pytest.mark.parametrize("name", BROKEN_MAPS)
def test_broken_map_is_played_or_named(name: str) -> None:
    data, words = BROKEN_MAPS[name]
    if words:
        with pytest.raises(WadError, match=words) as caught:
            packer.pack(parse_wad(data, "broken.wad"))
        assert str(caught.value).isprintable()
        return
    blob = packer.pack(parse_wad(data, "broken.wad"))
    serial, reversed_ = (play(blob, lanes) for lanes in (library.SERIAL, library.REVERSED))
    assert serial[0]["tic"].tolist() == list(range(TICS))
    assert serial[0].tobytes() == reversed_[0].tobytes() and np.array_equal(serial[1], reversed_[1])


@pytest.mark.parametrize(("name", "cells"), [
    ("blockmap larger than 64 KiB", (60, 80)), ("blockmap beyond what offsets reach", (5, 3)),
])
def test_blockmap_is_the_lump_as_far_as_its_offsets_reach(name: str, cells: tuple[int, int]) -> None:
    blob = packer.pack(parse_wad(BROKEN_MAPS[name][0], "broken.wad"))
    (level,) = layout.view(blob, layout.header(blob)["levels"], layout.LEVEL)
    assert (level["block_columns"], level["block_rows"]) == cells


def assert_sound(score: fuzzing.Score, cases: int) -> None:
    assert not score.failures, "\n".join(f"{f.kind} {f.seed}: {f.what}" for f in score.failures)
    assert score.cases == cases and score.played > cases / 4 and sum(score.refused.values()) > cases / 20


@pytest.mark.parametrize(("kind", "cases"), [("wad", 100), ("demo", 40), ("player", 40)])
def test_damaged_files(kind: str, cases: int) -> None:
    engine = compiler.build(product=compiler.DOOM)
    assert_sound(fuzzing.run_cases(engine, {}, kind, 500_000, 500_000 + cases), cases)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_damaged_files_under_sanitizers(tmp_path: Path) -> None:
    try:
        environment, engine = fuzzing.sanitizer_environment(), fuzzing.compile_sanitized(tmp_path)
    except OfaError as error:
        pytest.skip(str(error))
    for kind, cases in (("broken", len(BROKEN_MAPS)), ("wad", 1000), ("demo", 200)):
        score = fuzzing.run_cases(engine, environment, kind, 0, cases)
        assert_sound(score, cases)
