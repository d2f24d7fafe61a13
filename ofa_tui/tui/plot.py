"""The loss curve in braille dots: envelope, smoothed line, held-out markers, round ticks. Pure geometry and drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ofa_tui.axes import Axis, column_bounds, nice_step, smooth, step_label, tick_label, ticks, value_axis
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Box
from ofa_tui.tui.theme import Theme

_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.uint32)
"""Braille bit of the dot in row 0..3, column 0..1 (Unicode 15, section 21.1)."""
MIN_SPAN = 8.0
"""Fewest steps the window can be zoomed to."""
AT_ONCE = 1 << 16
"""Steps that are looked at together: arrays as long as the run, made for every picture, would grow with it."""


@dataclass(frozen=True)
class PlotView:
    """Which part of the curve shows. `span` 0 is everything; `end` 0 follows the newest step."""

    log: bool = True
    span: float = 0.0
    end: float = 0.0

    def window(self, first: float, last: float) -> tuple[float, float]:
        """First and last step shown, for data from `first` to `last`."""
        end = min(self.end, last) if self.end else last
        start = max(first, end - self.span) if self.span else first
        return start, max(end, start + 1.0)

    def zoomed(self, factor: float, first: float, last: float) -> PlotView:
        """Shows `factor` as many steps, around the window's middle (or its end while it follows)."""
        start, end = self.window(first, last)
        span = max(MIN_SPAN, (end - start) * factor)
        if span >= last - first:
            return replace(self, span=0.0, end=0.0)
        if not self.end:
            return replace(self, span=span)
        middle = (start + end) / 2
        return replace(self, span=span, end=min(last, middle + span / 2))

    def panned(self, share: float, first: float, last: float) -> PlotView:
        """Moves by `share` of the window; at the newest step it follows again."""
        if not self.span:
            return self
        start, end = self.window(first, last)
        moved = max(first + self.span, end + share * (end - start))
        return replace(self, end=0.0 if moved >= last else moved)


def curve_dots(
    steps: np.ndarray, values: np.ndarray, start: float, end: float, axis: Axis, width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """(envelope, line): bool [height, width] dots, row 0 at the top. `steps` ascends."""
    envelope, line = np.zeros((height, width), bool), np.zeros((height, width), bool)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    total, count = np.zeros(width), np.zeros(width, np.int64)
    shown = inside(steps, start, end)
    for first in range(shown.start, shown.stop, AT_ONCE):
        part = slice(first, min(first + AT_ONCE, shown.stop))
        finite = np.isfinite(values[part])
        at = ((steps[part][finite] - start) / (end - start) * (width - 1) + 0.5).astype(np.int64)
        if not len(at):
            continue
        of_part, least, most, mean = column_bounds(at, axis.place(values[part][finite]))
        there = np.bincount(at, minlength=width)[of_part]
        low[of_part] = np.minimum(low[of_part], least)
        high[of_part] = np.maximum(high[of_part], most)
        total[of_part] += mean * there
        count[of_part] += there
    columns = np.flatnonzero(count)
    if not len(columns):
        return envelope, line
    low, high, mean = low[columns], high[columns], total[columns] / count[columns]

    def rows(share: np.ndarray) -> np.ndarray:
        return np.clip(np.rint((1 - share) * (height - 1)), 0, height - 1).astype(np.int64)

    row = np.arange(height)[:, None]
    envelope[:, columns] = (row >= rows(high)) & (row <= rows(low))
    every = np.arange(columns[0], columns[-1] + 1)
    path = rows(smooth(np.interp(every, columns, mean), max(1, width // 28) | 1))
    before = np.r_[path[:1], path[:-1]]
    # A steep piece spans all rows from the column before, so that the line has no holes.
    top = np.where(path < before, path, np.minimum(path, before + 1))
    bottom = np.where(path > before, path, np.maximum(path, before - 1))
    line[:, every] = (row >= top) & (row <= bottom)
    return envelope, line


def inside(steps: np.ndarray, start: float, end: float) -> slice:
    """Where the steps from `start` to `end`, both included, lie among ascending ones."""
    return slice(int(np.searchsorted(steps, start)), int(np.searchsorted(steps, end, "right")))


def braille(dots: np.ndarray) -> np.ndarray:
    """u4 [h / 4, w / 2] bit sets of bool [h, w] dots."""
    height, width = dots.shape
    blocks = dots.reshape(height // 4, 4, width // 2, 2)
    return (blocks * _BITS[:, None, :]).sum(axis=(1, 3)).astype(np.uint32)


@dataclass(frozen=True)
class Curve:
    """A training curve: `steps` ascending, `values` in nats; held-out points beside it."""

    steps: np.ndarray
    values: np.ndarray
    held_out_steps: np.ndarray
    held_out: np.ndarray


def draw_curve(grid: Grid, box: Box, curve: Curve, view: PlotView, theme: Theme) -> None:
    """Draws axes, curve and markers into `box` of the grid."""
    gutter = 6
    width, height = box.width - gutter - 1, box.height - 2
    if width < 8 or height < 3 or not len(curve.steps):
        message = "waiting for the first step" if not len(curve.steps) else "too small for a curve"
        grid.text(box.x + 1, box.y + box.height // 2, message, theme.muted, limit=box.width - 1)
        return
    start, end = view.window(float(curve.steps[0]), float(curve.steps[-1]))
    marks = (curve.held_out_steps >= start) & (curve.held_out_steps <= end) & np.isfinite(curve.held_out)
    low, high = np.inf, -np.inf
    for values in (curve.values[inside(curve.steps, start, end)], curve.held_out[marks]):
        finite = np.isfinite(values)
        low = float(np.min(values, initial=low, where=finite))
        high = float(np.max(values, initial=high, where=finite))
    if low > high:
        grid.text(box.x + 1, box.y + box.height // 2, "no finite loss here", theme.error, limit=box.width - 1)
        return
    axis = value_axis(low, high, view.log)
    left, top = box.x + gutter + 1, box.y
    _draw_axes(grid, left, top, width, height, axis, start, end, theme)
    envelope, line = curve_dots(curve.steps, curve.values, start, end, axis, width * 2, height * 4)
    env_bits, line_bits = braille(envelope), braille(line)
    bits = np.where(line_bits > 0, line_bits, env_bits)
    area = (slice(top, top + height), slice(left, left + width))
    drawn = bits > 0
    grid.char[area][drawn] = 0x2800 + bits[drawn]
    dim = theme.faded(theme.train, 0.38) if theme.shaded else theme.border
    grid.fg[area][drawn] = np.where(line_bits > 0, theme.train, dim)[drawn]
    x = np.rint((curve.held_out_steps[marks] - start) / (end - start) * (width - 1)).astype(int)
    y = np.clip(np.rint((1 - axis.place(curve.held_out[marks])) * (height - 1)), 0, height - 1).astype(int)
    for column, row in sorted(set(zip(x.tolist(), y.tolist(), strict=True))):
        grid.text(left + column, top + row, "◆", theme.held_out)


def _draw_axes(
    grid: Grid, left: int, top: int, width: int, height: int, axis: Axis, start: float, end: float, theme: Theme
) -> None:
    for y in range(height):
        grid.text(left - 1, top + y, "│", theme.border)
    for value in ticks(axis, height):
        y = top + round(float(1 - axis.place(np.array(value))) * (height - 1))
        label = tick_label(value)
        grid.text(left - 1 - len(label), y, label, theme.muted)
        grid.text(left - 1, y, "┤", theme.border)
    base = top + height
    grid.text(left - 1, base, "└" + "─" * width, theme.border)
    step = nice_step(max(1.0, (end - start) / max(1, width // 12)))
    number = math.ceil(start / step)
    while number * step <= end:
        value = number * step
        x = left + round((value - start) / (end - start) * (width - 1))
        label = step_label(value)
        at = min(max(left - 1, x - len(label) // 2), left + width - len(label))
        grid.text(x, base, "┬", theme.border)
        grid.text(at, base + 1, label, theme.muted)
        number += 1
