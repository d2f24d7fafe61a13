#!/usr/bin/env python3
"""Makes the pictures in docs/screens anew: a real run in the real UI, without a terminal, at three sizes.

    scripts/screens.py                                   # the default run, at its 1,000th step; minutes
    scripts/screens.py --at-step 300 -o shots --map E1M2 --theme light

It takes the options of a run, as `ofa-tui` does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui import settings
from ofa_tui.assemble import assemble, check
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import encode_png, screen_grid

SCREENS = Path(__file__).resolve().parents[1] / "docs" / "screens"
SIZES = ((200, 60), (120, 40), (80, 24))
SETTLED_S = 3.0
"""After this time every pane has been painted at the new size, and the rate over the link counts it alone."""


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
            path = folder / f"{columns}x{rows}.png"
            path.write_bytes(encode_png(screen_grid(app)))
            print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    settings.add_arguments(parser)
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--at-step", type=int, default=1000, metavar="N", help="when the pictures are made")
    parser.add_argument("-o", "--output", type=Path, default=SCREENS, metavar="FOLDER")
    options = parser.parse_args()
    chosen = settings.from_arguments(options)
    check(chosen, doom_required=True)
    options.output.mkdir(parents=True, exist_ok=True)
    engine = assemble(chosen, doom_required=True).engine
    app = OfaApp(engine, options=UiOptions(theme=options.theme, depth=Depth.TRUECOLOR))
    try:
        engine.start()
        asyncio.run(photograph(app, options.at_step, options.output))
    finally:
        engine.stop()
        app.games.close()


if __name__ == "__main__":
    try:
        main()
    except OfaError as error:
        sys.exit(str(error))
