"""Golden screens: every size, theme and colour depth, cell by cell, as a terminal shows them.

A screen that changed is reported by pane, row and column, and drawn as `golden.png` and `now.png` in the test's folder.
After a deliberate change, write the files anew and read their difference:

    OFA_TUI_WRITE_GOLDEN=1 ./scripts/test tests/tui/test_screens.py && git diff tests/tui/golden
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from app_session import session, steady, test_card  # noqa: F401
from golden_screens import (
    COMBINATIONS,
    GOLDEN,
    Capture,
    Comparison,
    Names,
    capture,
    compare,
    describe,
    parse_screen,
    read_colours,
    write_screen,
)
from seen import to_grid

from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import PANES
from ofa_tui.tui.screenshot import encode_png

pytestmark = pytest.mark.usefixtures("steady")
COLOURS = GOLDEN / "colours.txt"


class Case(NamedTuple):
    columns: int
    rows: int
    sms: int
    pane: str = ""
    """The one that shows where only one fits."""

    def __str__(self) -> str:
        return f"{self.columns}x{self.rows}-{self.sms}sm" + (f"-{self.pane}" if self.pane else "")

    @property
    def file(self) -> Path:
        return GOLDEN / f"{self}.txt"


CASES = (
    *(Case(*size, sms) for size in ((200, 60), (120, 40), (80, 24)) for sms in (132, 4)),
    *(Case(*size, 4, pane) for size in ((60, 20), (40, 12)) for pane in PANES),
    *(Case(*size, 132, "sms") for size in ((60, 20), (40, 12))),
)


async def captured(case: Case, change: Callable[[str, Grid], None] = lambda pane, grid: None) -> Capture:
    """The case in every theme and depth; `change` is done to each pane that was painted."""
    async with session(case.columns, case.rows, sms=case.sms) as run:
        for name, pane in run.app.panes.items():

            def painted(grid: Grid, name: str = name, paint: Callable[[Grid], None] = pane._paint_grid) -> None:
                paint(grid)
                change(name, grid)

            pane._paint_grid = painted
        if case.pane:
            run.app.do.perform(f"zoom_{case.pane}")
            await run.pilot.pause()
        return capture(run)


@pytest.fixture(scope="module")
def renewed() -> bool:
    return bool(os.environ.get("OFA_TUI_WRITE_GOLDEN"))


async def test_the_files_are_written_anew_where_that_is_asked_for() -> None:
    if not os.environ.get("OFA_TUI_WRITE_GOLDEN"):
        return
    names = Names()
    for path in GOLDEN.glob("*.txt"):
        path.unlink()
    for case in CASES:
        case.file.write_text(write_screen(describe(await captured(case), names)), encoding="utf-8")
    COLOURS.write_text(names.table(), encoding="utf-8")


def against_golden(case: Case, now: Capture) -> Comparison:
    colours = read_colours(COLOURS.read_text(encoding="utf-8"))
    return compare(parse_screen(case.file.read_text(encoding="utf-8")), colours, now)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_screen_is_as_it_was(case: Case, tmp_path: Path) -> None:
    found = against_golden(case, await captured(case))
    if found.report:
        for name, seen in (("golden", found.golden), ("now", found.now)):
            (tmp_path / f"{name}.png").write_bytes(encode_png(to_grid(seen, found.at[1])))
    assert not found.report, "\n".join([*found.report, f"drawn in {tmp_path}: golden.png, now.png ({found.at[0]})"])


def test_there_is_a_file_for_every_case_and_no_other() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {case.file.name for case in CASES} | {COLOURS.name}
