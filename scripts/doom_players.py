#!/usr/bin/env python3
"""Measures the scripted player: levels finished, sectors seen, deaths, time stuck, over maps and seeds.

    scripts/doom_players.py [--wad NAME] [--maps E1M1,E1M2] [--minutes 3] [--seeds 1] [--skill 3]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.doom import packer, search
from tests.doom import sim_harness as harness

TICS = 35
STEP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wad", default="freedoom1")
    parser.add_argument("--maps", default="E1M1")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--skill", type=int, default=3)
    options = parser.parse_args()
    packed = packer.load(search.choose(search.search(options.wad)))
    maps = packed.maps if options.maps == "all" else tuple(options.maps.split(","))
    print("| map | seed | most sectors seen | of | levels finished | kills | deaths | seconds stuck |")
    print("|---|---|---|---|---|---|---|---|")
    started, tics = time.perf_counter(), 0
    for name in maps:
        episode, map_ = packed.episode_and_map(name)
        for seed in range(options.seeds):
            game = harness.Game(packed.blob)
            game.start(episode=episode, map=map_, skill=options.skill - 1, seed=seed)
            seen = deaths = exits = kills = 0
            before = game.status()
            total = int(before["sectors_total"])
            for _ in range(int(options.minutes * 60 * TICS) // STEP):
                game.play(STEP)
                tics += STEP
                now = game.status()
                if exits == 0 and now["map"] == map_ and now["gamestate"] == 0:
                    seen = max(seen, int(now["sectors_seen"]))
                    kills = max(kills, int(now["kills"]))
                deaths += int(now["playerstate"] == 1 and before["playerstate"] == 0)
                exits += int(now["gamestate"] != 0 and before["gamestate"] == 0)
                before = now
            stuck = int(before["stuck_tics"]) / TICS
            print(f"| {name} | {seed} | {seen} | {total} | {exits} | {kills} | {deaths} | {stuck:.0f} |", flush=True)
    print(f"\n{tics / (time.perf_counter() - started):.0f} tics a second")


if __name__ == "__main__":
    main()
