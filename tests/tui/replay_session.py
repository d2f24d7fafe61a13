"""An app over a recorded run whose clock the test holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app_session import Session, StillApp

from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.options import UiOptions
from tests.record.fake_engine import FrozenClock, record_fake

STRETCH = 40
"""Of the clock of a long record."""


def record(folder: Path, *, long: bool = False) -> Path:
    """Records four seconds of a run; `long`: as if so much more time had passed between its samples."""
    record_fake(folder)
    if long:
        head, *lines = (folder / "loss.csv").read_text().splitlines()
        rows = (line.rsplit(",", 1) for line in lines)
        stretched = [f"{rest},{float(seconds) * STRETCH}" for rest, seconds in rows]
        (folder / "loss.csv").write_text("\n".join([head, *stretched]) + "\n")
    return folder


@asynccontextmanager
async def replaying(
    folder: Path, columns: int = 120, rows: int = 40, *, follow: bool = False, options: UiOptions | None = None
) -> AsyncIterator[Session[ReplayEngine]]:
    clock = FrozenClock()
    engine = ReplayEngine(folder, clock=clock, follow=follow)
    engine.start()
    app = StillApp(engine, options=options or UiOptions(depth=Depth.TRUECOLOR))
    async with app.run_test(size=(columns, rows)) as pilot:
        run = Session(app, engine, pilot, clock.sleep)
        await run.advance(0.0)
        yield run
