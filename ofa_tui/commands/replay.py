"""`ofa-tui replay [DIR]`: a recorded run, or one that is being recorded, in the terminal UI."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

from ofa_tui import locations
from ofa_tui.commands.recorded import add_folder, read_record
from ofa_tui.console import say
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.tui import run_ui
from ofa_tui.tui.terminal import check_terminal

LOOK_EVERY_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="1 = as it was (default)")
    parser.add_argument("--follow", action="store_true", help="watch a run that is being recorded, to its end")


def run(args: argparse.Namespace) -> int:
    if args.follow and args.folder == locations.recording():
        raise OfaError("--follow is for a run that is being recorded; give its folder, too")
    if args.follow:
        check_terminal(replay=True)
        wait_for_begin(args.folder)
    read_record(args.folder)
    engine = ReplayEngine(args.folder, speed=args.speed, follow=args.follow)
    check_terminal(replay=True)
    return run_ui(engine)


def wait_for_begin(folder: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Waits for a folder where there is none yet, and in one that --record has claimed until its run has begun, or
    the folder is gone."""
    if not os.path.lexists(folder):
        say(f"ofa-tui: {folder} is not there yet: waiting for a run that is recorded into it, Ctrl-C leaves")
        while not os.path.lexists(folder):
            sleep(LOOK_EVERY_S)
    elif _is_claimed(folder):
        say(f"ofa-tui: the run in {folder} has not begun yet: waiting for it, Ctrl-C leaves")
    while _is_claimed(folder):
        sleep(LOOK_EVERY_S)


def _is_claimed(folder: Path) -> bool:
    """An empty one has just been made."""
    ours = (folder / "frames").is_dir() or (folder.is_dir() and not any(folder.iterdir()))
    return ours and not (folder / "run.json").exists()
