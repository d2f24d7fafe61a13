"""`ofa-tui export [DIR] -o doom.gif`: the Doom of a recorded run as a film; `--cast 120x40`: its UI as an asciicast;
`--thin 9 -o small`: a smaller record.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from ofa_tui.commands.export_cast import export_cast
from ofa_tui.commands.export_record import export_record
from ofa_tui.commands.recorded import add_folder, read_record, say_damage
from ofa_tui.engine.protocol import Frame
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.files import cannot_write, check_place, write_whole
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.writer import CAST
from ofa_tui.settings import named_path

TICS_PER_S = 35
WIDTH, HEIGHT = 320, 240
"""Doom's 200 rows fill a 4:3 screen."""
MOST_GIF_FRAMES = 3000
"""Pillow holds them all in memory."""
EVERY_OF_GIF = 3
ADVICE = "choose another place with -o"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser)
    parser.add_argument("-o", "--output", type=named_path, metavar="FILE",
                        help="FILE.gif, or FILE.mp4 where ffmpeg is installed (default: doom.gif); "
                        f"FILE.cast with --cast (default: {CAST}); a new FOLDER with --thin")
    parser.add_argument("--cast", default="", metavar="COLUMNSxROWS",
                        help="of the UI at that size, as an asciicast, 10 frames a second at most")
    parser.add_argument("--thin", type=int, metavar="N",
                        help="a smaller record, to pass on: every Nth frame, all else but the timeline")
    parser.add_argument("--theme", default="", metavar="NAME", help="colours of a cast (default: dark)")
    parser.add_argument("--from", dest="start", type=float, default=0.0, metavar="S",
                        help="begin here, in seconds of the game, of a cast those of the run (default: 0)")
    parser.add_argument("--to", dest="end", type=float, metavar="S", help="end here (default: the end)")
    parser.add_argument("--every", type=int, metavar="N",
                        help=f"keep every Nth tic (default: {EVERY_OF_GIF} for a GIF, all for MP4)")
    parser.add_argument("--game", type=int, metavar="N",
                        help="which game, as the UI numbers it; of all but #0 one frame a second was kept (default: 0)")


def run(args: argparse.Namespace) -> int:
    if not args.start >= 0:
        raise OfaError(f"--from {args.start:g} cannot be; choose 0 seconds or more")
    if args.end is not None and not args.end > args.start:
        raise OfaError(f"--to {args.end:g} is not after --from {args.start:g}; choose a later second")
    export = export_record if args.thin is not None else export_cast if args.cast else _export_film
    print(export(args))
    return 0


def _export_film(args: argparse.Namespace) -> str:
    output = args.output or Path("doom.gif")
    game = args.game if args.game is not None else 0
    if args.theme:
        raise OfaError("--theme is for a cast of the UI; leave it out, or give --cast too")
    write = {".gif": _write_gif, ".mp4": _write_mp4}.get(output.suffix)
    if write is None:
        raise OfaError(f"-o {output} has none of the endings .gif and .mp4; give it the one you want")
    every = args.every if args.every is not None else EVERY_OF_GIF if output.suffix == ".gif" else 1
    if not 1 <= every <= 10_000:
        raise OfaError(f"--every {every} cannot be; choose 1 to 10000")
    check_place(output, "the film")
    recorded = read_record(args.folder)
    frames = _chosen(recorded, args, game, every)
    first = next(frames, None)
    if first is None:
        raise OfaError(_nothing_there(recorded, game))
    said = write(output, first, frames)
    say_damage(recorded)
    return said


def _nothing_there(run: RecordedRun, game: int) -> str:
    """Why there is no film."""
    if run.damage:
        return f"{run.folder} has no frames of game #{game} there that can be read ({run.damage})"
    games = run.info.games
    if not games:
        return f"{run.folder} has no Doom: its run had no game; export --cast makes a film of the UI"
    if game not in range(games):
        return f"{run.folder} has no game #{game}; its games are #0{f' to #{games - 1}' if games > 1 else ' alone'}"
    return f"{run.folder} has no frames of game #{game} there; choose another moment"


def _chosen(run: RecordedRun, args: argparse.Namespace, game: int, every: int) -> Iterator[Frame]:
    """Frames of the game between the two moments, at least `every` tics apart."""
    due = args.start * TICS_PER_S
    for timed in run.frames():
        frame = timed.frame
        # The first frame, number 1, is of the first tic.
        tic = frame.number - 1
        if args.end is not None and tic >= args.end * TICS_PER_S:
            return
        if frame.game == game and tic >= due:
            due = tic + every
            yield frame


def film_picture(frame: Frame) -> Image.Image:
    """A palette picture of HEIGHT rows: every fifth row of the frame is shown twice."""
    rows = np.arange(HEIGHT) * frame.pixels.shape[0] // HEIGHT
    image = Image.fromarray(np.ascontiguousarray(frame.pixels[rows], np.uint8), "P")
    image.putpalette(np.ascontiguousarray(frame.palette, np.uint8).tobytes())
    return image


def _write_gif(path: Path, first: Frame, rest: Iterator[Frame]) -> str:
    frames = [first]
    for frame in rest:
        frames.append(frame)
        if len(frames) > MOST_GIF_FRAMES:
            raise OfaError(f"a GIF of more than {MOST_GIF_FRAMES:,} frames is no use; choose a part with --from and "
                           "--to, or fewer frames with --every")
    numbers = [frame.number for frame in frames]
    # A GIF counts hundredths of a second: each moment is rounded, so that the errors do not add up.
    moments = [round(100 * (number - numbers[0]) / TICS_PER_S) for number in numbers]
    moments.append(moments[-1] + (moments[-1] - moments[-2] if len(moments) > 1 else 100))
    durations = [10 * max(1, after - before) for before, after in pairwise(moments)]
    file = io.BytesIO()
    with Progress("writing the GIF", len(frames)) as progress:
        pictures = _counted((film_picture(frame) for frame in frames[1:]), progress)
        film_picture(first).save(file, "GIF", save_all=True, append_images=pictures, duration=durations, loop=0,
                                 optimize=False)
    write_whole(path, file.getvalue(), ADVICE)
    return f"{path}: {len(frames):,} frames, {moments[-1] / 100:.1f} s, {len(file.getvalue()) / 1e6:.1f} MB"


def _counted(pictures: Iterator[Image.Image], progress: Progress) -> Iterator[Image.Image]:
    for number, picture in enumerate(pictures, 1):
        progress.update(number, f"{number} frames")
        yield picture


def _write_mp4(path: Path, first: Frame, rest: Iterator[Frame]) -> str:
    """Through ffmpeg, at TICS_PER_S: tics without a frame show the one before."""
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        raise OfaError("an MP4 needs ffmpeg, which is not on the PATH; install it, or write a GIF with -o FILE.gif")
    # Absolute: ffmpeg takes a name that begins like an option or a protocol for one.
    scratch = path.absolute().with_name(f".{path.name}.new.mp4")
    count = 0
    with tempfile.TemporaryFile() as said, _removed(scratch):
        encoder = subprocess.Popen(
            [ffmpeg, "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}",
             "-r", str(TICS_PER_S), "-i", "-", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(scratch)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        assert encoder.stdin is not None
        with contextlib.suppress(BrokenPipeError), encoder.stdin, Progress("writing the MP4") as progress:
            for picture in _every_tic(first, rest):
                encoder.stdin.write(picture)
                count += 1
                progress.update(count, f"{count} frames")
        if encoder.wait() or not scratch.exists():
            said.seek(0)
            reason = said.read().decode(errors="replace").strip().splitlines()
            raise OfaError(f"ffmpeg could not write the film ({reason[-1] if reason else 'it said nothing'}); "
                           "write a GIF with -o FILE.gif")
        size = scratch.stat().st_size
        try:
            os.replace(scratch, path)
        except OSError as error:
            raise cannot_write(path, error, ADVICE) from None
    return f"{path}: {count:,} frames, {count / TICS_PER_S:.1f} s, {size / 1e6:.1f} MB"


@contextlib.contextmanager
def _removed(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _every_tic(first: Frame, rest: Iterator[Frame]) -> Iterator[bytes]:
    """RGB of each tic from the first frame to the last."""
    shown, at = film_picture(first).convert("RGB").tobytes(), first.number
    for frame in rest:
        for _ in range(frame.number - at):
            yield shown
        shown, at = film_picture(frame).convert("RGB").tobytes(), frame.number
    yield shown
