"""Plots of a recorded run: which there are, and how one is drawn on a canvas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.axes import Axis, column_bounds, nice_step, smooth, step_label, ticks, value_axis
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report_canvas import Canvas, PngCanvas, SvgCanvas

WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 30, 34
"""Room beside the axes."""
SMOOTHED_COLUMNS = 15
AT_ZERO = 0.03
"""A curve that begins within this share of its length from 0 is drawn from 0 on."""
READINGS: dict[str, tuple[str, str, float]] = {
    "power_w": ("power", "W", 1.0),
    "clock_mhz": ("clock", "MHz", 1.0),
    "temperature_c": ("temperature", "°C", 1.0),
    "cpu_percent": ("processor time", "% of one core", 1.0),
    "rss_bytes": ("memory of the process", "GB", 1e-9),
}
"""Readings of the machine: what they are called, their unit, and what to multiply the recorded value by."""


@dataclass(frozen=True)
class Line:
    """`x` and `y`: f8 of equal length, x ascending."""

    name: str
    x: np.ndarray
    y: np.ndarray
    colour: str
    band: bool = False
    """Shown smoothed over the band of its lowest and highest values; for a curve that has a value every step."""
    points: bool = False


@dataclass(frozen=True)
class Plot:
    name: str
    """Also of its PNG file."""
    title: str
    x_label: str
    lines: list[Line] = field(default_factory=list)
    log: bool = False
    from_zero: bool = False
    counts: bool = False
    """Values are whole numbers that may be equal: no ticks between them, and each line shows under those above it."""

    @property
    def drawable(self) -> bool:
        return any(np.isfinite(line.y).any() for line in self.lines)


# --- which ----------------------------------------------------------------------------------------------------------


def plots_of(run: RecordedRun, reference: RecordedRun | None = None) -> list[Plot]:
    """Those with something to draw."""
    rates = [
        ("tokens", "training", "tokens/s", "tokens_per_s", "train"),
        ("served", "serving", "tokens/s", "served_per_s", "serve"),
        ("frames", "Doom", "frames/s", "frames_per_s", "doom"),
    ]
    plots = [loss_plot(run, reference), _roles_plot(run)]
    for name, title, unit, key, colour in rates:
        line = _sampled(run, unit, partial(_value, key), colour)
        if (line.y > 0).any():
            plots.append(Plot(name, f"{title}, {unit}", "seconds since the launch", [line], from_zero=True))
    plots.append(_busy_plot(run))
    plots += [_reading_plot(run, name) for name in reading_names(run)]
    return [plot for plot in plots if plot.drawable]


def loss_plot(run: RecordedRun, reference: RecordedRun | None = None) -> Plot:
    lines: list[Line] = []
    if reference is not None:
        lines += _loss_lines(reference, "reference", "reference", "reference")
    lines += _loss_lines(run, "training", "train", "held_out")
    positive = all((line.y[np.isfinite(line.y)] > 0).all() for line in lines)
    return Plot("loss", "loss, nats per token", "step", lines, log=positive)


def _loss_lines(run: RecordedRun, name: str, colour: str, held_out_colour: str) -> Iterator[Line]:
    steps = np.array([entry.step for entry in run.losses], float)
    yield Line(name, steps, np.array([entry.loss for entry in run.losses], float), colour, band=True)
    sweeps = sorted(run.sweeps, key=lambda sweep: sweep.step)
    held_out = np.array([sweep.loss for sweep in sweeps], float)
    yield Line(f"{name}, held out" if name == "reference" else "held out",
               np.array([sweep.step for sweep in sweeps], float), held_out, held_out_colour, points=True)


def _sampled(run: RecordedRun, name: str, value: Callable[[dict[str, Any]], Any], colour: str) -> Line:
    """A value of every sample, nan where it has none."""
    rows = sorted((float(sample["seconds"]), number_or_nan(value(sample))) for sample in run.samples)
    table = np.array(rows, float).reshape(-1, 2)
    return Line(name, table[:, 0], table[:, 1], colour)


def _value(key: str, sample: dict[str, Any]) -> Any:
    return sample.get(key)


def number_or_nan(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def roles_of(sample: dict[str, Any]) -> list[str]:
    """Role of each SM, none where the sample does not say."""
    roles = sample.get("roles")
    return [str(role) for role in roles] if isinstance(roles, list) else []


def _roles_plot(run: RecordedRun) -> Plot:
    lines = [_sampled(run, role, partial(_role_count, role), role) for role in abi.ROLES]
    return Plot("roles", "SMs by role", "seconds since the launch", [line for line in lines if line.y.any()],
                from_zero=True, counts=True)


def _role_count(role: str, sample: dict[str, Any]) -> int:
    return roles_of(sample).count(role)


def _busy_plot(run: RecordedRun) -> Plot:
    lines = [_sampled(run, role, partial(_busy_percent, role), role) for role in abi.ROLES if role != "idle"]
    return Plot("busy", "time inside tasks, % of an SM's time", "seconds since the launch",
                [line for line in lines if np.isfinite(line.y).any()], from_zero=True)


def _busy_percent(role: str, sample: dict[str, Any]) -> float:
    busy = sample.get("busy")
    pairs = zip(busy if isinstance(busy, list) else [], roles_of(sample), strict=False)
    shares = [number_or_nan(share) for share, its in pairs if its == role]
    return 100 * sum(shares) / len(shares) if shares else math.nan


def reading_names(run: RecordedRun) -> list[str]:
    """Readings of the machine that the record has."""
    names = {name: None for sample in run.samples for name in readings_of(sample)}
    return sorted(names, key=lambda name: [*READINGS, name].index(name))


def readings_of(sample: dict[str, Any]) -> dict[str, float]:
    device = sample.get("device")
    return {str(name): number_or_nan(value) for name, value in device.items()} if isinstance(device, dict) else {}


def _reading_plot(run: RecordedRun, name: str) -> Plot:
    label, unit, factor = READINGS.get(name, (name, "", 1.0))
    line = _sampled(run, label, lambda sample: readings_of(sample).get(name, math.nan) * factor, "machine")
    plain = "".join(c for c in name if c.isascii() and (c.isalnum() or c in "_-"))
    return Plot(f"reading-{plain}", f"{label}, {unit}" if unit else label, "seconds since the launch", [line],
                from_zero=True)


# --- how ------------------------------------------------------------------------------------------------------------


def svg_of(plot: Plot) -> str:
    canvas = SvgCanvas(WIDTH, HEIGHT, plot.title)
    draw_plot(plot, canvas)
    return canvas.encode()


def png_of(plot: Plot) -> bytes:
    canvas = PngCanvas(WIDTH, HEIGHT)
    draw_plot(plot, canvas)
    return canvas.encode()


@dataclass(frozen=True)
class _Frame:
    """Where values are on the canvas."""

    start: float
    end: float
    axis: Axis

    def x(self, values: np.ndarray) -> np.ndarray:
        return LEFT + (values - self.start) / (self.end - self.start) * (WIDTH - LEFT - RIGHT)

    def y(self, values: np.ndarray) -> np.ndarray:
        return TOP + (1 - self.axis.place(values)) * (HEIGHT - TOP - BOTTOM)


def draw_plot(plot: Plot, canvas: Canvas) -> None:
    """Draws a plot that is drawable."""
    lines = [_finite(line) for line in plot.lines if np.isfinite(line.y).any()]
    frame = _frame(plot, lines)
    _draw_axes(plot, frame, canvas)
    for above, line in zip(range(len(lines) - 1, -1, -1), lines, strict=True):
        if line.points:
            for at in _polyline(frame, line.x, line.y):
                canvas.marker(at, line.colour)
        elif line.band:
            _draw_band(frame, line, canvas)
        else:
            canvas.line(_polyline(frame, line.x, line.y), line.colour, 1.5 + 2.5 * above * plot.counts)
    _draw_legend(plot, lines, canvas)


def _finite(line: Line) -> Line:
    known = np.isfinite(line.y) & np.isfinite(line.x)
    return Line(line.name, line.x[known], line.y[known], line.colour, line.band, line.points)


def _frame(plot: Plot, lines: list[Line]) -> _Frame:
    x, y = np.concatenate([line.x for line in lines]), np.concatenate([line.y for line in lines])
    low, high = float(y.min()), float(y.max())
    zero_axis = Axis(min(0.0, low), max(high * 1.05, 1e-9), False)
    axis = zero_axis if plot.from_zero else value_axis(low, high, plot.log)
    start = 0.0 if 0 <= x.min() < AT_ZERO * x.max() else float(x.min())
    return _Frame(start, max(float(x.max()), start + 1e-3), axis)


def _polyline(frame: _Frame, x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    return list(zip(frame.x(x).tolist(), frame.y(y).tolist(), strict=True))


def _draw_band(frame: _Frame, line: Line, canvas: Canvas) -> None:
    """One value a unit of width: lowest, highest and, smoothed, their mean."""
    order = np.argsort(line.x, kind="stable")
    columns, low, high, mean = column_bounds(np.floor(frame.x(line.x[order])).astype(int), frame.y(line.y[order]))
    outline = [*zip(columns.tolist(), low.tolist(), strict=True),
               *zip(columns[::-1].tolist(), high[::-1].tolist(), strict=True)]
    if len(columns) > 1:
        canvas.band(outline, line.colour)
    canvas.line(list(zip(columns.tolist(), smooth(mean, SMOOTHED_COLUMNS).tolist(), strict=True)), line.colour, 1.5)


def _draw_axes(plot: Plot, frame: _Frame, canvas: Canvas) -> None:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in ticks(frame.axis, 16):
        if plot.counts and value % 1:
            continue
        y = float(frame.y(np.array(value)))
        canvas.line([(LEFT, y), (right, y)], "grid")
        canvas.text((LEFT - 6, y + 4), _label(value), "muted", "end")
    step = nice_step((frame.end - frame.start) / 8)
    for number in range(math.ceil(frame.start / step), math.floor(frame.end / step) + 1):
        x = float(frame.x(np.array(number * step)))
        canvas.line([(x, bottom), (x, bottom + 4)], "muted")
        canvas.text((x, bottom + 17), step_label(number * step) if step >= 1 else _label(number * step), "muted",
                    "middle")
    canvas.line([(LEFT, TOP), (LEFT, bottom), (right, bottom)], "muted")
    canvas.text((right, HEIGHT - 4), plot.x_label, "muted", "end")


def _label(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _draw_legend(plot: Plot, lines: list[Line], canvas: Canvas) -> None:
    canvas.text((LEFT, 16), plot.title, "text")
    if len(lines) < 2:
        return
    x = WIDTH - RIGHT
    for line in reversed(lines):
        canvas.text((x, 16), line.name, line.colour, "end")
        x -= 8 * len(line.name) + 16
