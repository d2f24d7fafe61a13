"""A recorded run as a smaller record, to be passed on."""

from __future__ import annotations

import argparse
from pathlib import Path

from ofa_tui.commands.recorded import read_record, say_damage
from ofa_tui.errors import OfaError
from ofa_tui.record.reader import ordinal
from ofa_tui.record.thin import thin_record

MOST = 10_000


def export_record(args: argparse.Namespace) -> str:
    """Does what the options of `export` say; a line on what was written. Raises OfaError."""
    if not 2 <= args.thin <= MOST:
        raise OfaError(f"--thin {args.thin} cannot be; choose 2 to {MOST}")
    for name, given in (("--cast", args.cast), ("--theme", args.theme), ("--every", args.every),
                        ("--game", None if args.game is None else str(args.game)),
                        ("--from", args.start), ("--to", args.end)):
        if given not in ("", None, 0.0):
            raise OfaError(f"{name} is not for a thinned record, which is whole; leave it out, or leave out --thin")
    if args.output is None:
        raise OfaError("--thin needs -o FOLDER, where the smaller record goes")
    recorded = read_record(args.folder)
    thin_record(recorded, args.output, args.thin)
    say_damage(recorded)
    return f"{args.output}: every {ordinal(args.thin)} frame, {_size(args.output) / 1e6:.1f} MB"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
