"""`ofa-tui report [DIR]`: a web page of a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ofa_tui import locations
from ofa_tui.commands.recorded import add_folder
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report import write_report
from ofa_tui.settings import named_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)
    parser.add_argument("-o", "--output", type=named_path, metavar="FOLDER",
                        help="where the page and its plots go (default: report, in DIR where it was given)")
    parser.add_argument("--compare", type=named_path, metavar="DIR2",
                        help="another recorded run, whose losses are drawn beside this one's")


def run(args: argparse.Namespace) -> int:
    recorded = RecordedRun(args.folder)
    reference = RecordedRun(args.compare) if args.compare else None
    inside = Path() if args.folder == locations.recording() else args.folder
    for path in write_report(recorded, args.output or inside / "report", reference):
        print(path)
    return 0
