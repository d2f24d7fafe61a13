#!/usr/bin/env python3
"""Plays golden demos through the simulation and shows where it first leaves the trace.

    scripts/doom_diff.py                 every demo: level load, tics in sync, first wrong columns
    scripts/doom_diff.py NAME            one demo; objects and sectors are compared where the golden set has a table
    scripts/doom_diff.py NAME --at TIC   table of the dumped tic nearest at or after TIC, whatever differs before

DOOM_GOLDEN_WADS names folders with WAD files besides those that are found anyway.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.doom import sim_harness as harness


def compare_load(name: str) -> list[str]:
    """Columns of the first level load that differ."""
    trace = harness.load_trace(name)
    blob = harness.blob_for(str(trace["wad_sha256"]))
    if blob is None:
        return ["no WAD"]
    demo = harness.read_demo(harness.GOLDEN / f"{name}.lmp")
    game = harness.Game(blob)
    demo.start(game)
    wrong = [key for key, value in game.hashes().items() if int(trace[f"load_{key}"][0]) != value]
    row = game.row()
    wrong += [key for key in ("prnd", "nthinkers", "nmobjs") if int(trace[f"load_{key}"][0]) != int(row[key][0])]
    with np.load(harness.GOLDEN / f"{name}-frames.npz") as tables:
        if wrong:
            show_tables(game, tables["mobjs_load0"], tables["sectors_load0"])
    return wrong


def show_tables(game: harness.Game, mobjs: np.ndarray, sectors: np.ndarray, most: int = 12) -> None:
    got = game.mobjs()
    print(f"  objects: {len(mobjs)} expected, {len(got)} got")
    shown = 0
    for index, (a, b) in enumerate(zip(mobjs, got, strict=False)):
        columns = np.flatnonzero(a != b)
        if len(columns) and shown < most:
            shown += 1
            fields = ", ".join(f"{harness.MOBJ_FIELDS[c]} {a[c]} != {b[c]}" for c in columns)
            print(f"    object {index} (type {a[0]}): {fields}")
    shown = 0
    for index, (a, b) in enumerate(zip(sectors, game.sectors(), strict=False)):
        columns = np.flatnonzero(a != b)
        if len(columns) and shown < most:
            shown += 1
            print(f"    sector {index}: " + ", ".join(f"{harness.SECTOR_FIELDS[c]} {a[c]} != {b[c]}" for c in columns))


def show_at(name: str, tic: int) -> None:
    demo = harness.read_demo(harness.GOLDEN / f"{name}.lmp")
    trace = harness.load_trace(name)
    blob = harness.blob_for(str(trace["wad_sha256"]))
    assert blob is not None
    with np.load(harness.GOLDEN / f"{name}-frames.npz") as tables:
        later = sorted(int(t) for t in tables["tics"] if int(t) >= tic)
        if not later:
            print("  no table at or after that tic")
            return
        game = harness.Game(blob)
        demo.start(game)
        for i in range(later[0] + 1):
            game.tic(demo.commands[i])
        print(f"  tables of tic {later[0]} (expected != got)")
        show_tables(game, tables[f"mobjs_tic{later[0]}"], tables[f"sectors_tic{later[0]}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--at", type=int)
    options = parser.parse_args()
    for name in options.names or harness.names():
        load = compare_load(name)
        if load == ["no WAD"]:
            print(f"{name:20} its WAD is not here")
            continue
        tics, found, _ = harness.play_demo(name)
        total = len(harness.load_trace(name)["tic"])
        print(f"{name:20} load {'ok' if not load else ' '.join(load)}, in sync {tics} of {total}")
        for d in found[:40 if options.names else 4]:
            print(f"    {d.column}: expected {d.expected}, got {d.got}")
        if options.names and found:
            show_at(name, tics if options.at is None else options.at)


if __name__ == "__main__":
    main()
