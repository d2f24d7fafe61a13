#!/usr/bin/env python3
"""Measures the terminal UI in a real pseudo-terminal: what it costs, and how it feels over a slow link.

    scripts/bench_tui.py                                    all of it: about ten minutes
    scripts/bench_tui.py --only local --seconds 10          the picture without a link, longer
    scripts/bench_tui.py --only links --sizes 200x60 --depths 256 --hosts plain

The UI shows frames of a real game (Freedoom, played by a script and drawn beforehand), 35 a second, beside an invented
run: no kernel takes the cores, and what the invented run itself costs is counted apart. Each frame carries its number
as that of its level, so that frames a second are those whose number came to stand on the person's screen, with tmux
between or without. Links, both ways: tests/tui/slow_link.py. With tmux the program runs inside it, and the link is
between tmux and the person's terminal. A key is `y`; its echo is the title of the loss pane.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import itertools
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tui"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fake_run import FakeEngine
from slow_link import LinkReport, cpu_seconds, spawn, wait_exit, watch
from text_screen import TextScreen

from ofa_tui.cli import guarded
from ofa_tui.doom import library, packed, players, search
from ofa_tui.engine.compiler import processor_name
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.tui import run_ui
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.options import UiOptions

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("local", "links", "start", "loss")
SIZES = ("80x24", "120x40", "200x60")
DEPTHS = ("256", "truecolor")
HOSTS = ("plain", "tmux")
FRAMES, WARM_TICS = 350, 35
SETTLE_S, KEY_EVERY_S = 10.0, 0.73
LOSSES, LOSS_ROUNDS = 4000, 40
GOAL_FRAMES, GOAL_CPU, GOAL_KB = 34.0, 30.0, 2200.0
"""Frames a second, percent of a core and kB/s of a picture of 120x45 half blocks in 256 colours."""
GOAL_ECHO_MS, GOAL_START_S, GOAL_LOSS_MS = 150.0, 2.0, 10.0
NUMBER = re.compile(r"1 doom · MAP(\d+)")
"""Frames carry their number, 10 to 249, as that of the level."""


@dataclass(frozen=True)
class Link:
    name: str
    bytes_per_s: float
    round_trip_s: float


LOCAL = Link("local", 1e12, 0.0)
SLOW = Link("500 kB/s, 60 ms", 500e3, 0.060)
LINKS = (Link("10 MB/s, 20 ms", 10e6, 0.020), SLOW, Link("250 kB/s, 80 ms", 250e3, 0.080))


# --- the program that is measured -------------------------------------------------------------------------------------


class RealFrames(FakeEngine):
    """The invented run with a real game's frames; counts the processor time it takes itself."""

    def __init__(self, pixels: np.ndarray, palette: np.ndarray, facts: np.ndarray) -> None:
        super().__init__(4, start_at_s=20.0)
        self._palette, self._facts = palette, facts
        self.corridor.frame = lambda seconds: pixels[int(seconds * 35) % len(pixels)]  # type: ignore[method-assign]

    def poll(self) -> Snapshot:
        before = time.thread_time()
        snapshot = super().poll()
        for frame in snapshot.frames:
            frame.status["map"] = 10 + frame.number % 240
        self._facts[1] += time.thread_time() - before
        return snapshot



def play_child(arguments: argparse.Namespace) -> int:
    facts = np.memmap(arguments.child, np.float64, "r+", shape=(2,))
    facts[0] = os.getpid()
    stored = np.load(arguments.frames)
    engine = RealFrames(stored["pixels"], stored["palette"], facts)
    return guarded(lambda: run_ui(engine, UiOptions(depth=Depth(arguments.depths))))


def draw_frames(path: Path) -> str:
    """Plays and draws FRAMES tics; returns what was played."""
    wad = packed.load(search.choose(search.search()))
    behaviour = players.BEHAVIOURS.index("hunt")
    pictures = []
    with library.TracedGame(wad.blob, traced=False, behaviour=behaviour, seed=7) as game:
        game.play_scripted(WARM_TICS)
        for _ in range(FRAMES):
            game.play_scripted(1)
            pictures.append(game.frame())
    np.savez(path, pixels=np.array(pictures), palette=wad.palette(0))
    return f"{wad.maps[0]} of {Path(wad.path).name}, {FRAMES} tics by the scripted player 'hunt'"


# --- one measurement --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    frames_per_s: float
    cpu_percent: float
    engine_percent: float
    others_percent: float
    """Of all cores, used by other processes meanwhile (tmux is one of them)."""
    kb_per_s: float
    echoes_ms: list[float]
    start_s: float

    @property
    def kb_per_frame(self) -> float:
        return self.kb_per_s / self.frames_per_s if self.frames_per_s else float("nan")


def command_of(folder: Path, depth: str, host: str) -> list[str]:
    program = [sys.executable, __file__, "--child", str(folder / "facts"), "--frames", str(folder / "frames.npz"),
               "--depths", depth]
    if host == "plain":
        return program
    options = folder / "tmux.conf"
    options.write_text('set -g default-terminal tmux-256color\nset -as terminal-features ",xterm-256color:RGB"\n'
                       "set -g status off\n")
    return ["tmux", "-L", f"bench-{os.getpid()}", "-f", str(options), "new-session", *program]


def measure(folder: Path, size: str, depth: str, link: Link, host: str, seconds: float) -> Reading:
    columns, lines = map(int, size.split("x"))
    np.zeros(2).tofile(folder / "facts")
    facts = np.memmap(folder / "facts", np.float64, "r", shape=(2,))
    engine: list[float] = []
    others: list[float] = []

    def processor() -> float:
        """Of the UI alone, in seconds; notes what the engine and the others have used."""
        every = psutil.cpu_times()
        busy = sum(every) - every.idle - getattr(every, "iowait", 0.0) - getattr(every, "guest", 0.0)
        whole = cpu_seconds(int(facts[0]))
        engine.append(float(facts[1]))
        others.append(busy - whole - time.process_time())
        return whole - engine[-1]

    environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "COLORTERM")}
    environment |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "OFA_TUI_CONFIG": str(folder),
                    "OFA_TUI_STATE": str(folder)}
    pid, terminal = spawn(command_of(folder, depth, host), columns, lines, environment)
    report = watch(pid, terminal, seconds=seconds, settle=SETTLE_S, rate=link.bytes_per_s,
                   delay=link.round_trip_s / 2, key=b"y", key_every=KEY_EVERY_S, keep=0, processor=processor)
    os.kill(int(facts[0]) or pid, 15)
    wait_exit(pid, terminal)
    numbers, echoes, start = read_screen(report, columns, lines)
    shown = sum(when >= SETTLE_S for when in numbers)
    percent = 100 / report.seconds
    return Reading(
        frames_per_s=shown / report.seconds,
        cpu_percent=percent * report.cpu_seconds,
        engine_percent=percent * (engine[-1] - engine[0]),
        others_percent=percent * (others[-1] - others[0]) / (os.cpu_count() or 1),
        kb_per_s=report.bytes / report.seconds / 1e3,
        echoes_ms=echoes,
        start_s=start,
    )


def read_screen(report: LinkReport, columns: int, lines: int) -> tuple[list[float], list[float], float]:
    """What the person saw: when each new frame's number stood there, echoes in ms, and when the first frame did."""
    screen = TextScreen(columns, lines)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    numbers: list[float] = []
    echoes: list[float] = []
    keys = iter(report.keys_s)
    pressed = next(keys, None)
    number, linear = "", False
    for when, data in report.arrivals:
        screen.feed(decoder.decode(data))
        rows = [screen.row(y) for y in range(lines)]
        found = next((match for row in rows if (match := NUMBER.search(row))), None)
        if found and found[1] != number:
            number = found[1]
            numbers.append(when)
        now_linear = any("3 loss · linear" in row for row in rows)
        if now_linear != linear:
            linear = now_linear
            if pressed is not None and when >= pressed:
                echoes.append(1e3 * (when - pressed))
                pressed = next(keys, None)
    return numbers, echoes, numbers[0] if numbers else float("nan")


# --- tables -----------------------------------------------------------------------------------------------------------


def verdict(value: float, goal: float, at_most: bool = True) -> str:
    reached = value <= goal if at_most else value >= goal
    return f"{'<=' if at_most else '>='}{goal:g} {'reached' if reached else 'MISSED'}"


def line_of(size: str, depth: str, link: Link, host: str, reading: Reading) -> str:
    middle = statistics.median(reading.echoes_ms) if reading.echoes_ms else float("nan")
    late = float(np.percentile(reading.echoes_ms, 95)) if reading.echoes_ms else float("nan")
    cells = [f"{size:7}", f"{depth:9}", f"{link.name:15}", f"{host:5}", f"{reading.frames_per_s:5.1f}",
             f"{reading.cpu_percent:4.0f}", f"{reading.engine_percent:4.1f}", f"{reading.others_percent:3.0f}",
             f"{reading.kb_per_s:6.0f}",
             f"{reading.kb_per_frame:6.1f}", f"{middle:5.0f}", f"{late:5.0f}", f"{reading.start_s:5.2f}"]
    goals = []
    if (size, depth, link, host) == ("200x60", "256", LOCAL, "plain"):
        goals = [f"frames/s {verdict(reading.frames_per_s, GOAL_FRAMES, False)}",
                 f"core {verdict(reading.cpu_percent, GOAL_CPU)}", f"kB/s {verdict(reading.kb_per_s, GOAL_KB)}"]
    if link is SLOW:
        goals = [f"echo median {verdict(middle, GOAL_ECHO_MS)}, p95 {verdict(late, GOAL_ECHO_MS)}"]
    return " | ".join([*cells, "; ".join(goals)])


def print_links(folder: Path, arguments: argparse.Namespace, links: tuple[Link, ...]) -> None:
    for size, depth, link, host in itertools.product(arguments.sizes.split(","), arguments.depths.split(","), links,
                                                     arguments.hosts.split(",")):
        reading = measure(folder, size, depth, link, host, arguments.seconds)
        print(line_of(size, depth, link, host, reading), flush=True)


def print_start(folder: Path) -> None:
    """A real run on this machine's cores, from the command to its first picture."""
    environment = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "OFA_TUI_CONFIG": str(folder),
                                "OFA_TUI_STATE": str(folder), "PYTHONPATH": str(ROOT)}
    (folder / "introduced").touch()
    times, used = [], []
    for _ in range(4):  # the first may compile, pack and tokenise
        pid, terminal = spawn([sys.executable, "-m", "ofa_tui"], 120, 40, environment)
        report = watch(pid, terminal, seconds=0.0, settle=120.0, until=b"ammo ")
        times.append(report.arrivals[-1][0])
        used.append(int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9)
        os.kill(pid, 15)
        wait_exit(pid, terminal)
    best = statistics.median(times[1:])
    print(f"a real run, default preset, 120x40: first picture after {best:.2f} s (median of 3, "
          f"{min(times[1:]):.2f}-{max(times[1:]):.2f}), {statistics.median(used[1:]):.2f} s of them on the processor: "
          f"{verdict(best, GOAL_START_S)}", flush=True)


async def time_loss(size: str) -> float:
    """Median milliseconds that the loss pane takes to be painted anew and encoded, LOSSES steps into a run."""
    from ofa_tui.tui.app import OfaApp

    now = [0.0]
    engine = FakeEngine(steps=LOSSES + 500, games=0, clock=lambda: now[0])
    engine.start()
    app = OfaApp(engine, options=UiOptions(depth=Depth.EIGHT_BIT))
    times = []
    async with app.run_test(size=tuple(map(int, size.split("x")))) as pilot:
        now[0] = LOSSES / 18
        app._tick()
        await pilot.pause()
        for _ in range(LOSS_ROUNDS):
            now[0] += 0.25
            app._take_snapshots()
            before = time.thread_time()
            app.paint("loss")
            times.append(1e3 * (time.thread_time() - before))
    return statistics.median(times)


def conditions(played: str) -> Iterator[str]:
    import textual

    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=False).stdout.strip()
    yield (f"{processor_name()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}; Python "
           f"{platform.python_version()}, Textual {textual.__version__}, {tmux or 'no tmux'}, TERM=xterm-256color")
    yield f"picture: {played}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts (default: {','.join(PARTS)})")
    parser.add_argument("--seconds", type=float, default=6.0, help="measured in each row (default: 6)")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--depths", default=",".join(DEPTHS), help="also 16 and none")
    parser.add_argument("--hosts", default=",".join(HOSTS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--frames", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return play_child(arguments)
    parts = arguments.only.split(",")
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for line in conditions(draw_frames(folder / "frames.npz")):
                print(line)
            if {"local", "links"} & set(parts):
                print("size | depth | link | host | frames/s | % of a core | engine % | others % | kB/s | kB/frame | "
                      "echo median | p95, ms | start, s | goals")
            if "local" in parts:
                print_links(folder, arguments, (LOCAL,))
            if "links" in parts:
                print_links(folder, arguments, LINKS)
            if "start" in parts:
                print_start(folder)
            for size in arguments.sizes.split(",") if "loss" in parts else ():
                spent = asyncio.run(time_loss(size))
                print(f"loss pane of {size}, {LOSSES} steps: {spent:.1f} ms an update: {verdict(spent, GOAL_LOSS_MS)}")
    except OfaError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
