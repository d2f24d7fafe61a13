"""The introduction: shown once, by itself, and brought back by the key of the help."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_session import session, steady  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from replay_session import record, replaying
from textual.widgets import Static

from ofa_tui import locations
from ofa_tui.tui.actions import ACTIONS
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.dialogs import HelpScreen
from ofa_tui.tui.guide import STOPS, GuideScreen, place_beside
from ofa_tui.tui.layout import PANES, Box
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.preferences import Preferences


def test_it_visits_every_pane_and_names_actions_of_the_table() -> None:
    assert [stop.pane for stop in STOPS] == list(PANES)
    assert {name for stop in STOPS for name in stop.actions} <= {action.name for action in ACTIONS}


sides = st.integers(1, 60)


@given(st.builds(Box, sides, sides, sides, sides), sides, sides)
def test_the_box_stands_beside_the_pane_where_there_is_room(pane: Box, width: int, height: int) -> None:
    columns, rows = 120, 80
    x, y = place_beside(pane, width, height, columns, rows)
    assert 0 <= x <= columns - width and 0 <= y <= rows - height
    right, below = columns - pane.x - pane.width, rows - pane.y - pane.height
    if width <= max(pane.x, right) or height <= max(pane.y, below):
        apart_x = x + width <= pane.x or x >= pane.x + pane.width
        assert apart_x or y + height <= pane.y or y >= pane.y + pane.height


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize(("columns", "rows"), [(200, 60), (120, 40), (80, 24), (60, 18), (30, 8)])
async def test_the_first_run_goes_through_the_panes_once(columns: int, rows: int) -> None:
    marker: Path = locations.state() / "introduced"
    assert Preferences().options().introduce and not marker.exists()
    async with session(columns, rows, options=UiOptions(depth=Depth.TRUECOLOR, introduce=True)) as run:
        assert marker.exists()
        for number, stop in enumerate(STOPS, 1):
            assert isinstance(run.app.screen, GuideScreen) and run.app.active == stop.pane
            assert f"{number} of 5" in run.text() and stop.explanation.split()[0] in run.text()
            await run.press("enter")
        assert len(run.app.screen_stack) == 1 and run.app.active == "doom"
        assert not run.engine.posted and not run.engine.paused
    assert not Preferences().options().introduce


@pytest.mark.usefixtures("steady")
async def test_the_key_of_the_help_brings_it_back() -> None:
    async with session(options=UiOptions(depth=Depth.TRUECOLOR, keymap={"help": ("f1",), "prompt": ("v",)})) as run:
        await run.press("3", "f1")
        assert "f1 the panes" in run.text()
        await run.press("f1")
        assert isinstance(run.app.screen, GuideScreen)
        await run.press("enter", "enter", "enter")
        assert run.app.active == "serve" and "v write a prompt" in run.text() and "f1 all keys" in run.text()
        await run.press("left")
        assert run.app.active == "loss"
        await run.press("left", "left", "left")
        assert run.app.active == "doom"
        await run.press("f1")
        assert isinstance(run.app.screen, HelpScreen) and run.app.active == "loss"
        await run.press("f1", "escape")
        assert len(run.app.screen_stack) == 1 and run.app.active == "loss"


@pytest.mark.usefixtures("steady")
async def test_of_a_replay_it_says_nothing_that_only_a_live_run_can_do(tmp_path: Path) -> None:
    async with replaying(record(tmp_path / "run"), options=UiOptions(depth=Depth.TRUECOLOR, introduce=True)) as run:
        for stop in STOPS:
            assert isinstance(run.app.screen, GuideScreen) and run.app.active == stop.pane
            said = " ".join(run.app.screen.query_one(Static).visual.plain.split())  # type: ignore[attr-defined]
            assert said.startswith(stop.of_replay or stop.explanation)
            assert "live" not in said and "or you do" not in said and "prompt" not in said
            await run.press("enter")
