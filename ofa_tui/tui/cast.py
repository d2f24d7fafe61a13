"""The screen over time as an asciicast v2 file: https://docs.asciinema.org/manual/asciicast/v2/

One line of JSON says the size, every other is [seconds, "o", what the terminal gets]. A frame is the cells that changed
since the one before, so a player has to read a cast from its beginning, as players do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from ofa_tui.record.files import AppendFile
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.encode import encode_rows
from ofa_tui.tui.grid import Grid

FRAMES_PER_S = 10.0
"""At most; what came between two frames is in the second."""
WORTH_A_MOVE = 12
"""Unchanged cells in a row that cost less to send again than to step over: a move takes 8 bytes, a colour up to 19."""
BEGIN, END = "\x1b[?25l\x1b[0m\x1b[2J", "\x1b[0m\x1b[?25h"
"""Hides the cursor and clears the screen; shows it again."""


def changes(before: Grid | None, now: Grid) -> str:
    """What turns a terminal that shows `before` (None: nothing) into one that shows `now`; empty for equal ones."""
    parts = []
    for y, start, end in _spans(before, now):
        part = Grid(0, 0, 0, 0)
        part.width, part.height = end - start, 1
        for name in ("char", "fg", "bg", "attr"):
            setattr(part, name, getattr(now, name)[y : y + 1, start:end])
        parts.append(f"\x1b[{y + 1};{start + 1}H{encode_rows(part, Depth.TRUECOLOR)[0]}")
    return "".join(parts)


def _spans(before: Grid | None, now: Grid) -> Iterator[tuple[int, int, int]]:
    """(row, first column, one past the last) of what is to be sent."""
    if before is None:
        yield from ((y, 0, now.width) for y in range(now.height))
        return
    names = ("char", "fg", "bg", "attr")
    differs = np.logical_or.reduce([getattr(before, name) != getattr(now, name) for name in names])
    # A wide character is sent whole: with the cell behind it, whichever of the two changed.
    behind = now.char == 0
    differs[:, :-1] |= differs[:, 1:] & behind[:, 1:]
    differs[:, 1:] |= differs[:, :-1] & behind[:, 1:]
    for y in np.flatnonzero(differs.any(axis=1)).tolist():
        columns = np.flatnonzero(differs[y])
        breaks = np.flatnonzero(np.diff(columns) > WORTH_A_MOVE)
        starts = columns[np.concatenate(([0], breaks + 1))].tolist()
        ends = (columns[np.concatenate((breaks, [-1]))] + 1).tolist()
        yield from ((y, start, end) for start, end in zip(starts, ends, strict=True))


class CastFile:
    """Writes a cast as it goes: what is there after a kill plays to its last whole line."""

    def __init__(self, file: AppendFile, size: tuple[int, int], timestamp: int, title: str = "") -> None:
        """`size` is (columns, rows), `timestamp` the Unix time of its beginning. Raises OfaError for a full disk."""
        self._file = file
        self._shown: Grid | None = None
        self._at = 0.0
        columns, rows = size
        header: Mapping[str, object] = {
            "version": 2, "width": columns, "height": rows, "timestamp": timestamp,
            "env": {"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "title": title,
        }  # fmt: skip
        self._line(header)

    def show(self, seconds: float, grid: Grid) -> None:
        """The screen at a time since the beginning; one that lies before the last counts as the last."""
        output = changes(self._shown, grid)
        if self._shown is None:
            output = BEGIN + output
        self._shown = grid
        if output:
            self._event(seconds, output)

    def close(self, seconds: float) -> None:
        """Ends the cast at that time, so that a player shows the last frame for as long as it stood."""
        self._event(seconds, END)
        self._file.close()

    def _event(self, seconds: float, output: str) -> None:
        self._at = max(self._at, round(seconds, 6))
        self._line([self._at, "o", output])

    def _line(self, value: object) -> None:
        self._file.write((json.dumps(value, ensure_ascii=False) + "\n").encode(errors="replace"))
