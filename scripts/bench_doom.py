#!/usr/bin/env python3
"""Measures the Doom engine on one core, demo by demo, against a good C engine; then N games on N threads.

    scripts/bench_doom.py                                 the demos of shared/doom-golden that have an anchor
    scripts/bench_doom.py fd1-demo1 fd2-demo1 --rounds 9  some of them, or any others there, more often
    scripts/bench_doom.py --threads 1,2,4                 only games side by side

Times are CPU time of the thread that plays, so that other processes disturb them little; each is the least of several
rounds. A ratio above 1 means that ofa-tui is the faster.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.doom import library, packed, search, trace
from ofa_tui.doom.lmp import Demo, read_demo
from ofa_tui.engine.compiler import processor_name
from ofa_tui.errors import OfaError

DEMOS = Path(__file__).resolve().parents[2] / "shared" / "doom-golden"
ANCHOR_MACHINE = "one core of a 2-core AMD EPYC, -O2, a good C engine without a screen"
ANCHORS = {
    "fd1-demo1": (17.2, 119.0), "fd2-demo1": (6.5, 111.0), "fd2-demo2": (25.3, 108.0), "fd2-map07-s4-a": (9.0, 78.0),
}
"""Microseconds a tic for the game's logic, and for view and status bar: ../shared/design/doom.md."""
ROUNDS = 5


@dataclass(frozen=True)
class Timing:
    """Microseconds a tic."""

    logic: float
    both: float


def cpu_seconds(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before


def measure(demo: Demo, blob: np.ndarray, rounds: int) -> Timing:
    """The least time of several rounds; each plays the whole demo without and with drawing."""
    commands = np.ascontiguousarray(demo.commands)
    tics = len(commands)
    logic, both = [], []
    for _ in range(rounds):
        silent = library.Game(blob)
        silent.start(**demo.settings())
        logic.append(cpu_seconds(lambda game=silent: game.run(commands)))
        with library.TracedGame(blob, traced=False, **demo.settings()) as drawn:
            both.append(cpu_seconds(lambda game=drawn: game.run(commands)))
    return Timing(1e6 * min(logic) / tics, 1e6 * min(both) / tics)


def print_demos(names: list[str], wads: dict[str, Path], rounds: int) -> list[float]:
    """A line per demo; returns the ratios of those that have an anchor."""
    heads = ("logic", "anchor", "drawing", "anchor", "both/s", "anchor", "ratio")
    print(f"{'demo':22}", *(f"{head:>8}" for head in heads))
    ratios = []
    for name in names:
        sha256 = str(trace.load_trace(DEMOS / f"{name}.npz")["wad_sha256"])
        if sha256 not in wads:
            print(f"{name:22} its WAD (SHA-256 {sha256[:12]}...) is not here; scripts/fetch_wads.py gets it")
            continue
        timing = measure(read_demo(DEMOS / f"{name}.lmp"), packed.load(wads[sha256]).blob, rounds)
        drawing, rate = timing.both - timing.logic, 1e6 / timing.both
        logic_anchor, drawing_anchor = ANCHORS.get(name, (0.0, 0.0))
        if not logic_anchor:
            print(f"{name:22} {timing.logic:8.1f} {'':8} {drawing:8.1f} {'':8} {rate:8,.0f}")
            continue
        rate_anchor = 1e6 / (logic_anchor + drawing_anchor)
        ratios.append(rate / rate_anchor)
        print(f"{name:22} {timing.logic:8.1f} {logic_anchor:8.1f} {drawing:8.1f} {drawing_anchor:8.1f} {rate:8,.0f} "
              f"{rate_anchor:8,.0f} {ratios[-1]:8.2f}", flush=True)
    return ratios


def print_threads(counts: list[int], demo: Demo, blob: np.ndarray) -> None:
    """N games on N threads: frames a second of all, by the clock and by the CPU time that they used."""
    commands = np.ascontiguousarray(demo.commands)
    print(f"{'games':>5} {'frames a second':>16} {'for each second of CPU time':>28}")
    for count in counts:
        games = [library.TracedGame(blob, traced=False, **demo.settings()) for _ in range(count)]
        threads = [threading.Thread(target=game.run, args=(commands,)) for game in games]
        started, cpu = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        frames = count * len(commands)
        wall, used = time.perf_counter() - started, time.process_time() - cpu
        print(f"{count:5} {frames / wall:16,.0f} {frames / used:28,.0f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demos", nargs="*", default=list(ANCHORS), metavar="DEMO", help="names without ending")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"per demo (default: {ROUNDS})")
    parser.add_argument("--threads", default="", metavar="N,N,...", help="games side by side, and no demos")
    options = parser.parse_args()
    try:
        library.load()
        wads = search.by_sha256()
        cores = len(os.sched_getaffinity(0))
        print(f"here: {processor_name()}, {cores} cores; anchors: {ANCHOR_MACHINE}")
        print("logic and drawing in microseconds a tic, both in tics a second")
        ratios = [] if options.threads else print_demos(options.demos, wads, max(options.rounds, 1))
        if ratios:
            print(f"{'the least ratio':22} {min(ratios):62.2f}")
        first = options.demos[0]
        sha256 = str(trace.load_trace(DEMOS / f"{first}.npz")["wad_sha256"])
        if sha256 in wads:
            counts = [int(n) for n in options.threads.split(",") if n] or sorted({1, 2, cores, 2 * cores})
            print_threads(counts, read_demo(DEMOS / f"{first}.lmp"), packed.load(wads[sha256]).blob)
    except OfaError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
