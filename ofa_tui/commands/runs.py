"""`ofa-tui runs [FOLDER]`: the recorded runs in it, with their figures."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ofa_tui import locations
from ofa_tui.commands.recorded import SHIPPED
from ofa_tui.console import say
from ofa_tui.errors import OfaError
from ofa_tui.record.listing import damage_of, figures_of, find_runs, thumbnail_of
from ofa_tui.record.reader import RecordedRun
from ofa_tui.settings import named_path
from ofa_tui.tui import picture
from ofa_tui.tui.colour import Depth, detect_depth
from ofa_tui.tui.encode import encode_rows
from ofa_tui.tui.terminal import moves_cursor

PICTURE_COLUMNS, PICTURE_ROWS = 24, 9
BRIGHTER = 0.8
SURROGATE = re.compile("[\ud800-\udfff]")


def _shown(value: Any, form: str) -> str:
    """A figure; a dash where there is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "–" if value is None else str(value)
    return format(value, form) if math.isfinite(value) else str(value)


def _steps(figures: dict[str, Any]) -> str:
    return f"{_shown(figures.get('steps'), ',')}/{_shown(figures.get('steps_planned'), ',')}"


COLUMNS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("folder", lambda figures: _printable(figures["folder"])),
    ("started", lambda figures: _printable(_shown(figures.get("started"), "")[:16].replace("T", " "))),
    ("preset", lambda figures: _printable(_shown(figures["preset"], ""))),
    ("steps", _steps),
    ("loss", lambda figures: _shown(figures.get("last_loss"), ".3f")),
    ("held out", lambda figures: _shown(figures.get("held_out_loss"), ".3f")),
    ("tokens/s", lambda figures: _shown(figures.get("tokens_per_s"), ",.0f")),
    ("served", lambda figures: _shown(figures.get("tokens_served"), ",")),
    ("frames/s", lambda figures: _shown(figures.get("frames_per_s"), ".1f")),
    ("seconds", lambda figures: _shown(figures.get("seconds"), ",.1f")),
    ("ended", lambda figures: _printable(figures.get("exit_reason"))),
)
LEFT_COLUMNS = ("folder", "started", "preset", "ended")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("folder", type=named_path, nargs="?", default=Path(), metavar="FOLDER",
                       help="where to look, three levels deep (default: here)")
    place.add_argument("--shipped", action="store_true", help=f"show {SHIPPED}, with its folder")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all figures, one JSON object a line")
    form.add_argument("--table", action="store_true", help="one line a run, also where pictures could be shown")


def run(args: argparse.Namespace) -> int:
    runs = find_runs(locations.recording() if args.shipped else args.folder)
    if not runs:
        raise OfaError(f"there is no recorded run in {args.folder.resolve()}; make one with --record DIR, or "
                       "see the one that ships with --shipped")
    depth = detect_depth()
    lines: Iterable[str]
    if args.json:
        lines = (json.dumps(_plain(figures_of(run))) for run in runs)
    elif args.table or not sys.stdout.isatty() or depth is Depth.NONE or not moves_cursor():
        lines = _table([figures_of(run) for run in runs])
    else:
        lines = (line for run in runs for line in _block(run, depth))
    for line in lines:
        print(line)
    for each in () if args.json else runs:
        if damage := damage_of(each):
            say(f"ofa-tui: {_printable(each.folder)}: {damage}")
    return 0


def _plain(value: Any) -> Any:
    """JSON has no number for a loss that is none, and strict readers take no half of a character: what a name's
    bytes that are not UTF-8 become."""
    if isinstance(value, dict):
        return {_plain(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _printable(value: Any) -> str:
    """Without what would steer a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(value))


def _table(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = [[name for name, _ in COLUMNS], *([cell(figures) for _, cell in COLUMNS] for figures in runs)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(COLUMNS))]
    for row in rows:
        cells = [cell.ljust(width) if name in LEFT_COLUMNS else cell.rjust(width)
                 for cell, width, (name, _) in zip(row, widths, COLUMNS, strict=True)]
        yield "  ".join(cells).rstrip()


def _block(run: RecordedRun, depth: Depth) -> Iterator[str]:
    """The newest frame with the figures beside it; figures alone where there is no frame."""
    figures = figures_of(run)
    texts = [f"{name:<9}{cell(figures)}" for name, cell in COLUMNS if name not in ("folder", "started")]
    texts = [f"{_printable(figures['folder'])}  {COLUMNS[1][1](figures)}", *texts]
    rows: list[str] = []
    if thumbnail := thumbnail_of(run):
        grid = picture.draw(thumbnail.pixels, thumbnail.palette, PICTURE_COLUMNS, PICTURE_ROWS, depth=depth,
                            gamma=BRIGHTER)
        rows = encode_rows(grid, depth)
    yield texts[0]
    for index in range(max(len(rows), len(texts) - 1)):
        left = rows[index] + "  " if index < len(rows) else " " * (PICTURE_COLUMNS + 2) if rows else "  "
        yield left + (texts[index + 1] if index + 1 < len(texts) else "")
    yield ""
