"""The SM pane's table of a run that keeps a timeline."""

from __future__ import annotations

import re

import pytest
from app_session import session, steady  # noqa: F401
from fake_timeline import FACTS, between

from ofa_tui import abi
from ofa_tui.engine.protocol import TimelinePart
from ofa_tui.timeline.limits import Limits
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.task_times import MOST_ROWS, TaskTimes

pytestmark = pytest.mark.usefixtures("steady")
OPTIONS = UiOptions(depth=Depth.TRUECOLOR, facts=FACTS, limits=Limits(1e6, 1e6, 1e6, "made up"))


def row(text: str, name: str) -> list[str]:
    """The figures after a name where it stands first, in the left table if there are two."""
    line, *_ = [line for line in text.splitlines() if re.search(rf"(^|\W){name}  ", line)]
    return line.partition(name)[2].split()


async def test_the_whole_and_the_selected_sm_have_a_table() -> None:
    async with session(160, 50, options=OPTIONS, timeline=between) as running:
        await running.press("2")
        text = running.text("sms")
        assert "all 2 SMs that train · 100.000 ms a step" in text
        assert row(text, "fc1")[:4] == ["40.000", "20.0%", "1.0", "40,000.0"]
        assert row(text, "publish")[:2] == ["10.000", "5.0%"]
        assert row(text, "waiting")[:2] == ["5.000", "2.5%"]
        assert row(text, "between tasks")[:2] == ["105.000", "52.5%"]
        assert row(text, "sum")[:2] == ["200.000", "100.0%"]
        await running.press("down")
        text = running.text("sms")
        assert "SM 0 train · " in text and "all 2 SMs that train · " in text
        assert row(text, "sum")[:2] == ["100.000", "100.0%"]
        await running.press("down", "down")
        text = running.text("sms")
        assert "SM 2 serve · 25.000 ms a token" in text and row(text, "token: sample")[:2] == ["1.000", "4.0%"]


async def test_a_narrow_pane_shows_the_selected_sm_alone() -> None:
    async with session(80, 24, options=OPTIONS, timeline=between) as running:
        await running.press("2", "down")
        text = running.text("sms")
        assert "SM 0 train" in text and "all 2 SMs" not in text
        assert row(text, "fc1")[0] == "40.000" and row(text, "sum")[0] == "100.000"


async def test_without_a_timeline_the_pane_is_as_it_was() -> None:
    async with session(160, 50) as running:
        await running.press("2")
        assert "between tasks" not in running.text("sms")


def test_only_so_much_is_kept() -> None:
    times = TaskTimes(4, FACTS, None)
    for tenth in range(600):
        times.absorb(between(tenth / 10, (tenth + 1) / 10), (tenth + 1) / 10)
    assert 45 <= times.tables[abi.TRAIN].iterations <= 52 and not times.lost
    crowd = between(60.0, 61.0)
    many = TimelinePart(crowd.sms.repeat(500), crowd.entries.repeat(500), crowd.lost + 7)
    for second in range(60, 70):
        times.absorb(many, second / 1000 + 60)
    assert times.lost == 10 * 4 * 7
    assert all(sum(len(part.sms) for _, part in kept) <= MOST_ROWS for kept in times._parts.values())
