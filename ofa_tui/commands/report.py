"""`ofa-tui report [DIR]`: a web page of a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ofa_tui import locations
from ofa_tui.commands.recorded import add_folder, read_record, say_damage
from ofa_tui.record.report import write_report
from ofa_tui.settings import named_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)
    parser.add_argument("-o", "--output", type=named_path, metavar="FOLDER",
                        help="where the page and its plots go (default: report, in DIR where it was given)")
    parser.add_argument("--compare", type=named_path, metavar="DIR2",
                        help="another recorded run, whose losses are drawn beside this one's")


def run(args: argparse.Namespace) -> int:
    recorded = read_record(args.folder)
    reference = read_record(args.compare) if args.compare else None
    inside = Path() if args.folder == locations.recording() else args.folder
    for path in write_report(recorded, args.output or inside / "report", reference):
        print(path)
    for each in filter(None, (recorded, reference)):
        say_damage(each)
    return 0
