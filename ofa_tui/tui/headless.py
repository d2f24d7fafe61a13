"""The UI without a terminal: it is fed a run up to a moment, and its screen of that moment is returned as cells."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import screen_grid


class _StillApp(OfaApp):
    """Shows what its model was fed and never polls, so that its screen depends on nothing else."""

    def start_polling(self) -> None: ...


def screen_of(
    engine: Engine, snapshots: Iterable[Snapshot], size: tuple[int, int], *, theme: str = "", pane: str = ""
) -> Grid:
    """The whole screen after all `snapshots` of the engine's run, in true colour; `size` is (columns, rows).

    `pane`, one of layout.PANES, is shown maximised. The rate of the link, of which there is none, is left out. Raises
    OfaError for a theme that is not there.
    """
    app = _StillApp(engine, options=UiOptions(theme=theme, depth=Depth.TRUECOLOR))
    app.link_counts_from = math.inf
    if pane:
        app.zoom = app.active = pane
    for snapshot in snapshots:
        app.model.absorb(snapshot)
    return asyncio.run(_photograph(app, size))


async def _photograph(app: OfaApp, size: tuple[int, int]) -> Grid:
    async with app.run_test(size=size) as pilot:
        app.clear_message()
        await pilot.pause()
        app.repaint_all()
        await pilot.pause()
        return screen_grid(app)
