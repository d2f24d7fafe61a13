"""Whatever is open, a terminal of any size is survived, and shows all again once it is large enough."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from app_session import Session, session, steady  # noqa: F401
from replay_session import record, replaying
from textual.containers import Vertical
from textual.widgets import Static

from ofa_tui.tui.dialogs import QuitScreen
from ofa_tui.tui.options import UiOptions

pytestmark = pytest.mark.usefixtures("steady")

DIALOGS = {
    "help": ("?",), "palette": (":",), "palette, searched": (":", "t", "h"), "quit": ("q",), "prompt": ("/", "a", "b"),
    "role of an SM": ("2", "down", "enter"), "guide": ("?", "?"), "none": (),
}  # fmt: skip
SIZES = [(30, 11), (12, 5), (7, 3), (5, 2), (3, 9), (2, 1), (1, 60), (1, 1), (200, 1), (4, 4), (80, 24)]


@asynccontextmanager
async def opened(keys: tuple[str, ...]) -> AsyncIterator[Session]:
    async with session(120, 40, options=UiOptions()) as run:
        for key in keys:
            await run.press(key)
        yield run


@pytest.mark.parametrize("keys", DIALOGS.values(), ids=DIALOGS)
async def test_a_dialog_at_every_size(keys: tuple[str, ...]) -> None:
    async with opened(keys) as run:
        for size in [*SIZES, *SIZES]:
            await run.pilot.resize_terminal(*size)
            await run.pilot.pause()
        for _ in range(3):
            await run.press("escape")
        await run.pilot.resize_terminal(120, 40)
        await run.pilot.pause()
        assert "1 doom" in run.text() and "4 serve" in run.text() and len(run.app.screen_stack) == 1


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("introduce", [False, True])
async def test_a_start_at_every_size(size: tuple[int, int], introduce: bool) -> None:
    async with session(*size, options=UiOptions(introduce=introduce)) as run:
        await run.press("escape")
        await run.pilot.resize_terminal(120, 40)
        await run.pilot.pause()
        assert "1 doom" in run.text() and "4 serve" in run.text() and len(run.app.screen_stack) == 1


@pytest.mark.parametrize("columns", [80, 50])
@pytest.mark.parametrize("games", [1, 4])
async def test_a_single_row_is_the_title(columns: int, games: int) -> None:
    titles = []
    for rows in (5, 1):
        async with session(columns, rows, games=games) as run:
            if games > 1:
                await run.press("w")
            titles.append(run.text("doom").splitlines()[0])
    assert titles[0] == titles[1] and "E1M1 · explore" in titles[0]


@pytest.mark.parametrize("columns", [24, 30, 40, 80])
async def test_a_question_is_asked_whole(columns: int, tmp_path: Path) -> None:
    async with replaying(record(tmp_path / "run"), columns, 12) as run:
        await run.press("q")
        question = run.app.screen
        assert isinstance(question, QuitScreen)
        shown = question.query_one(Static)
        assert isinstance(shown.parent, Vertical)
        assert shown.parent.content_region.contains_region(shown.region)
        words = "The replay is not at its end. Leave it? y quit n go on"
        assert words in " ".join(" ".join(strip.text for strip in shown.render_lines(shown.size.region)).split())
