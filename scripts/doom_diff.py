#!/usr/bin/env python3
"""Plays a demo and shows where it first leaves its trace: columns, objects, sectors, and fields by name.

    scripts/doom_diff.py                            every reference demo, a line each
    scripts/doom_diff.py NAME [--at TIC]            one of them
    scripts/doom_diff.py FILE.lmp --trace T.npz [--wad WAD] [--frames T-frames.npz] [--at TIC]
                                                    any demo against a trace that any engine wrote

A trace has hashes of all objects and sectors. Where one field differs, or a state with its tics, the hash alone says
which one (ofa_tui/doom/unhash.py). Where more does, tables of objects are compared at the next tic that has one:
in NAME-frames.npz beside a reference trace, or at --at TIC's next. DOOM_GOLDEN_WADS names folders with WAD files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.doom import packed, search, tables, trace
from ofa_tui.doom.library import MOBJ_FIELDS, MOBJ_FIELDS_1, SECTOR_FIELDS, TracedGame
from ofa_tui.doom.lmp import Demo, read_demo
from ofa_tui.doom.unhash import Guess, explain
from ofa_tui.errors import OfaError
from tests.doom.golden_demos import REFERENCE, REFERENCE_NAMES
from tests.wads import find

MOST_ROWS, MOST_COLUMNS = 12, 40
STATES, TICS = range(967), range(-1, 4096)
DIRECTIONS, COUNTS = range(9), range(-1, 4096)
HASHES = {
    "mobj_hash": (0, MOBJ_FIELDS_1, [(MOBJ_FIELDS.index("state"), STATES, TICS)]),
    "mobj_hash2": (MOBJ_FIELDS_1, len(MOBJ_FIELDS),
                   [(MOBJ_FIELDS.index("movedir") - MOBJ_FIELDS_1, DIRECTIONS, COUNTS)]),
}
"""First and last column of the objects' table, and pairs of columns that may differ together."""


@dataclass(frozen=True)
class Case:
    """A demo, what it should be, and tables of objects at some tics."""

    name: str
    demo: Demo
    blob: np.ndarray
    expected: trace.Trace
    tables: Path | None

    def play_to(self, tic: int) -> TracedGame:
        """The game right after a tic."""
        game = TracedGame(self.blob, traced=False, **self.demo.settings())
        game.play(self.demo.commands[:tic + 1])
        return game


def reference_case(name: str) -> Case | None:
    """A reference demo; None where its WAD is not here."""
    expected = trace.load_trace(REFERENCE / f"{name}.npz")
    wad = find(str(expected["wad_sha256"]))
    if wad is None:
        return None
    return Case(name, read_demo(REFERENCE / f"{name}.lmp"), wad.blob, expected, REFERENCE / f"{name}-frames.npz")


def file_case(options: argparse.Namespace, file: Path) -> Case:
    if options.trace is None:
        raise OfaError(f"{file} needs the trace to compare with; give it with --trace T.npz")
    expected = trace.load_trace(options.trace)
    wad = None if options.wad else find(str(expected["wad_sha256"]))
    wad = wad or packed.load(search.choose(search.search(options.wad)))
    return Case(file.name, read_demo(file), wad.blob, expected, options.frames)


# --- what differs -------------------------------------------------------------------------------------------------


def report(case: Case, at: int | None, verbose: bool) -> bool:
    """Prints where the demo leaves its trace; True where it does not."""
    got = trace.trace_of(case.demo, trace.play_demo(case.demo, case.blob), str(case.expected["wad_sha256"]))
    found = trace.compare(case.expected, got)
    total = len(case.expected["tic"])
    if not found:
        print(f"{case.name:20} {total} tics, every column equal")
        return True
    by_tic = [d for d in found if not d.column.startswith("load_")]
    tic = by_tic[0].row if by_tic else total
    print(f"{case.name:20} equal for {tic} of {total} tics")
    for d in found[:MOST_COLUMNS if verbose else 4]:
        where = f"load {d.row}" if d.column.startswith("load_") else f"tic {d.row}"
        print(f"    {where}, {d.column}: expected {_shown(d)[0]}, got {_shown(d)[1]} ({d.rows} rows differ)")
    if verbose:
        _explain_first(case, got, tic, {d.column for d in found if d.row == tic})
        _compare_tables(case, tic if at is None else at)
    return False


def _shown(d: trace.Difference) -> tuple[object, object]:
    if d.column.endswith("hash") or d.column.endswith("hash2") or "fb_" in d.column:
        return hex(int(str(d.expected))), hex(int(str(d.got)))
    return d.expected, d.got


def _explain_first(case: Case, got: trace.Trace, tic: int, columns: set[str]) -> None:
    if "prnd" in columns:
        off = (int(got["prnd"][tic]) - int(case.expected["prnd"][tic]) + 128) % 256 - 128
        print(f"  {abs(off)} random numbers too {'many' if off > 0 else 'few'} were drawn by then")
    if not columns & {*HASHES, "sector_hash"}:
        return
    game = case.play_to(tic)
    print(f"  what the hashes of tic {tic} say:")
    for column, (first, end, pairs) in HASHES.items():
        if column in columns:
            objects = game.mobjs()
            guess = explain(objects[:, first:end], int(case.expected[column][tic]), pairs)
            _say_guess(column, guess, objects, MOBJ_FIELDS[first:end], first)
    if "sector_hash" in columns:
        sectors = game.sectors()
        guess = explain(sectors, int(case.expected["sector_hash"][tic]))
        _say_guess("sector_hash", guess, sectors, SECTOR_FIELDS, 0)


def _say_guess(column: str, guess: Guess | None, table: np.ndarray, fields: tuple[str, ...], first: int) -> None:
    if guess is None:
        print(f"    {column}: more than one field differs")
        return
    label = _label(table, guess.row)
    if not guess.values:
        print(f"    {label} should not be there")
    for index, value in guess.values.items():
        print(f"    {label}: {fields[index]} should be {_value(fields[index], value)}, "
              f"is {_value(fields[index], int(table[guess.row, first + index]))}")


def _label(table: np.ndarray, row: int) -> str:
    if table.shape[1] == len(SECTOR_FIELDS):
        return f"sector {row}"
    return f"object {row} ({_name('things', int(table[row, 0]))})"


def _name(table: str, number: int) -> str:
    known = list(tables.numbers(table))
    return known[number] if 0 <= number < len(known) else str(number)


def _value(field: str, value: int) -> str:
    if field == "type":
        return f"{value} ({_name('things', value)})"
    return f"{value} ({_name('states', value)})" if field == "state" else str(value)


def _compare_tables(case: Case, tic: int) -> None:
    """Objects and sectors at the next tic that has tables."""
    if case.tables is None or not case.tables.is_file():
        return
    with np.load(case.tables) as dumped:
        later = sorted(int(t) for t in dumped["tics"] if int(t) >= tic)
        if not later:
            print("  there are no tables at that tic or after it")
            return
        game = case.play_to(later[0])
        print(f"  tables of tic {later[0]}:")
        lines: list[str] = []
        for wanted, ours, fields in (
            (dumped[f"mobjs_tic{later[0]}"], game.mobjs(), MOBJ_FIELDS),
            (dumped[f"sectors_tic{later[0]}"], game.sectors(), SECTOR_FIELDS),
        ):
            lines += _table_lines(wanted, ours, fields)
        for line in lines or ["objects and sectors are equal"]:
            print(f"    {line}")


def _table_lines(wanted: np.ndarray, ours: np.ndarray, fields: tuple[str, ...]) -> Iterator[str]:
    if len(wanted) != len(ours):
        yield f"{len(wanted)} rows expected, {len(ours)} got"
    rows = min(len(wanted), len(ours))
    wrong = np.flatnonzero((wanted[:rows] != ours[:rows]).any(axis=1))
    for row in wrong[:MOST_ROWS].tolist():
        differing = [
            f"{fields[c]} should be {_value(fields[c], int(wanted[row, c]))}, is {_value(fields[c], int(ours[row, c]))}"
            for c in np.flatnonzero(wanted[row] != ours[row])
        ]
        yield f"{_label(wanted, row)}: {'; '.join(differing)}"
    if len(wrong) > MOST_ROWS:
        yield f"and {len(wrong) - MOST_ROWS} more rows"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", nargs="?", help="name of a reference demo, or a file")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--wad")
    parser.add_argument("--frames", type=Path, help="tables of objects, as in the reference's NAME-frames.npz")
    parser.add_argument("--at", type=int, help="compare tables at or after this tic, whatever differs before")
    options = parser.parse_args()
    try:
        if options.demo is None or options.demo in REFERENCE_NAMES:
            wanted = REFERENCE_NAMES if options.demo is None else [options.demo]
            cases = {name: reference_case(name) for name in wanted}
            for name in [name for name, case in cases.items() if case is None]:
                print(f"{name:20} its WAD is not here; scripts/fetch_wads.py gets it")
            return max([not report(case, options.at, len(wanted) == 1) for case in cases.values() if case], default=0)
        return int(not report(file_case(options, Path(options.demo)), options.at, True))
    except OfaError as error:
        print(f"doom_diff: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
