#!/usr/bin/env python3
"""Makes the pictures in docs/img anew: a real run in the real UI, without a terminal, at three sizes; and of a record
three moments of its replay, and the page of its report.

    scripts/screens.py                                   # the default run, at its 1,000th step; minutes
    scripts/screens.py --at-step 300 -o shots --map E1M2 --theme light
    scripts/screens.py --of out                          # of what `ofa-tui --record out` wrote

The first takes the options of a run, as `ofa-tui` does. The report needs Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui import settings
from ofa_tui.assemble import assemble, check
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report import write_report
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.headless import screen_of
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import rasterise, screen_grid

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "img"
SIZES = ((200, 60), (120, 40), (80, 24))
SETTLED_S = 3.0
"""After this time every pane has been painted at the new size, and the rate over the link counts it alone."""
REPLAY_SIZE = (160, 48)
REPLAY_MOMENTS = {"begin": 0.1, "middle": 0.5, "end": 1.0}
"""Shares of the record's time."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGE_WIDTH, PAGE_HEIGHT = 1000, 2330


def save(picture: Image.Image, path: Path) -> None:
    picture.save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1000} kB")


def save_screen(grid: Grid, path: Path) -> None:
    save(rasterise(grid), path)


# --- of a new run ---------------------------------------------------------------------------------------------------


async def photograph(app: OfaApp, at_step: int, folder: Path) -> None:
    """Waits for the step, then writes `COLUMNSxROWS.png` for each of SIZES."""
    async with app.run_test(size=SIZES[0]) as pilot:
        with Progress("waiting for the step", at_step) as progress:
            while (done := app.model.snapshot.steps_done if app.model.snapshot else 0) < at_step:
                if app.model.finished:
                    raise OfaError(f"the run ended at step {done}, before step {at_step}")
                progress.update(done, f"step {done}")
                await asyncio.sleep(0.5)
        for columns, rows in SIZES:
            await pilot.resize_terminal(columns, rows)
            await asyncio.sleep(SETTLED_S)
            app.repaint_all()
            save_screen(screen_grid(app), folder / f"{columns}x{rows}.png")


def picture_run(options: argparse.Namespace) -> None:
    chosen = settings.from_arguments(options)
    check(chosen, doom_required=True)
    engine = assemble(chosen, doom_required=True).engine
    app = OfaApp(engine, options=UiOptions(theme=options.theme, depth=Depth.TRUECOLOR))
    try:
        engine.start()
        asyncio.run(photograph(app, options.at_step, options.output))
    finally:
        engine.stop()
        app.games.close()


# --- of a record ----------------------------------------------------------------------------------------------------


def picture_record(record: Path, theme: str, folder: Path) -> None:
    for name, share in REPLAY_MOMENTS.items():
        engine = ReplayEngine(record, clock=lambda: 0.0)
        engine.start()
        engine.seek(engine.begin + share * (engine.end - engine.begin))
        save_screen(screen_of(engine, engine.passage(), REPLAY_SIZE, theme=theme), folder / f"replay-{name}.png")
    with tempfile.TemporaryDirectory() as scratch:
        page = write_report(RecordedRun(record), Path(scratch))[0]
        save(photograph_page(page, Path(scratch)), folder / "report.png")


def photograph_page(page: Path, scratch: Path) -> Image.Image:
    """The top of the page in a browser without a window. Raises OfaError where there is none."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise OfaError(f"a picture of the report needs one of {', '.join(BROWSERS)}; install it")
    picture = scratch / "page.png"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", f"--user-data-dir={scratch / 'profile'}",
         "--hide-scrollbars", f"--window-size={PAGE_WIDTH},{PAGE_HEIGHT}", f"--screenshot={picture}", page.as_uri()],
        check=True, capture_output=True, timeout=120)  # fmt: skip
    return Image.open(picture).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    settings.add_arguments(parser)
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--at-step", type=int, default=1000, metavar="N", help="when the pictures are made")
    parser.add_argument("--of", type=Path, metavar="DIR", help="a folder that --record wrote, in place of a new run")
    parser.add_argument("-o", "--output", type=Path, default=PICTURES, metavar="FOLDER")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.of is None:
        picture_run(options)
    else:
        picture_record(options.of.resolve(), options.theme, options.output)


if __name__ == "__main__":
    try:
        main()
    except OfaError as error:
        sys.exit(str(error))
