"""An app over a frozen engine, as tests drive it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pytest
from fake_run import FakeEngine
from textual.pilot import Pilot

from ofa_tui.engine.protocol import Engine, TimelinePart
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.flow import FrameFlow
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import screen_grid

SECONDS = 32


def test_card() -> np.ndarray:
    """u1 [200, 320]: every colour of the palette, a bar for each ramp; a grey ramp, a checker and a bar below."""
    card = np.zeros((200, 320), np.uint8)
    ramp = 31 - np.arange(96)[:, None] // 3
    card[:96] = (np.arange(320) // 40 * 32 + ramp).astype(np.uint8)
    card[96:124] = (np.arange(320) // 10).astype(np.uint8)
    y, x = np.mgrid[124:168, 0:320]
    card[124:168] = ((x // 16 + y // 16) % 2 * 28 + 2).astype(np.uint8)
    card[168:] = 5 * 32 + 20
    card[176:192, 40:120] = 2 * 32 + 28
    return card


test_card.__test__ = False  # type: ignore[attr-defined]


class StillApp(OfaApp):
    """Polls only when a test says so."""

    CSS_PATH = Path(inspect.getfile(OfaApp)).with_name("app.tcss")

    def start_polling(self) -> None: ...


E = TypeVar("E", bound=Engine)


class Session(Generic[E]):
    """An app over an engine whose clock stands still but for what `wait(seconds)` moves it by."""

    def __init__(self, app: OfaApp, engine: E, pilot: Pilot[int], wait: Callable[[float], object]) -> None:
        self.app, self.engine, self.pilot, self.wait = app, engine, pilot, wait

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def advance(self, seconds: float) -> None:
        self.wait(seconds)
        self.app._tick()
        await self.pilot.pause()
        self.app.repaint_all()

    def tick(self, seconds: float) -> bool:
        """One poll later; whether anything was painted for it."""
        self.wait(seconds)
        before = dict(self.app._painted)
        self.app._tick()
        return self.app._painted != before

    def text(self, pane: str | None = None) -> str:
        if pane is None:
            return "\n".join(line.rstrip() for line in screen_grid(self.app).lines())
        grid = self.app.panes[pane].grid
        return "\n".join(grid.lines()) if grid is not None else ""


@asynccontextmanager
async def session(
    columns: int = 120,
    rows: int = 40,
    *,
    sms: int = 4,
    games: int = 1,
    streams: int = 1,
    telling: int = 0,
    backend: str = "",
    options: UiOptions | None = None,
    depth: Depth = Depth.TRUECOLOR,
    moving: bool = False,
    timeline: Callable[[float, float], TimelinePart] | None = None,
    polling: bool = False,
    every_s: float = 4.0,
) -> AsyncIterator[Session[FakeEngine]]:
    """A run of SECONDS, looked at `every_s`; the panes' curves have a value for each half a second that was looked at.

    Without `polling` nothing is read or painted but for what the test does.
    """
    now = [0.0]

    def wait(seconds: float) -> None:
        now[0] += seconds

    engine = FakeEngine(sms, games=games, streams=streams, telling=telling, clock=lambda: now[0],
                        frozen_frame=None if moving else test_card())  # fmt: skip
    engine.start()
    engine.timeline = timeline or engine.timeline
    if backend:
        engine.info = replace(engine.info, backend=backend)
    app = (OfaApp if polling else StillApp)(engine, options=options or UiOptions(depth=depth))
    async with app.run_test(size=(columns, rows)) as pilot:
        app._take_snapshots()  # at 0, whether or not the app's own timer came first
        for _ in range(int(SECONDS / every_s)):
            wait(every_s)
            app._take_snapshots()
        app.repaint_all()
        await pilot.pause()
        yield Session(app, engine, pilot, wait)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The link's rate is measured in real time; no configuration of the machine's user."""
    monkeypatch.setattr(FrameFlow, "rate", lambda self, now: 35.0)
    monkeypatch.setenv("OFA_TUI_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("OFA_TUI_STATE", str(tmp_path / "state"))
