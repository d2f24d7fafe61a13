#!/usr/bin/env python3
"""Runs ofa-tui in a real pseudo-terminal and keeps what the terminal shows, as text and as a picture.

    scripts/terminal_screen.py --size 200x60 --after 20 -o screen -- --preset model-s --backend cuda

Needs pyte (`pip install pyte`), which stands for the terminal. After --after seconds with the UI on the screen it
writes screen.txt and screen.png; then it presses q and y, and fails unless ofa-tui ends with exit code 0 and gives the
terminal back.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte
from rich.color import Color

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.tui.grid import Grid
from ofa_tui.tui.remembered import remember_introduction
from ofa_tui.tui.screenshot import encode_png

ROOT = Path(__file__).resolve().parents[1]
LONGEST_START_S, LONGEST_END_S = 300.0, 60.0
WHITE, BLACK = 0xFFFFFF, 0x000000
ENTERS_UI, LEAVES_UI = b"\x1b[?1049h", b"\x1b[?1049l"
"""The terminal's second screen, which a full-screen program takes and gives back."""


class Terminal:
    """A process in a pseudo-terminal, and the screen that its output makes."""

    def __init__(self, command: list[str], columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.seen = b""
        main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.settings = termios.tcgetattr(child)
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment,
                                        start_new_session=True)
        self._main, self._child = main, child

    def follow(self, seconds: float, until: bytes = b"") -> bool:
        """Shows what comes for so long, or until the bytes have come. False if the process ended before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and until in self.seen):
            ended = self.process.poll() is not None
            if select.select([self._main], [], [], 0.1)[0]:
                data = os.read(self._main, 1 << 16)
                self.seen += data
                self._stream.feed(data)
            elif ended:
                return False
        return True

    def press(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def is_given_back(self) -> bool:
        return LEAVES_UI in self.seen and termios.tcgetattr(self._child) == self.settings

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def colour(name: str, default: int) -> int:
    """0xRRGGBB of one of pyte's names."""
    if name == "default":
        return default
    if len(name) == 6:
        return int(name, 16)
    red, green, blue = Color.parse(name.replace("brown", "yellow")).get_truecolor()
    return red << 16 | green << 8 | blue


def cells(screen: pyte.Screen) -> Grid:
    grid = Grid(screen.columns, screen.lines, WHITE, BLACK)
    for y in range(screen.lines):
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            ink, back = colour(cell.fg, WHITE), colour(cell.bg, BLACK)
            if cell.reverse:
                ink, back = back, ink
            grid.text(x, y, cell.data or " ", ink, back, bold=cell.bold)
    return grid


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="200x60", metavar="COLUMNSxROWS")
    parser.add_argument("--after", type=float, default=20.0, metavar="SECONDS", help="with the UI on the screen")
    parser.add_argument("-o", "--output", type=Path, default=Path("screen"), help="file name without its ending")
    parser.add_argument("options", nargs="*", help="of ofa-tui, after --")
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))
    remember_introduction()  # which would take the first keys
    terminal = Terminal([sys.executable, "-m", "ofa_tui", *options.options], columns, rows)
    try:
        started = terminal.follow(LONGEST_START_S, ENTERS_UI) and ENTERS_UI in terminal.seen
        if not started or not terminal.follow(options.after):
            print(*terminal.screen.display, sep="\n")
            print("ofa-tui ended, or did not show its UI", file=sys.stderr)
            return 1
        lines = "".join(f"{line.rstrip()}\n" for line in terminal.screen.display)
        options.output.with_suffix(".txt").write_text(lines)
        options.output.with_suffix(".png").write_bytes(encode_png(cells(terminal.screen)))
        terminal.press("q")
        terminal.follow(1.0)
        terminal.press("y")
        terminal.follow(LONGEST_END_S)
        code = terminal.process.wait(LONGEST_END_S)
        print(f"exit code {code}; terminal {'given back' if terminal.is_given_back() else 'NOT given back'}; "
              f"{len(terminal.seen)} bytes")
        return 0 if code == 0 and terminal.is_given_back() else 1
    finally:
        terminal.kill()


if __name__ == "__main__":
    sys.exit(main())
