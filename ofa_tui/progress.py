"""Progress of long work: one line redrawn in a terminal, plain lines in a pipe, both with an estimate."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from ofa_tui.tui.terminal import moves_cursor

BAR_CELLS = 24
DRAW_EVERY_S = 0.1
LINE_EVERY_S, LINE_EVERY_AT_MOST_S = 5.0, 60.0
ESTIMATE_AFTER_S = 1.0
FALLBACK_COLUMNS = 80


def duration(seconds: float) -> str:
    """`8 s`, `3:05` or `2:03:05`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress:
    """Reports how much of `total` (any unit) is done. `total` 0 means unknown.

    Drawing never fails the work: a stream that is gone (closed pipe) silences it. As a context it ends its line, so
    that whatever is printed next, an error too, begins a line of its own.
    """

    def __init__(
        self,
        label: str,
        total: float = 0.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.label = label
        self.total = total
        self._stream = stream or sys.stderr or io.StringIO()  # a process may have no standard error
        self._clock = clock
        self._started = clock()
        self._drawn_at = float("-inf")
        self._first: tuple[float, float] | None = None
        self._tty = self._stream.isatty() and moves_cursor()
        self._open_rows = 0
        """Rows of the terminal that the line takes which is still to be redrawn."""
        self._said: float | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Leaves what is drawn as it is; the next output begins below it."""
        if self._open_rows:
            self._put("\n")
            self._open_rows = 0

    def update(self, done: float, note: str = "") -> None:
        """Says that `done` of the total is done.

        Draws at most ten times a second; in a pipe writes a line where more is done than at the last one, and fewer of
        them the longer it takes.
        """
        now = self._clock()
        if self._first is None:
            self._first = (now, done)
        if self._tty:
            due = now - self._drawn_at >= DRAW_EVERY_S
        else:
            quiet_s = min(max(LINE_EVERY_S, (now - self._started) / 4), LINE_EVERY_AT_MOST_S)
            due = now - self._drawn_at >= quiet_s and done != self._said
        if due:
            self._drawn_at, self._said = now, done
            self._write(self._text(done, note), last=False)

    def close(self, note: str = "") -> None:
        """Draws the last line."""
        took = duration(self._clock() - self._started)
        self._write(f"{self.label}: {note + ', ' if note else ''}took {took}", last=True)

    def message(self, text: str) -> None:
        """A line of its own, above the progress line."""
        self._write(text, last=True)

    def _text(self, done: float, note: str) -> str:
        bar, parts = "", []
        if self.total > 0:
            share = min(1.0, done / self.total)
            filled = int(share * BAR_CELLS)
            bar = "[" + "#" * filled + "." * (BAR_CELLS - filled) + "] " if self._tty else ""
            parts.append(f"{share:4.0%}" if self._tty else f"{share:.0%}")
        if note:
            parts.append(note)
        first_at, first_done = self._first or (0.0, 0.0)
        elapsed, advance = self._clock() - first_at, done - first_done
        if 0 < done < self.total and advance > 0 and elapsed > ESTIMATE_AFTER_S:
            parts.append(f"about {duration(elapsed * (self.total - done) / advance)} left")
        return f"{self.label}: {bar}{', '.join(parts)}"

    def _write(self, text: str, last: bool) -> None:
        if not self._tty:
            self._put(text + "\n")
            return
        up = f"\x1b[{self._open_rows - 1}A" if self._open_rows > 1 else ""
        self._put(f"\r{up}\x1b[J{text}" + ("\n" if last else ""))
        self._open_rows = 0 if last else -(-len(text) // self._columns())

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or FALLBACK_COLUMNS
        except (OSError, ValueError):
            return FALLBACK_COLUMNS

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return
