"""Geometry of the loss curve."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.axes import Axis, column_bounds, nice_step, smooth, step_label, ticks, value_axis
from ofa_tui.tui import plot
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Box
from ofa_tui.tui.plot import Curve, PlotView, braille, curve_dots, draw_curve
from ofa_tui.tui.theme import load_themes


def test_a_straight_line_is_drawn_straight() -> None:
    steps = np.arange(101.0)
    _, line = curve_dots(steps, 100 - steps, 0, 100, Axis(0, 100, False), 101, 101)
    rows, columns = np.nonzero(line)
    assert np.abs(rows - columns).max() <= 1
    assert set(columns) == set(range(101))


def test_log_axis_puts_equal_ratios_at_equal_distances() -> None:
    axis = value_axis(1.0, 100.0, True)
    one, ten, hundred = axis.place(np.array([1.0, 10.0, 100.0]))
    assert abs((ten - one) - (hundred - ten)) < 1e-12
    assert not value_axis(-1.0, 1.0, True).log


def test_the_line_has_no_holes() -> None:
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=300))
    _, line = curve_dots(np.arange(300.0), values, 0, 299, value_axis(values.min(), values.max(), True), 120, 64)
    for left in range(119):
        upper, lower = np.flatnonzero(line[:, left]), np.flatnonzero(line[:, left + 1])
        assert upper.min() - 1 <= lower.max() and lower.min() - 1 <= upper.max()


def test_the_envelope_spans_least_and_greatest() -> None:
    steps, values = np.arange(1000.0), np.where(np.arange(1000) % 2, 1.0, 3.0)
    envelope, _ = curve_dots(steps, values, 0, 999, Axis(0, 4, False), 50, 41)
    assert envelope[10:31].all() and not envelope[:10].any() and not envelope[31:].any()


def test_parts_of_a_curve_make_up_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    steps, values = np.cumsum(rng.integers(1, 4, 1000)).astype(float), np.exp(rng.normal(size=1000))
    values[rng.integers(0, 1000, 60)] = np.nan
    values[300:420] = np.inf
    axis = value_axis(0.01, 40.0, True)
    windows = [(steps[0], steps[-1]), (steps[7], steps[801]), (steps[320] + 0.5, steps[330]), (steps[9], steps[9] + 1)]
    whole = [curve_dots(steps, values, *window, axis, 90, 40) for window in windows]
    monkeypatch.setattr(plot, "AT_ONCE", 7)
    for window, wanted in zip(windows, whole, strict=True):
        assert np.array_equal(curve_dots(steps, values, *window, axis, 90, 40), wanted)


def test_a_long_run_takes_no_more_memory_to_draw() -> None:
    steps = np.arange(2_000_000.0)
    curve, grid = Curve(steps, 3 + np.sin(steps), steps[:0], steps[:0]), Grid(200, 60, 0, 0)
    tracemalloc.start()
    draw_curve(grid, Box(0, 0, 200, 60), curve, PlotView(), next(iter(load_themes().values())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < steps.nbytes / 2


def test_column_bounds_and_smoothing() -> None:
    columns, low, high, mean = column_bounds(np.array([0, 0, 2, 2, 2]), np.array([1.0, 3.0, 5.0, 1.0, 0.0]))
    assert columns.tolist() == [0, 2] and low.tolist() == [1, 0] and high.tolist() == [3, 5] and mean.tolist() == [2, 2]
    assert np.allclose(smooth(np.full(20, 7.0), 5), 7.0)
    assert np.allclose(smooth(np.arange(20.0), 5), np.arange(20.0))


def test_ticks_are_round_inside_and_apart() -> None:
    for low, high in ((1.4, 9.0), (3.2, 3.9), (0.01, 12.0), (2.0, 2.001)):
        for log in (True, False):
            axis = value_axis(low, high, log)
            for rows in (5, 12, 20, 40):
                values = ticks(axis, rows)
                assert values == sorted(values) and len(values) >= 1
                assert all(axis.low <= v <= axis.high for v in values)
                places = axis.place(np.array(values)) * rows
                assert len(values) < 2 or np.diff(places).min() >= 1.5, (low, high, log, rows, values)
    assert ticks(value_axis(2.9, 10.8, True), 9) == [3, 5, 10]
    assert [nice_step(x) for x in (0.7, 1.2, 3, 51)] == [1, 2, 5, 100]
    assert [step_label(s) for s in (500, 1000, 1500, 20000)] == ["500", "1k", "1.5k", "20k"]


@given(st.floats(0.5, 11), st.floats(2.5, 20), st.integers(9, 40))
def test_both_halves_of_a_log_axis_have_a_tick(low: float, ratio: float, rows: int) -> None:
    axis = value_axis(low, low * ratio, True)
    places = axis.place(np.array(ticks(axis, rows))) * rows
    assert np.diff(places).min() >= 3 and places[0] < rows / 2 < places[-1]


def test_braille_bits() -> None:
    dots = np.zeros((4, 2), bool)
    dots[0, 0] = dots[3, 1] = True
    assert braille(dots).tolist() == [[0x81]]


def test_zoom_and_pan() -> None:
    view = PlotView()
    assert view.window(0, 1000) == (0, 1000)
    near = view.zoomed(0.5, 0, 1000)
    assert near.window(0, 1000) == (500, 1000)
    assert near.window(0, 1200) == (700, 1200), "follows the newest step"
    back = near.panned(-0.5, 0, 1000)
    assert back.window(0, 1000) == (250, 750) == back.window(0, 1200)
    assert back.panned(5, 0, 1000).end == 0
    assert near.zoomed(4, 0, 1000) == PlotView()
    assert view.zoomed(1e-9, 0, 1000).span == 8


def big_curve() -> Curve:
    steps = np.arange(4000.0)
    values = 2 + 6 * np.exp(-steps / 300) + 0.1 * np.random.default_rng(1).standard_normal(4000)
    return Curve(steps, values, np.arange(100.0, 4000, 100), 2 + 6 * np.exp(-np.arange(100.0, 4000, 100) / 300))


def test_draws_markers_axes_and_survives_odd_input() -> None:
    theme = load_themes()["dark"]
    grid = Grid(100, 20, theme.text, theme.background)
    draw_curve(grid, Box(0, 0, 100, 20), big_curve(), PlotView(), theme)
    text = "\n".join(grid.lines())
    assert text.count("◆") >= 20 and "5.00┤" in text and "2k" in text
    for values in ([], [np.nan], [3.0], [np.inf, 2.0, np.nan], [0.0, 0.0]):
        curve = Curve(np.arange(float(len(values))), np.array(values, float), np.zeros(0), np.zeros(0))
        for width, height in ((100, 20), (12, 5), (3, 1), (0, 0)):
            draw_curve(Grid(width, height, 0, 0), Box(0, 0, width, height), curve, PlotView(), theme)


def test_an_update_is_cheap() -> None:
    """The guide asks for 10 ms for 4,000 points at 100x20; processor time, with room for a busy machine."""
    theme, curve = load_themes()["dark"], big_curve()
    grid = Grid(100, 20, theme.text, theme.background)
    draw_curve(grid, Box(0, 0, 100, 20), curve, PlotView(), theme)
    best = float("inf")
    for _ in range(5):
        begin = time.thread_time()
        draw_curve(grid, Box(0, 0, 100, 20), curve, PlotView(), theme)
        best = min(best, time.thread_time() - begin)
    assert best < 0.02
