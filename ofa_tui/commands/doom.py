"""`ofa-tui doom demo`: a demo played to its end as fast as it goes, with its trace or some of its frames."""

from __future__ import annotations

import argparse
import dataclasses
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ofa_tui.doom import library, search
from ofa_tui.doom.levels import map_name
from ofa_tui.doom.lmp import VERSIONS, Demo, DemoError, parse_demo, read_demo
from ofa_tui.doom.packed import PackedWad
from ofa_tui.doom.packed import load as load_wad
from ofa_tui.doom.trace import Played, encode_trace, play_demo, trace_of
from ofa_tui.doom.wad import read_wad
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress, duration
from ofa_tui.record.files import check_place, make_folder, write_whole
from ofa_tui.record.png import encode_png
from ofa_tui.settings import named_path

LUMP = re.compile(r"DEMO[1-9]", re.IGNORECASE)
IN_LEVEL, ALIVE = 0, 0
FRAMES_ELSEWHERE = "choose another folder with -o"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="demo", parser_class=type(parser))
    text = "play a demo as fast as it goes, draw every frame, and say what came of it"
    demo = actions.add_parser("demo", help=text, description=text)
    demo.add_argument("demo", metavar="FILE.lmp|DEMO1", help="a demo file, or the name of one in the WAD")
    demo.add_argument("--wad", metavar="FILE", help="IWAD it was recorded with (default: searched for)")
    demo.add_argument("--trace", type=named_path, metavar="OUT.npz", help="write a row of figures and hashes per tic")
    demo.add_argument("--frames", metavar="T,T,...", default="",
                      help="write the frames of these tics as PNG; the first tic is 0")
    demo.add_argument("-o", "--output", type=named_path, default=Path("frames"), metavar="FOLDER",
                      help="where the frames go (default: frames)")
    demo.add_argument("--lanes", default="serial", metavar="serial|reversed|N",
                      help="draw with one thread, with the lanes of a block in reversed order, or with N threads "
                           "(default: serial); the pictures are the same")


def run(args: argparse.Namespace) -> int:
    lanes = _lanes(args.lanes)
    if args.trace:
        check_place(args.trace, "the trace")
    path = search.choose(search.search(args.wad))
    demo = _demo(args.demo, path)
    tics = _tics(args.frames, len(demo.commands))
    wad = load_wad(path)
    demo = fit_to_wad(demo, args.demo, wad)
    if tics:
        make_folder(args.output, FRAMES_ELSEWHERE)
    with Progress("compiling the Doom engine (first time only, about 20 seconds)") as compiling:
        library.load(lambda seconds: compiling.update(seconds, f"{seconds:.0f} s"))
    started = time.perf_counter()
    with Progress("playing", len(demo.commands)) as playing:
        played = play_demo(demo, wad.blob, lanes=lanes, traced=args.trace is not None, pictures=tics,
                           on_progress=lambda done: playing.update(done, f"tic {done:,}"))
    seconds = time.perf_counter() - started
    for line in _summary(demo, args.demo, wad, played, seconds):
        print(line)
    if args.trace:
        write_whole(args.trace, encode_trace(trace_of(demo, played, wad.sha256)), "choose another place")
        print(f"trace: {args.trace}")
    for tic in tics:
        print(f"frame: {_write_frame(args.output, tic, played, wad)}")
    return 0


def _lanes(text: str) -> int:
    named = {"serial": library.SERIAL, "reversed": library.REVERSED}
    if text in named:
        return named[text]
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= library.MOST_LANES):
        raise OfaError(f"--lanes {text!r} cannot be; choose serial, reversed or 1 to {library.MOST_LANES} threads")
    return int(text)


def _tics(text: str, count: int) -> list[int]:
    tics = []
    for part in filter(None, text.split(",")):
        if not (part.isascii() and part.strip().isdigit() and len(part) < 12):
            raise OfaError(f"--frames {text!r} is no list of tics; write for example --frames 0,350,700")
        if int(part) >= count:
            raise OfaError(f"the demo has no tic {int(part)}; its tics are 0 to {count - 1}")
        tics.append(int(part))
    return tics


def _demo(name: str, wad_path: Path) -> Demo:
    """The demo in a file, or the lump of that name. Raises DemoError, WadError."""
    if not LUMP.fullmatch(name):
        return read_demo(Path(name))
    wad = read_wad(wad_path)
    if (lump := wad.find(name.upper())) is None:
        there = ", ".join(f"DEMO{i}" for i in range(1, 10) if wad.find(f"DEMO{i}") is not None)
        raise DemoError(f"{wad_path} has no lump {name.upper()}; it has {there or 'no demos'}")
    return parse_demo(wad.lump(lump), f"{name.upper()} of {wad_path}")


def fit_to_wad(demo: Demo, name: str, wad: PackedWad) -> Demo:
    """The demo as the WAD's game starts it. Raises DemoError when the WAD lacks its map."""
    # Doom II has one episode, whatever the header says.
    fitted = dataclasses.replace(demo, episode=1) if wad.doom2 else demo
    wanted = map_name(fitted.episode, fitted.map, wad.doom2)
    if wanted not in wad.maps:
        raise DemoError(f"{name} begins in {wanted}, which {wad.path} does not have; name its own WAD with --wad")
    return fitted


# --- what came of it ----------------------------------------------------------------------------------------------


def _summary(demo: Demo, name: str, wad: PackedWad, played: Played, seconds: float) -> Iterator[str]:
    tics = len(played.rows)
    players = sum(demo.present)
    yield (f"{Path(name).name} with {Path(wad.path).name}: {tics:,} tics ({_clock(tics)}), skill {demo.skill + 1}, "
           f"{players} player{'s' * (players > 1)}")
    if demo.version != max(VERSIONS):
        yield f"recorded with version {VERSIONS[demo.version]}; played by the rules of 1.9, it may go its own way"
    if not demo.ended:
        yield "the file stops without the mark of the end; what is there was played"
    yield from _visits(wad, played)
    yield f"{tics:,} frames in {seconds:.2f} s: {tics / seconds:,.0f} a second, {tics / seconds / 35:,.0f} x real time"


def _visits(wad: PackedWad, played: Played) -> Iterator[str]:
    """A line for each time a level was loaded."""
    starts = [int(load["tic"]) for load in played.loads]
    for load, start, end in zip(played.loads, starts, [*starts[1:], len(played.rows)], strict=True):
        rows = played.rows[start:end]
        if not len(rows):
            continue
        inside = rows[rows["gamestate"] == IN_LEVEL]
        last = inside[-1] if len(inside) else rows[-1]
        fate = "finished" if len(inside) < len(rows) else "died" if last["playerstate"] != ALIVE else "left open"
        yield (f"  {map_name(int(load['episode']), int(load['map']), wad.doom2):6} {_clock(int(last['leveltime'])):>7} "
               f"{fate:<9} kills {last['kills']} of {load['totalkills']}, items {last['items']} of "
               f"{load['totalitems']}, secrets {last['secrets']} of {load['totalsecret']}")


def _clock(tics: int) -> str:
    return duration(tics / library.TICS_PER_S)


def _write_frame(folder: Path, tic: int, played: Played, wad: PackedWad) -> Path:
    """The frame as it was before messages were drawn over it, the face as without sound."""
    path = folder / f"tic-{tic:06}.png"
    palette = wad.palette(int(played.rows["palette"][tic]))
    write_whole(path, encode_png(played.pictures[tic], palette), FRAMES_ELSEWHERE)
    return path
