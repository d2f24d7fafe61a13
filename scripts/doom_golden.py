#!/usr/bin/env python3
"""Records a demo of a scripted player for tests/doom/golden, with a compact trace of what our engine makes of it.

    scripts/doom_golden.py freedoom1.wad E1M1 --behaviour explore [--skill 3] [--seed 1] [--tics 3000] [--players 1]

Do this when the engine agrees with all reference demos (`./scripts/test tests/doom/test_golden.py`): the trace says
what later versions must do. A demo that is there is not recorded again; `--again NAME` traces it anew, for a change of
the engine that has a reason written down.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.doom import library, packed, search, trace
from ofa_tui.doom.lmp import Demo, read_demo
from ofa_tui.doom.players import BEHAVIOURS
from tests.doom import compact
from tests.doom.golden_demos import OWN, blob_of


def record(wad: packed.PackedWad, options: argparse.Namespace) -> Demo:
    """What the scripted player does, as a demo; further players stand still."""
    episode, number = wad.episode_and_map(options.map)
    game = library.TracedGame(
        wad.blob, traced=False, episode=episode, map=number, skill=options.skill - 1, players=options.players,
        behaviour=BEHAVIOURS.index(options.behaviour), seed=options.seed)
    commands, _, _ = game.play_scripted(options.tics)
    present = tuple(player < options.players for player in range(library.MAX_PLAYERS))
    return Demo(commands, episode=episode, map=number, skill=options.skill - 1, present=present)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wad", nargs="?", help="a WAD file, or the name of one that is searched for")
    parser.add_argument("map", nargs="?", type=str.upper)
    parser.add_argument("--behaviour", default="explore", choices=BEHAVIOURS)
    parser.add_argument("--skill", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tics", type=int, default=3000)
    parser.add_argument("--players", type=int, default=1, choices=(1, 2, 3, 4))
    parser.add_argument("--again", nargs="*", metavar="NAME", help="trace these demos anew")
    options = parser.parse_args()
    for name in options.again or []:
        sha256 = str(trace.load_trace(OWN / f"{name}.npz")["wad_sha256"])
        played = trace.play_demo(read_demo(OWN / f"{name}.lmp"), blob_of(OWN, name))
        compact.save(OWN / f"{name}.npz", played, sha256)
    if options.wad and options.map:
        wad = packed.load(search.choose(search.search(options.wad)))
        demo = record(wad, options)
        together = f"-{options.players}p" if options.players > 1 else ""
        name = f"{options.map.lower()}-{options.behaviour}{together}-{wad.sha256[:4]}"
        OWN.mkdir(exist_ok=True)
        with (OWN / f"{name}.lmp").open("xb") as file:
            file.write(demo.encode())
        compact.save(OWN / f"{name}.npz", trace.play_demo(demo, wad.blob), wad.sha256)
        print(f"{OWN / name}.lmp")


if __name__ == "__main__":
    main()
