"""Properties of the simulation and of drawing that hold for any demo; test_golden.py compares them with traces."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.doom import library, packer
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.doom.wad import parse_wad
from ofa_tui.engine.compiler import find_compiler
from tests.doom.fuzz_cases import commands, random_game
from tests.doom.golden_demos import OWN, ROOT, blob_of, demo
from tests.doom.grid_wad import grid_wad


@pytest.mark.slow
@pytest.mark.parametrize(("sanitizers", "lanes", "tics"), [("address,undefined", 1, 3400), ("thread", 4, 120)])
def test_no_sanitizer_objects(tmp_path: Path, sanitizers: str, lanes: int, tics: int) -> None:
    """Demos played and drawn, then the scripted player, under sanitizers; with threads that share the drawing."""
    driver = tmp_path / "driver"
    built = subprocess.run(
        [*find_compiler().command, "-std=c++20", "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all",
         "-pthread", f"-I{ROOT}/cuda", str(Path(__file__).with_name("sanitized_driver.cc")), "-o", str(driver)],
        capture_output=True, text=True)
    if built.returncode and "sanitize" in built.stderr:
        pytest.skip("the compiler has no sanitizer libraries")
    assert built.returncode == 0, built.stderr
    for name in ("e1m1-explore-2p-7323", "e2m4-explore-7323", "map07-explore-a877"):
        recorded = demo(OWN, name)
        blob_of(OWN, name).tofile(tmp_path / "blob")
        recorded.commands[:tics].tofile(tmp_path / "commands")
        library.new_game(recorded.settings()).tofile(tmp_path / "settings")
        files = [str(tmp_path / file) for file in ("blob", "commands", "settings")]
        done = subprocess.run([str(driver), *files, str(tics // 2), str(lanes)], capture_output=True, text=True,
                              timeout=200)
        assert done.returncode == 0, done.stderr[-3000:]


def test_state_is_a_plain_value() -> None:
    """A copied game goes on exactly like the original: nothing lives outside of the struct."""
    recorded = demo(OWN, "map01-explore-a877")
    game = library.Game(blob_of(OWN, "map01-explore-a877"))
    game.start(**recorded.settings())
    for tic in range(200):
        game.tic(recorded.commands[tic])
    twin = library.Game(game.blob)
    twin.state[:] = game.state
    for one in (game, twin):
        for tic in range(200, 400):
            one.tic(recorded.commands[tic])
    assert np.array_equal(game.state, twin.state)


@pytest.fixture(scope="module")
def small_wads() -> list[np.ndarray]:
    return [packer.pack(parse_wad(grid_wad(seed), "grid.wad")) for seed in range(8)]


def play_on(game: library.Game, script: np.ndarray | None, tics: int) -> list[bytes]:
    """The row of each tic: figures, and hashes of all objects and sectors. Without `script` the game plays itself."""
    rows = []
    for _ in range(tics):
        if script is None:
            game.play(1)
        else:
            game.tic(script[int(game.status()["tic"])])
        rows.append(game.row().tobytes())
    return rows


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), before=st.integers(0, 200), after=st.integers(1, 120), other=st.integers(0, 60),
       scripted=st.booleans())
def test_a_snapshot_goes_on_as_the_game_did(
    small_wads: list[np.ndarray], seed: int, before: int, after: int, other: int, scripted: bool,
) -> None:
    """Taken at any tic; restored over what came later, and over another game."""
    wad = small_wads[seed % len(small_wads)]
    script = None if scripted else commands(random_game(seed), before + after + other)
    start = {"skill": seed % 5, "seed": seed, "present": 1 if scripted else 7, "behaviour": seed % len(BEHAVIOURS)}
    game, used = library.Game(wad), library.Game(wad)
    game.start(**start)
    play_on(game, script, before)
    snapshot = game.state.copy()
    expected = play_on(game, script, after)
    used.start(skill=4, seed=seed + 1)
    play_on(used, script, other)
    for restored in (game, used):
        restored.state[:] = snapshot
        assert play_on(restored, script, after) == expected
