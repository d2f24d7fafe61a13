#!/usr/bin/env python3
"""Lets scripted players play maps for minutes at full speed, and judges from outside what became of it.

    scripts/doom_soak.py [--behaviours explore,hunt,speedrun] [--maps all] [--minutes 10] [--skill 3] [--seed 0]
                         [--wads freedoom1,freedoom2] [--sanitize] [--no-monsters]

A line a game, then a table of the behaviours. Each game begins on its map with a pistol; what follows a level's end is
played too. Stuck is the time alive in an unfinished level within which 15 s go by inside 128 map units around one spot
without a sector that is new to this life. Ends with status 1 after a crash, or when a pool of the game was full and
something was left out that the original, which has no such limit, would have had.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.doom import packed, search
from ofa_tui.doom.library import TICS_PER_S
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.compiler import find_compiler
from ofa_tui.errors import OfaError

ROOT = Path(__file__).resolve().parents[1]
MOMENT = np.dtype([
    ("episode", "u1"), ("map", "u1"), ("mode", "u1"), ("life", "u1"), ("x", "<i2"), ("y", "<i2"), ("sector", "<i2"),
    ("kills", "<i2"), ("secrets", "<i2"), ("health", "<i2"), ("turn", "<i2"), ("buttons", "u1"), ("weapon", "u1"),
    ("goal", "u1"), ("exhausted", "u1"), ("think_ns", "<u4"), ("tic_ns", "<u4"),
], align=True)
"""Moment of doom_soak.cc: the game after a tic."""
STUCK_TICS, STUCK_RADIUS = 15 * TICS_PER_S, 128
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Figures:
    """Of one game. `seconds` until its first level was finished, None if that did not happen; `stuck` is a share."""

    seconds: float | None
    levels: int
    kills: int
    secrets: int
    deaths: int
    stuck: float
    exhausted: bool
    think_us: float


def are_playing(moments: np.ndarray) -> np.ndarray:
    """bool [tics]: in a level and alive."""
    return (moments["mode"] == 0) & (moments["life"] == 0)


def lives(moments: np.ndarray) -> list[slice]:
    """Stretches of tics in one level between birth and death or exit."""
    playing = are_playing(moments)
    changes = playing[1:] != playing[:-1]
    for name in ("episode", "map"):
        changes |= moments[name][1:] != moments[name][:-1]
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(moments)]
    return [slice(start, end) for start, end in pairwise(bounds) if playing[start]]


def is_stuck(life: np.ndarray) -> np.ndarray:
    """bool [tics] of one life."""
    n = len(life) - STUCK_TICS + 1
    stuck = np.zeros(len(life), bool)
    if n <= 0:
        return stuck
    news = np.sort(np.unique(life["sector"], return_index=True)[1])[1:]
    seen = np.searchsorted(news, np.arange(len(life) + 1))
    windows = seen[STUCK_TICS:] == seen[:n]
    for axis in ("x", "y"):
        places = sliding_window_view(life[axis].astype(np.int32), STUCK_TICS)
        windows &= places.max(1) - places.min(1) <= 2 * STUCK_RADIUS
    for start in np.flatnonzero(windows):
        stuck[start:start + STUCK_TICS] = True
    return stuck


def rises(counts: np.ndarray) -> int:
    """By how much a counter that starts afresh now and then has risen in all."""
    steps = np.diff(counts.astype(np.int32))
    return int(steps[steps > 0].sum())


def judge(moments: np.ndarray) -> Figures:
    """moments MOMENT [tics]"""
    exits = np.flatnonzero((moments["mode"][1:] != 0) & (moments["mode"][:-1] == 0))
    deaths = (moments["life"][1:] == 1) & (moments["life"][:-1] == 0)
    return Figures(
        seconds=(int(exits[0]) + 1) / TICS_PER_S if len(exits) else None, levels=len(exits),
        kills=rises(moments["kills"]), secrets=rises(moments["secrets"]), deaths=int(deaths.sum()),
        stuck=sum(int(is_stuck(moments[life]).sum()) for life in lives(moments)) / len(moments),
        exhausted=bool(moments["exhausted"].any()), think_us=float(moments["think_ns"].mean()) / 1000)


def build(folder: Path, sanitize: bool) -> Path:
    """Compiles doom_soak.cc. Raises OfaError without a compiler."""
    program = folder / "doom_soak"
    arguments = [*find_compiler().command, "-std=c++20", *(SANITIZERS if sanitize else ("-O2",)), f"-I{ROOT}/cuda",
                 str(ROOT / "scripts" / "doom_soak.cc"), "-o", str(program)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise OfaError(f"doom_soak.cc does not compile:\n{done.stderr[-2000:]}")
    return program


def play(program: Path, *numbers: object) -> np.ndarray | str:
    """MOMENT [tics], or what a crash left behind."""
    done = subprocess.run([str(program), *map(str, numbers)], capture_output=True)
    if done.returncode:
        return f"status {done.returncode}: {done.stderr.decode(errors='replace')[-3000:]}"
    return np.frombuffer(done.stdout, MOMENT)


def line_of(name: str, f: Figures) -> str:
    left = f"left after {f.seconds:4.0f} s" if f.seconds is not None else "not left        "
    return (f"{name:22} {left} levels {f.levels:2} kills {f.kills:4} secrets {f.secrets:3} deaths {f.deaths:3} "
            f"stuck {f.stuck:6.1%} think {f.think_us:5.1f} us{'  POOL FULL' if f.exhausted else ''}")


def table(results: dict[str, list[Figures]]) -> str:
    """Markdown, a row a behaviour."""
    rows = ["| behaviour | games | first map finished | levels finished | kills | secrets | deaths | time stuck |",
            "|---|---|---|---|---|---|---|---|"]
    for behaviour, figures in results.items():
        finished = sum(f.seconds is not None for f in figures)
        levels, kills, secrets, deaths = (
            sum(getattr(f, name) for f in figures) for name in ("levels", "kills", "secrets", "deaths"))
        stuck = float(np.mean([f.stuck for f in figures]))
        rows.append(f"| `{behaviour}` | {len(figures)} | {finished} | {levels} | {kills:,} | {secrets:,} | {deaths:,} "
                    f"| {stuck:.1%} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--behaviours", default="explore,hunt,speedrun")
    parser.add_argument("--wads", default="freedoom1,freedoom2")
    parser.add_argument("--maps", default="all")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--skill", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true", help="AddressSanitizer and UBSan; about ten times slower")
    parser.add_argument("--no-monsters", action="store_true")
    options = parser.parse_args()
    behaviours = options.behaviours.split(",")
    for unknown in set(behaviours) - set(BEHAVIOURS):
        raise OfaError(f"there is no scripted player {unknown!r}; choose {', '.join(BEHAVIOURS)}")
    failed = False
    results: dict[str, list[Figures]] = {behaviour: [] for behaviour in behaviours}
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), options.sanitize)
        wads = [packed.load(search.choose(search.search(name))) for name in options.wads.split(",")]
        for behaviour in behaviours:
            for wad in wads:
                blob = Path(folder) / wad.sha256
                if not blob.exists():
                    wad.blob.tofile(blob)
                for name in wad.maps:
                    if options.maps != "all" and name not in options.maps.split(","):
                        continue
                    moments = play(
                        program, blob, *wad.episode_and_map(name), options.skill - 1, BEHAVIOURS.index(behaviour),
                        options.seed, round(options.minutes * 60 * TICS_PER_S), int(options.no_monsters))
                    if isinstance(moments, str):
                        failed = True
                        print(f"{behaviour} {name} CRASHED: {moments}", flush=True)
                        continue
                    results[behaviour].append(judge(moments))
                    failed |= results[behaviour][-1].exhausted
                    print(line_of(f"{behaviour} {name}", results[behaviour][-1]), flush=True)
    print()
    print(table(results))
    sys.exit(int(failed))


if __name__ == "__main__":
    try:
        main()
    except OfaError as error:
        sys.exit(str(error))
