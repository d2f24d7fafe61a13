"""`ofa-tui replay DIR`: a recorded run in the terminal UI."""

from __future__ import annotations

import argparse

from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.settings import named_path
from ofa_tui.tui import run_ui
from ofa_tui.tui.terminal import check_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, metavar="DIR", help="a folder that --record wrote")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="1 = as it was (default)")


def run(args: argparse.Namespace) -> int:
    engine = ReplayEngine(args.folder, speed=args.speed)
    check_terminal()
    return run_ui(engine)
