"""The engine's debugger finds the first tic that differs and names object, field and value, from hashes alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.doom import packed, trace
from ofa_tui.doom.library import COMMAND, MOBJ_FIELDS, MOBJ_FIELDS_1, TracedGame
from ofa_tui.doom.lmp import Demo
from ofa_tui.doom.unhash import Guess, explain, hash_rows
from tests.doom.golden_demos import ROOT
from tests.doom.tiny_wad import build, lumps

FIELD = st.integers(-(2**31), 2**31 - 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(2, 5), FIELD, st.data())
def test_one_field_is_found_by_its_hash(rows: int, columns: int, value: int, data: st.DataObject) -> None:
    table = np.array(data.draw(st.lists(FIELD, min_size=rows * columns, max_size=rows * columns)), np.int32)
    table = table.reshape(rows, columns)
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    wanted = table.copy()
    wanted[row, column] = value
    guess = explain(table, hash_rows(wanted))
    assert guess is not None
    repaired = table.copy()
    repaired[guess.row, list(guess.values)] = list(guess.values.values())
    assert np.array_equal(repaired, wanted)


def test_pairs_and_rows_too_many_are_found_and_more_is_not() -> None:
    table = np.arange(40, dtype=np.int32).reshape(8, 5)
    pairs = [(2, range(100), range(-1, 2000))]
    wanted = table.copy()
    wanted[3, 2:4] = 77, 1234
    assert explain(table, hash_rows(wanted), pairs) == Guess(3, {2: 77, 3: 1234})
    assert explain(table, hash_rows(np.delete(table, 5, axis=0)), pairs) == Guess(5, {})
    wanted[6, 0] += 1
    assert explain(table, hash_rows(wanted), pairs) is None


def test_the_script_names_what_differs(tmp_path: Path) -> None:
    wad = packed.load(_tiny_wad(tmp_path))
    commands = np.zeros((60, 4), COMMAND)
    commands["forward"][:, 0] = 25
    demo = Demo(commands)
    (tmp_path / "walk.lmp").write_bytes(demo.encode())
    expected = trace.trace_of(demo, trace.play_demo(demo, wad.blob), wad.sha256)
    game = TracedGame(wad.blob, traced=False, **demo.settings())
    game.play(commands[:31])
    objects = game.mobjs()
    objects[0, MOBJ_FIELDS.index("health")] = 88
    expected["mobj_hash"][30] = hash_rows(objects[:, :MOBJ_FIELDS_1])
    expected["prnd"][30] += 2
    (tmp_path / "other.npz").write_bytes(trace.encode_trace(expected))
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "doom_diff.py"), str(tmp_path / "walk.lmp"),
         "--trace", str(tmp_path / "other.npz"), "--wad", str(tmp_path / "tiny.wad")],
        capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "equal for 30 of 60 tics" in done.stdout
    assert "2 random numbers too few" in done.stdout
    assert "object 0 (PLAYER): health should be 88, is 100" in done.stdout


def _tiny_wad(folder: Path) -> Path:
    (folder / "tiny.wad").write_bytes(build(lumps()))
    return folder / "tiny.wad"
