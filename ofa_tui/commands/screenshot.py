"""`ofa-tui screenshot`: the terminal UI as a picture, of a recorded run or of one made for it, without a terminal."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ofa_tui import locations, settings
from ofa_tui.commands.recorded import add_folder, read_record, say_damage
from ofa_tui.commands.screen_size import parse_size
from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.files import check_place, write_whole
from ofa_tui.settings import named_path
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import MAXIMISED
from ofa_tui.tui.theme import check_theme

FORMATS = (".png", ".svg", ".txt")
LIVE_STEP = 100
LIVE_POLL_S = 1 / 35


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)
    parser.add_argument("--live", action="store_true", help="make a run for it, with the options of a run")
    parser.add_argument("--at", type=int, metavar="STEP",
                        help=f"when, in steps done (default: the end; with --live {LIVE_STEP}, or a little later)")
    parser.add_argument("--size", default="160x48", metavar="COLUMNSxROWS", help="of the terminal (default: 160x48)")
    parser.add_argument("--theme", default="", metavar="NAME", help="colour theme (default: dark)")
    parser.add_argument("--pane", choices=MAXIMISED, default="", help="show this pane maximised")
    parser.add_argument("-o", "--output", type=named_path, default=Path("screenshot.png"), metavar="FILE",
                        help="FILE.png, FILE.svg or FILE.txt (default: screenshot.png)")
    settings.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    size = parse_size(args.size, "--size")
    if args.output.suffix not in FORMATS:
        raise OfaError(f"-o {args.output} has none of the endings {', '.join(FORMATS)}; give it the one you want")
    check_place(args.output, "the picture")
    check_theme(args.theme)
    if args.live and args.folder != locations.recording():
        raise OfaError("a screenshot is of a recorded run or of a new one; leave out the folder, or --live")
    grid = _live_screen(args, size) if args.live else _recorded_screen(args, size)
    write_whole(args.output, _encode(grid, args.output.suffix), "choose another place with -o")
    print(args.output)
    return 0


def _encode(grid: Grid, suffix: str) -> bytes:
    from ofa_tui.tui.screenshot import encode_png
    from ofa_tui.tui.svg import encode_svg

    if suffix == ".txt":
        return "".join(f"{line.rstrip()}\n" for line in grid.lines()).encode()
    return encode_svg(grid) if suffix == ".svg" else encode_png(grid)


def _screen(args: argparse.Namespace, size: tuple[int, int], engine: Engine, snapshots: Iterable[Snapshot]) -> Grid:
    from ofa_tui.tui.headless import screen_of

    return screen_of(engine, snapshots, size, theme=args.theme, pane=args.pane)


# --- of a recorded run ----------------------------------------------------------------------------------------------


def _recorded_screen(args: argparse.Namespace, size: tuple[int, int]) -> Grid:
    _check_no_run_options(args)
    read_record(args.folder)
    engine = ReplayEngine(args.folder, clock=lambda: 0.0)
    engine.start()
    if args.at is None:
        engine.seek(engine.end)
    else:
        engine.seek_step(args.at)
    grid = _screen(args, size, engine, engine.passage())
    say_damage(engine.playback.run)
    return grid


def _check_no_run_options(args: argparse.Namespace) -> None:
    unset = argparse.ArgumentParser(add_help=False)
    settings.add_arguments(unset)
    given = [name for name, value in vars(unset.parse_args([])).items() if getattr(args, name) != value]
    if given:
        raise OfaError(f"--{given[0].replace('_', '-')} is for a new run, and {args.folder} is a recorded one; "
                       "leave it out, or give --live in place of a folder")


# --- of a new run ---------------------------------------------------------------------------------------------------


def _live_screen(args: argparse.Namespace, size: tuple[int, int]) -> Grid:
    from ofa_tui.assemble import assemble, check

    chosen = settings.from_arguments(args)
    at = min(LIVE_STEP, chosen.steps) if args.at is None else args.at
    if not 0 <= at <= chosen.steps:
        raise OfaError(f"--at {at} is not reached in {chosen.steps} steps; choose 0 to {chosen.steps}")
    check(chosen, doom_required=chosen.wad is not None)
    engine = assemble(chosen, doom_required=chosen.wad is not None).engine
    try:
        engine.start()
        return _screen(args, size, engine, _until(engine, at, time.sleep))
    finally:
        engine.stop()


def _until(engine: Engine, at: int, sleep: Callable[[float], None]) -> Iterator[Snapshot]:
    with Progress("waiting for the step", at) as progress:
        while True:
            snapshot = engine.poll()
            if snapshot.state == "aborted":
                raise AbortedError(snapshot.message or "the kernel stopped itself")
            yield snapshot
            if snapshot.steps_done >= at:
                return
            progress.update(snapshot.steps_done, f"step {snapshot.steps_done:,}")
            sleep(LIVE_POLL_S)
