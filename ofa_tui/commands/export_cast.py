"""The UI of a recorded run as an asciicast, as its replay shows it."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ofa_tui.commands.recorded import read_record, say_damage
from ofa_tui.commands.screen_size import parse_size
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.files import cannot_write, check_place
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.writer import CAST
from ofa_tui.tui.theme import check_theme

BEYOND_S = 1e-6
"""So far behind its end a record is at its end, however times are rounded."""
ADVICE = "choose another place with -o"


def export_cast(args: argparse.Namespace) -> str:
    """Does what the options of `export` say; a line on what was written. Raises OfaError."""
    size = parse_size(args.cast, "--cast")
    for name in ("every", "game"):
        if getattr(args, name) is not None:
            raise OfaError(f"--{name} is for a film of the game; leave it out, or leave out --cast")
    output = args.output or Path(CAST)
    if output.suffix != ".cast":
        raise OfaError(f"-o {output} has not the ending .cast; give it that one")
    check_theme(args.theme)
    check_place(output, "the cast")
    read_record(args.folder)
    with _put_in_place(output) as scratch:
        frames, seconds = write_cast(args.folder, scratch, size, theme=args.theme, start_s=args.start, end_s=args.end)
        size_mb = scratch.stat().st_size / 1e6
    return f"{output}: {frames:,} frames, {seconds:.1f} s, {size_mb:.1f} MB"


def write_cast(
    folder: Path, path: Path, size: tuple[int, int], *, theme: str = "", start_s: float = 0.0,
    end_s: float | None = None,
) -> tuple[int, float]:
    """The replay of a record at that size (columns, rows), between two times of the run's clock, as a new file.

    Gives the number of its frames and its seconds. Raises OfaError where the record has nothing there, for a theme that
    is not there, and where the file cannot be written.
    """
    from ofa_tui.tui.run_cast import FRAMES_PER_S, RunCast

    now = [0.0]
    engine = ReplayEngine(folder, clock=lambda: now[0])
    first = max(start_s, engine.begin)
    last = engine.end if end_s is None else min(end_s, engine.end)
    if first > last:
        raise OfaError(f"{folder} has nothing there: it goes from second {engine.begin:.1f} to {engine.end:.1f}")
    engine.start()
    engine.seek(first)
    count = 1 + math.ceil((last - first) * FRAMES_PER_S)
    cast = RunCast(path, engine, size, theme=theme, timestamp=_began(folder) + int(first), begin_s=first)
    with contextlib.closing(cast), Progress("drawing the cast", count) as progress:
        for number in range(count):
            now[0] = min(number / FRAMES_PER_S, last - first + BEYOND_S)
            for snapshot in engine.passage():
                cast.feed(snapshot)
            cast.show()
            progress.update(number + 1, f"{number + 1:,} frames")
    say_damage(engine.playback.run)
    return count, last - first


def _began(folder: Path) -> int:
    """Unix time of the run's start; 0 where the record does not tell."""
    try:
        return int(datetime.fromisoformat(RecordedRun(folder).run["started"]).timestamp())
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0


@contextlib.contextmanager
def _put_in_place(path: Path) -> Iterator[Path]:
    """A file to write, which takes the place of `path` once it is whole."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        scratch.unlink(missing_ok=True)
        yield scratch
        os.replace(scratch, path)
    except OfaError as error:
        if isinstance(error.__context__, OSError):  # it names the scratch file
            raise cannot_write(path, error.__context__, ADVICE) from None
        raise
    except OSError as error:
        raise cannot_write(path, error, ADVICE) from None
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()
