"""The argument DIR of the sub-commands that take a recorded run. Without it they take the one that ships."""

from __future__ import annotations

import argparse
from pathlib import Path

from ofa_tui import locations
from ofa_tui.console import say
from ofa_tui.record.reader import RecordedRun
from ofa_tui.settings import named_path

SHIPPED = "the recording of an H200 that ships with ofa-tui"


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, nargs="?", default=locations.recording(), metavar="DIR",
                        help=f"a folder that --record wrote (default: {SHIPPED})")


def read_record(folder: Path) -> RecordedRun:
    """The run in a folder. Raises OfaError where there is none, or nothing of it can be read."""
    run = RecordedRun(folder)
    run.check_not_empty()
    return run


def say_damage(run: RecordedRun) -> None:
    """On stderr, where the record is not whole."""
    if run.damage:
        say(f"ofa-tui: {run.folder}: {run.damage}")
