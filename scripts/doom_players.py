#!/usr/bin/env python3
"""Measures the scripted player from outside: levels finished, sectors seen, deaths, time stuck, over maps and seeds.

Stuck are the seconds in which 3 s without a shot went by within 64 map units of one place, with no new sector
and no kill. Idle is the longest time without a new sector, a kill, a death or the end of a level.

    scripts/doom_players.py [--wad NAME] [--maps E1M1,E1M2] [--minutes 3] [--seeds 1] [--first-seed 0] [--skill 3]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.doom import packer, search
from tests.doom import sim_harness as harness

TICS = 35
STEP = 5
WINDOW = 3 * TICS // STEP
NEARBY = 64 << 16


class Progress:
    """Judges by `status` rows, one each STEP tics, whether the player gets anywhere."""

    def __init__(self) -> None:
        self.stuck_tics = self.idle_tics = self.longest_idle_tics = 0
        self._places: deque[tuple[int, int]] = deque(maxlen=WINDOW)
        self._score: tuple[int, ...] = ()

    def add(self, now: np.ndarray) -> None:
        score = tuple(int(now[name]) for name in ("map", "gamestate", "playerstate", "sectors_seen", "kills"))
        self.idle_tics = self.idle_tics + STEP if score == self._score else 0
        self.longest_idle_tics = max(self.longest_idle_tics, self.idle_tics)
        if score != self._score or now["gamestate"] != 0 or now["playerstate"] != 0 or now["buttons"] & 1:
            self._places.clear()
        self._score = score
        self._places.append((int(now["x"]), int(now["y"])))
        if len(self._places) == WINDOW and all(max(c) - min(c) < NEARBY for c in zip(*self._places, strict=True)):
            self.stuck_tics += STEP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wad", default="freedoom1")
    parser.add_argument("--maps", default="E1M1")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--skill", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    packed = packer.load(search.choose(search.search(options.wad)))
    maps = packed.maps if options.maps == "all" else tuple(options.maps.split(","))
    print("| map | seed | most sectors seen | of | levels finished | kills | deaths | seconds stuck | longest idle |")
    print("|---|---|---|---|---|---|---|---|---|")
    started, tics = time.perf_counter(), 0
    for name in maps:
        episode, map_ = packed.episode_and_map(name)
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            game = harness.Game(packed.blob)
            progress = Progress()
            game.start(episode=episode, map=map_, skill=options.skill - 1, seed=seed)
            seen = deaths = exits = kills = 0
            before = game.status()
            total = int(before["sectors_total"])
            for _ in range(int(options.minutes * 60 * TICS) // STEP):
                game.play(STEP)
                tics += STEP
                now = game.status()
                progress.add(now)
                if exits == 0 and now["map"] == map_ and now["gamestate"] == 0:
                    seen = max(seen, int(now["sectors_seen"]))
                    kills = max(kills, int(now["kills"]))
                deaths += int(now["playerstate"] == 1 and before["playerstate"] == 0)
                exits += int(now["gamestate"] != 0 and before["gamestate"] == 0)
                before = now
            stuck, idle = progress.stuck_tics / TICS, progress.longest_idle_tics / TICS
            print(f"| {name} | {seed} | {seen} | {total} | {exits} | {kills} | {deaths} | {stuck:.0f} | {idle:.0f} |",
                  flush=True)
    print(f"\n{tics / (time.perf_counter() - started):.0f} tics a second")


if __name__ == "__main__":
    main()
