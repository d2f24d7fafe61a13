"""The simulation against the golden traces: level set-up, then every column and hash of every tic.

All 22 demos are in sync from the first tic to the last; the quick run plays the beginning of a few, chosen so that
together they meet doors, lifts, switches, pickups, death and reload, an exit, both rule sets and two players.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.doom import sim_harness as harness

pytestmark = pytest.mark.skipif(harness.compiler() is None, reason="no C++ compiler on PATH")
needs_golden = pytest.mark.skipif(not harness.GOLDEN.exists(), reason="the golden traces are not here")

QUICK = {"fd1-e1m1-s2-exit": 2500, "fd1-e3m3-s5-a": 600, "fd2-demo2": 900, "fd2-map30-s3-b": 500}


def golden_blob(name: str) -> np.ndarray:
    sha256 = str(harness.load_trace(name)["wad_sha256"])
    blob = harness.blob_for(sha256)
    if blob is None:
        pytest.skip(f"the WAD with SHA-256 {sha256[:12]}... is not here (DOOM_GOLDEN_WADS names folders)")
    return blob


@needs_golden
@pytest.mark.parametrize("name", harness.names())
def test_level_is_set_up_as_recorded(name: str) -> None:
    trace = harness.load_trace(name)
    game = harness.Game(golden_blob(name))
    harness.read_demo(harness.GOLDEN / f"{name}.lmp").start(game)
    expected = {key: int(trace[f"load_{key}"][0]) for key in (*harness.HASH_COLUMNS, "prnd", "nthinkers", "nmobjs")}
    row = game.row()
    assert {**game.hashes(), **{key: int(row[key][0]) for key in ("prnd", "nthinkers", "nmobjs")}} == expected


def assert_in_sync(name: str, tics: int | None) -> None:
    golden_blob(name)
    played, found, _ = harness.play_demo(name, tics)
    assert not found, f"{name} leaves its trace at tic {played}: " + "; ".join(
        f"{d.column} expected {d.expected} got {d.got}" for d in found[:5])
    assert played == (tics or len(harness.load_trace(name)["tic"]))


@needs_golden
@pytest.mark.parametrize(("name", "tics"), QUICK.items())
def test_demo_is_in_sync(name: str, tics: int) -> None:
    assert_in_sync(name, tics)


@needs_golden
@pytest.mark.slow
@pytest.mark.parametrize("name", harness.names())
def test_whole_demo_is_in_sync(name: str) -> None:
    assert_in_sync(name, None)


@needs_golden
@pytest.mark.slow
def test_no_undefined_behaviour(tmp_path: Path) -> None:
    """A driver with address and undefined-behaviour sanitizers plays a demo and lets the scripted player play on."""
    cxx = harness.compiler()
    driver = tmp_path / "driver"
    built = subprocess.run(
        [str(cxx), "-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{harness.ROOT}/cuda", str(Path(__file__).with_name("sim_driver.cc")), "-o", str(driver)],
        capture_output=True, text=True)
    if built.returncode and "sanitize" in built.stderr:
        pytest.skip("the compiler has no sanitizer libraries")
    assert built.returncode == 0, built.stderr
    for name in ("fd1-e1m1-s2-exit", "fd2-demo1", "fd2-map02-s5-a"):
        demo = harness.read_demo(harness.GOLDEN / f"{name}.lmp")
        golden_blob(name).tofile(tmp_path / "blob")
        demo.commands[:, demo.viewed].tofile(tmp_path / "commands")
        files = [str(tmp_path / "blob"), str(tmp_path / "commands")]
        subprocess.run([str(driver), *files, str(demo.episode), str(demo.map), str(demo.skill), "1500"], check=True,
                       timeout=300)


@needs_golden
def test_state_is_a_plain_value() -> None:
    """A copied game goes on exactly like the original: nothing lives outside of the struct."""
    game = harness.Game(golden_blob("fd2-demo1"))
    demo = harness.read_demo(harness.GOLDEN / "fd2-demo1.lmp")
    demo.start(game)
    for tic in range(200):
        game.tic(demo.commands[tic])
    twin = harness.Game(game.blob)
    ctypes.memmove(twin.state.ctypes.data, game.state.ctypes.data, game.state.nbytes)
    for tic in range(200, 400):
        game.tic(demo.commands[tic])
    for tic in range(200, 400):
        twin.tic(demo.commands[tic])
    assert np.array_equal(game.state, twin.state)
