"""The argument DIR of the sub-commands that take a recorded run. Without it they take the one that ships."""

from __future__ import annotations

import argparse

from ofa_tui import locations
from ofa_tui.settings import named_path

SHIPPED = "the recording of an H200 that ships with ofa-tui"


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, nargs="?", default=locations.recording(), metavar="DIR",
                        help=f"a folder that --record wrote (default: {SHIPPED})")
