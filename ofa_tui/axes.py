"""Axes of a curve, wherever it is drawn: ranges, round ticks, what falls into one column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_ROUNDEST_FIRST = (1, 5, 2, 3, 7, 1.5, 4, 6, 8, 2.5, 3.5, 4.5, 1.2)
"""Mantissas of ticks on a log axis."""


@dataclass(frozen=True)
class Axis:
    """Maps values to 0 (low end) .. 1 (high end)."""

    low: float
    high: float
    log: bool

    def place(self, values: np.ndarray) -> np.ndarray:
        if self.log:
            span = math.log(self.high / self.low)
            return np.log(np.maximum(values, 1e-12) / self.low) / span
        return (values - self.low) / (self.high - self.low)


def value_axis(low: float, high: float, log: bool) -> Axis:
    """An axis that holds low..high with a little air; log only where all is positive."""
    log = log and low > 0
    if log:
        pad = max(1.03, (high / low) ** 0.04)
        return Axis(low / pad, high * pad, True)
    pad = max(0.02 * max(abs(high), 1e-3), 0.04 * (high - low))
    return Axis(low - pad, high + pad, False)


def ticks(axis: Axis, rows: int) -> list[float]:
    """Round values, ascending, at least three rows apart (two where there are few rows), and as many as there are so.

    On a log axis the roundest come first; the others fill what room they leave, so that no part goes without.
    """
    apart = 3 if rows > 8 else 2
    if axis.log and axis.high / axis.low > 1.6:
        decades = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        found: dict[float, float] = {}
        for value in (mantissa * 10.0**decade for mantissa in _ROUNDEST_FIRST for decade in decades):
            place = float(axis.place(np.array(value))) * rows
            if 0 <= place <= rows and all(abs(place - other) >= apart for other in found.values()):
                found[value] = place
        if len(found) >= 2:
            return sorted(found)
    step = nice_step((axis.high - axis.low) / max(2, rows // apart))
    first = math.ceil(axis.low / step)
    return [k * step for k in range(first, math.floor(axis.high / step) + 1)]


def nice_step(minimum: float) -> float:
    """Smallest of 1, 2, 5 x 10^n that is at least `minimum`."""
    scale = 10.0 ** math.floor(math.log10(max(minimum, 1e-9)))
    return next(m * scale for m in (1, 2, 5, 10) if m * scale >= minimum * 0.999999)


def tick_label(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def step_label(step: float) -> str:
    if step < 1000:
        return f"{step:.0f}"
    thousands = step / 1000
    return f"{thousands:.0f}k" if abs(thousands - round(thousands)) < 1e-6 else f"{thousands:.1f}k"


def column_bounds(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(columns that hold a value, their min, max, mean); `columns` ascends."""
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    counts = np.diff(np.r_[starts, len(columns)])
    return (
        columns[starts],
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
        np.add.reduceat(values, starts) / counts,
    )


def smooth(values: np.ndarray, width: int) -> np.ndarray:
    """Centred moving average over `width` (odd) columns, narrower towards the ends."""
    if width < 3 or len(values) < 3:
        return values
    sums = np.r_[0.0, np.cumsum(values)]
    at = np.arange(len(values))
    reach = np.minimum(np.minimum(at, len(values) - 1 - at), width // 2)
    return (sums[at + reach + 1] - sums[at - reach]) / (2 * reach + 1)
