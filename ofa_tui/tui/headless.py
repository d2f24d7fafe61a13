"""The UI without a terminal: it is fed a run, and its screen of any moment is returned as cells."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from collections.abc import Iterable, Iterator

from textual.pilot import Pilot

from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.errors import AbortedError
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import screen_grid


class _StillApp(OfaApp):
    """Shows what its model was fed and never polls, so that its screen depends on nothing else."""

    def start_polling(self) -> None: ...

    def feed(self, snapshot: Snapshot) -> None:
        self.model.absorb(snapshot)
        if snapshot.state == "aborted":
            self.failure = AbortedError(snapshot.message or "the kernel stopped itself")


class StillScreen:
    """The app between two steps of its event loop, which runs only while a picture is taken."""

    def __init__(self, app: _StillApp, pilot: Pilot[int], runner: asyncio.Runner) -> None:
        self._app, self._pilot, self._runner = app, pilot, runner

    def feed(self, snapshot: Snapshot) -> None:
        """The next of the engine's snapshots, in order."""
        self._app.feed(snapshot)

    def cells(self) -> Grid:
        """The whole screen after all that it was fed, put together from the panes."""
        return self._runner.run(self._painted())

    async def _painted(self) -> Grid:
        app = self._app
        boxes = app.boxes(*app.size)
        if any(tuple(app.panes[name].size) != (box.width, box.height) for name, box in boxes.items()):
            app.relayout()
            await self._pilot.pause()
        screen = Grid(*app.size, app.colours.text, app.colours.background)
        for name, box in boxes.items():
            pane = app.panes[name]
            pane.repaint()
            if pane.grid is not None:
                screen.paste(pane.grid, box.x, box.y)
        return screen


@contextlib.contextmanager
def open_screen(engine: Engine, size: tuple[int, int], *, theme: str = "") -> Iterator[StillScreen]:
    """The screen of the engine's run, in true colour; `size` is (columns, rows). See `screen_of`."""
    app = _still_app(engine, theme)
    output, errors = sys.stdout, sys.stderr
    with asyncio.Runner() as runner:
        test = app.run_test(size=size)
        pilot = runner.run(_entered(test, app))
        try:
            # A running app takes what is printed; here the program goes on beside it.
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                yield StillScreen(app, pilot, runner)
        finally:
            runner.run(_left(test))


def screen_of(
    engine: Engine, snapshots: Iterable[Snapshot], size: tuple[int, int], *, theme: str = "", pane: str = ""
) -> Grid:
    """The whole screen after all `snapshots` of the engine's run, in true colour; `size` is (columns, rows).

    `pane`, one of layout.MAXIMISED, is shown maximised. The rate of the link, of which there is none, is left out.
    Raises OfaError for a theme that is not there.
    """
    app = _still_app(engine, theme)
    if pane:
        app.zoom = app.active = pane
    for snapshot in snapshots:
        app.feed(snapshot)
    return asyncio.run(_photograph(app, size))


def _still_app(engine: Engine, theme: str) -> _StillApp:
    app = _StillApp(engine, options=UiOptions(theme=theme, depth=Depth.TRUECOLOR))
    app.link_counts_from = math.inf
    return app


async def _photograph(app: OfaApp, size: tuple[int, int]) -> Grid:
    async with app.run_test(size=size) as pilot:
        app.clear_message()
        await pilot.pause()
        app.repaint_all()
        await pilot.pause()
        return screen_grid(app)


async def _entered(test: contextlib.AbstractAsyncContextManager[Pilot[int]], app: OfaApp) -> Pilot[int]:
    pilot = await test.__aenter__()
    app.clear_message()
    await pilot.pause()
    return pilot


async def _left(test: contextlib.AbstractAsyncContextManager[Pilot[int]]) -> None:
    await test.__aexit__(None, None, None)
