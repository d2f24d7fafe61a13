"""What was shown once does not stay in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter

import pytest
from app_session import Session, session, steady  # noqa: F401
from fake_run import FakeEngine
from textual._styles_cache import StylesCache
from textual.dom import DOMNode
from textual.worker import Worker

from ofa_tui.tui import strips
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.screenshot import CELL_HEIGHT, CELL_WIDTH, encode_png

pytestmark = pytest.mark.usefixtures("steady")

DIALOGS = (
    ("question_mark",),
    ("question_mark", "question_mark"),
    ("q",),
    (":",),
    (":", "t", "h", "e"),
    ("2", "right", "enter"),
)
"""Keys that lead to one: help, guide, the quit question, the palette, its results, the roles of an SM."""


def _alive() -> Counter[str]:
    """Of Textual's nodes, the caches of what was rendered of them, and work in the background."""
    gc.collect()
    kinds = map(type, gc.get_objects())
    return Counter(kind.__name__ for kind in kinds if issubclass(kind, DOMNode | StylesCache | Worker))


async def _open_and_close_all(run: Session[FakeEngine]) -> None:
    for keys in DIALOGS:
        await run.press(*keys)
        assert len(run.app.screen_stack) > 1, keys
        while len(run.app.screen_stack) > 1:
            await run.press("escape")
        await run.press("t", "escape", "escape")


async def test_nothing_stays_of_a_closed_dialog() -> None:
    async with session(80, 24, games=0) as run:
        await _open_and_close_all(run)
        before = _alive()
        await _open_and_close_all(run)
        await _open_and_close_all(run)
        assert _alive() == before


async def test_colours_of_a_picture_under_a_dialog_are_forgotten_with_it() -> None:
    async with session(80, 24, moving=True) as run:
        kept = []
        for _ in range(4):
            await run.press("q")
            for _ in range(6):
                await run.advance(0.4)
            inside = strips._style.cache_info().currsize
            await run.press("escape")
            await run.pilot.pause()
            kept.append(strips._style.cache_info().currsize)
            assert inside > 100
        assert max(kept) == 0


def test_a_screenshot_takes_less_memory_than_its_pixels() -> None:
    grid = Grid(220, 64, 0xFFFFFF, 0)
    grid.char[:] = 0x2580
    encode_png(grid)
    tracemalloc.start()
    try:
        encode_png(grid)
        assert tracemalloc.get_traced_memory()[1] < 3 * grid.width * CELL_WIDTH * grid.height * CELL_HEIGHT
    finally:
        tracemalloc.stop()
