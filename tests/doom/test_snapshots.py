"""A copy of a game goes on as the game did: same commands of the scripted player, same hashes of everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofa_tui.doom import library
from tests.wads import FREEDOOM, freedoom

LONGEST = 1200


def play(game: library.Game, tics: int) -> tuple[np.ndarray, list[bytes]]:
    """Its commands and, every few tics, all that a trace says."""
    commands, rows = [], []
    for first in range(0, tics, 50):
        commands.append(game.play(min(50, tics - first)))
        rows.append(game.row().tobytes())
    return np.concatenate(commands), rows


@pytest.mark.parametrize("name", FREEDOOM)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(0, 31), skill=st.integers(0, 4), before=st.integers(1, LONGEST), after=st.integers(1, LONGEST),
       another=st.integers(0, 31))
def test_a_copy_goes_on_alike(name: str, first: int, skill: int, before: int, after: int, another: int) -> None:
    wad = freedoom(name)
    episode, number = wad.episode_and_map(wad.maps[first % len(wad.maps)])
    straight = library.Game(wad.blob)
    straight.start(episode=episode, map=number, skill=skill, seed=before)
    straight.play(before)
    # The place of the copy was another game, on another map, and so was the game that is set back.
    kept, back = library.Game(wad.blob), library.Game(wad.blob)
    for used in (kept, back):
        episode, number = wad.episode_and_map(wad.maps[another % len(wad.maps)])
        used.start(episode=episode, map=number, skill=4, seed=after)
        used.play(100)
    kept.go_on_from(straight)
    commands, rows = play(straight, after)
    for game in (back, straight):
        game.go_on_from(kept)
        again, same = play(game, after)
        assert np.array_equal(again, commands) and same == rows
