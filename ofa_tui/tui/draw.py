"""Small drawing helpers every pane uses: frames, sparklines, bars, wrapped text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ofa_tui.tui.grid import Grid, text_cells
from ofa_tui.tui.layout import Box, Frame
from ofa_tui.tui.theme import Theme

EIGHTHS = " ▁▂▃▄▅▆▇█"
_LEFT_EIGHTHS = " ▏▎▍▌▋▊▉█"


def draw_frame(
    grid: Grid,
    frame: Frame,
    theme: Theme,
    title: Sequence[tuple[str, int]],
    subtitle: Sequence[tuple[str, int]] = (),
    *,
    active: bool = False,
    inset: int = 1,
) -> Box:
    """Draws the border with its title and, at the bottom right, its subtitle (both as coloured pieces).

    Returns the box left inside. Without sides the subtitle goes to the right of the title line if there is room, and
    the box begins `inset` cells from the left.
    """
    line = theme.border_active if active else theme.border
    width, height = grid.width, grid.height
    if not frame.top:
        return Box(0, 0, width, height)
    _line(grid, (slice(0, 1), slice(None)), "─", line)
    if frame.sides:
        _line(grid, (slice(1, -1), slice(0, 1)), "│", line)
        _line(grid, (slice(1, -1), slice(-1, None)), "│", line)
        _line(grid, (slice(-1, None), slice(None)), "─", line)
        for x, y, corner in ((0, 0, "╭"), (width - 1, 0, "╮"), (0, height - 1, "╰"), (width - 1, height - 1, "╯")):
            grid.text(x, y, corner, line)
    back = None
    if active and theme.border_active == theme.border:  # without colours the title says it
        title, back = [(text, theme.background) for text, _ in title], theme.border_active
    end = _pieces(grid, 2 if frame.sides else 0, 0, title, width - 1, back, bold=True)
    length = sum(text_cells(text) for text, _ in subtitle) + 2
    if frame.sides:
        if subtitle and height > 1:
            _pieces(grid, max(1, width - 2 - length), height - 1, subtitle, width - 1)
        return Box(1, 1, max(0, width - 2), max(0, height - 2))
    if subtitle and end + length + 1 < width:
        _pieces(grid, width - length, 0, subtitle, width)
    return Box(inset, 1, max(0, width - inset), max(0, height - 1))


def _line(grid: Grid, where: tuple[slice, slice], character: str, colour: int) -> None:
    grid.char[where] = ord(character)
    grid.fg[where] = colour


def _pieces(
    grid: Grid, x: int, y: int, pieces: Sequence[tuple[str, int]], end: int, back: int | None = None,
    *, bold: bool = False,
) -> int:
    if not pieces:
        return x
    x = grid.text(x, y, " ", pieces[0][1], back)
    for text, colour in pieces:
        x = grid.text(x, y, text, colour, back, bold=bold, limit=max(0, end - x))
    return grid.text(x, y, " ", pieces[-1][1], back, limit=max(0, end - x))


def sparkline(
    grid: Grid,
    x: int,
    y: int,
    values: Sequence[float],
    width: int,
    colour: int,
    *,
    rows: int = 1,
    zero: bool = True,
    top: float | None = None,
) -> None:
    """The last `width` values as bars `rows` cells high, right-aligned.

    Scaled from 0 (or, without `zero`, just below their minimum) to `top` (default: their maximum).
    """
    data = np.array(values, float)[-width:]
    data = data[np.isfinite(data)]
    if not len(data) or width <= 0:
        return
    low = 0.0 if zero else float(data.min())
    high = top if top is not None else max(float(data.max()), low + 1e-9)
    if not zero:
        low -= (high - low) * 0.15
    levels = np.clip(np.rint((data - low) / (high - low) * 8 * rows), 1, 8 * rows).astype(int)
    left = x + width - len(levels)
    for row in range(rows):
        base = 8 * (rows - 1 - row)
        grid.text(left, y + row, "".join(EIGHTHS[min(8, max(0, level - base))] for level in levels.tolist()), colour)


def bar(grid: Grid, x: int, y: int, width: int, share: float, colour: int, back: int) -> None:
    """A horizontal bar of `width` cells, `share` (0..1) of it filled, to an eighth of a cell."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    text = "█" * (eighths // 8) + (_LEFT_EIGHTHS[eighths % 8] if eighths % 8 else "")
    grid.fill(x, y, width, 1, back)
    grid.text(x, y, text, colour)


def duration(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def short(value: float) -> str:
    """Four significant characters or so: 5.42, 186k, 1.28M; 0 for what would round to it."""
    magnitude = abs(value)
    if magnitude < 0.005:
        return "0"
    if magnitude >= 1e6:
        return f"{value / 1e6:.2f}M"
    if magnitude >= 1e5:
        return f"{value / 1e3:.0f}k"
    if magnitude >= 1e4:
        return f"{value / 1e3:.1f}k"
    if magnitude >= 100:
        return f"{value:,.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"
