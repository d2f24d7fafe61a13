"""Whatever is open, a terminal of any size is survived, and shows all again once it is large enough."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from app_session import Session, session, steady  # noqa: F401

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
