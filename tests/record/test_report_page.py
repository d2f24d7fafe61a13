"""A report's page holds nothing but what was recorded, and its plots show the values that were recorded."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fake_engine import record_fake
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report import write_report
from ofa_tui.record.report_html import element, page, text
from ofa_tui.record.report_plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw_plot, loss_plot, plots_of
from ofa_tui.record.report_sections import evenly, flat


class _Reader(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")) | st.text("<>&'\"/!-= ab\x00\x1b\x85"))
def test_text_stays_text(value: str) -> None:
    read = _Reader(element("pre", value, title=value))
    assert read.tags == ["pre"] and len(read.text) == len(value)
    assert all(ours in (theirs, "\ufffd") for ours, theirs in zip(read.text, value, strict=True))
    assert not any(c < " " and c not in "\t\n" for c in read.text)


def test_lone_surrogates_can_be_written() -> None:
    assert "\ufffd" in page("\ud800", text("\udc80")).decode("utf-8")


class _Canvas:
    """Keeps what is drawn."""

    def __init__(self) -> None:
        self.markers: list[tuple[float, float]] = []
        self.texts: list[tuple[float, float, str, str]] = []
        self.lines: list[tuple[list[tuple[float, float]], str]] = []
        self.bands: list[list[tuple[float, float]]] = []

    def line(self, points, colour, width=1.0) -> None:
        self.lines.append((list(points), colour))

    def band(self, points, colour) -> None:
        self.bands.append(list(points))

    def marker(self, at, colour) -> None:
        self.markers.append(at)

    def text(self, at, text, colour, anchor="start") -> None:
        self.texts.append((*at, text, anchor))


def _values(canvas: _Canvas, at: list[tuple[float, float]], log: bool) -> np.ndarray:
    """f8 [n, 2]: what a person reads off the axes' labels for these points."""
    across = [(x, float(label)) for x, _, label, anchor in canvas.texts if anchor == "middle"]
    up = [(y - 4, float(label)) for x, y, label, anchor in canvas.texts if anchor == "end" and x < LEFT]
    bend = np.log if log else np.asarray
    slope_x, first_x = np.polyfit(*np.array(across).T, 1)
    slope_y, first_y = np.polyfit(np.array(up)[:, 0], bend(np.array(up)[:, 1]), 1)
    x, y = np.array(at).T
    values = slope_y * y + first_y
    return np.stack([slope_x * x + first_x, np.exp(values) if log else values], axis=1)


def test_the_loss_plot_reads_as_the_recorded_losses(tmp_path: Path) -> None:
    record_fake(tmp_path / "run")
    run = RecordedRun(tmp_path / "run")
    plot, canvas = loss_plot(run), _Canvas()
    draw_plot(plot, canvas)
    assert plot.log
    read = _values(canvas, canvas.markers, log=True)
    assert np.allclose(read, [(sweep.step, sweep.loss) for sweep in run.sweeps], rtol=1e-3)
    ((curve, _),) = [line for line in canvas.lines if line[1] == "train"]
    steps, losses = _values(canvas, curve, log=True).T
    true = np.interp(steps, [entry.step for entry in run.losses], [entry.loss for entry in run.losses])
    assert np.abs(losses / true - 1).max() < 0.1, "smoothed"
    assert len(curve) == len(run.losses)
    assert curve[0][0] < curve[-1][0] and curve[0][1] < curve[-1][1], "steps to the right, a lower loss lower down"


def test_everything_is_drawn_inside_the_picture(tmp_path: Path) -> None:
    record_fake(tmp_path / "run")
    run = RecordedRun(tmp_path / "run")
    for plot in plots_of(run, run):
        canvas = _Canvas()
        draw_plot(plot, canvas)
        drawn = [canvas.markers, *(line for line, _ in canvas.lines), *canvas.bands]
        points = [point for shape in drawn for point in shape]
        assert all(LEFT - 2 <= x <= WIDTH - RIGHT + 1 and TOP - 1 <= y <= HEIGHT - BOTTOM + 5 for x, y in points)
    assert {"loss", "roles", "tokens", "served", "frames", "busy", "reading-cpu_percent"} == {
        plot.name for plot in plots_of(run)}


def test_losses_that_are_no_numbers_or_below_zero_still_make_a_page(tmp_path: Path) -> None:
    (tmp_path / "loss.csv").write_text("step,loss,lr,seconds\n0,nan,1,1\n1,inf,1,2\n2,-3,1,3\n3,-2,1,4\n")
    run = RecordedRun(tmp_path)
    assert not loss_plot(run).log
    written = write_report(run, tmp_path / "report")
    assert [path.name for path in written] == ["report.html", "loss.png"]
    assert "2 losses are not finite" in written[0].read_text()


def test_a_record_without_anything_in_it(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[")
    (page,) = write_report(RecordedRun(tmp_path), tmp_path / "report")
    read = _Reader(page.read_text())
    assert "nothing" in read.text and "no sweep was finished" in read.text and "svg" not in read.tags


@pytest.mark.parametrize(
    "sample",
    [
        {"roles": "train", "busy": None, "device": [1], "op_seconds": 3},
        {"roles": [1, None], "busy": ["x", 2], "device": {"<b>": "1", "power_w": None}, "op_seconds": {"a": "b"}},
        {"tokens_per_s": "many", "step": "<i>", "served_per_s": None, "frames_per_s": 1e308, "seconds": math.inf},
    ],
)
def test_damaged_samples_are_left_out(tmp_path: Path, sample: dict[str, object]) -> None:
    record_fake(tmp_path / "run")
    with (tmp_path / "run" / "progress.jsonl").open("a") as file:
        file.write(json.dumps({"seconds": 2.5} | sample) + "\n")
    written = write_report(RecordedRun(tmp_path / "run"), tmp_path / "report")
    read = _Reader(written[0].read_text())
    assert "i" not in read.tags and "loss.png" in [path.name for path in written]


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(2, 12))
def test_evenly_keeps_both_ends_and_the_order(count: int, most: int) -> None:
    chosen = evenly(range(count), most)
    assert chosen == sorted(set(chosen)) and len(chosen) == min(count, most)
    assert not count or (chosen[0], chosen[-1]) == (0, count - 1)


def test_flat_names_every_value_and_no_place() -> None:
    values = {"a": {"b": [1, None], "c": []}, "wad": "/home/someone/doom.wad"}
    assert list(flat(values)) == [("a.b.0", "1"), ("a.b.1", "none"), ("a.c", "[]"), ("wad", "doom.wad")]
