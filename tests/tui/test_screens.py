"""Golden screens: every size, theme and colour depth, cell by cell, as a terminal shows them.

A screen that changed is reported by pane, row and column, and drawn as `golden.png` and `now.png` in the test's folder.
After a deliberate change, write the files anew and read their difference:

    OFA_TUI_WRITE_GOLDEN=1 ./scripts/test tests/tui/test_screens.py && git diff tests/tui/golden
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from app_session import session, steady  # noqa: F401
from golden_compare import Comparison, compare
from golden_screens import (
    COLOURED,
    GOLDEN,
    THEMES,
    Capture,
    Names,
    capture,
    describe,
    parse_screen,
    read_colours,
    write_screen,
)
from seen import to_grid

from ofa_tui.tui.grid import BOLD, Grid
from ofa_tui.tui.layout import MAXIMISED
from ofa_tui.tui.screenshot import encode_png
from ofa_tui.tui.theme import load_themes

pytestmark = pytest.mark.usefixtures("steady")
COLOURS = GOLDEN / "colours.txt"


class Case(NamedTuple):
    columns: int
    rows: int
    sms: int
    pane: str = ""
    """The one that is maximised."""
    streams: int = 1
    """Of several the second one is selected; all but the first rest now and then."""
    games: int = 1

    def __str__(self) -> str:
        what = f"{self.sms}sm" if self.streams == 1 else f"{self.streams}streams"
        what += "" if self.games else "-nodoom"
        return f"{self.columns}x{self.rows}-{what}" + (f"-{self.pane}" if self.pane else "")

    @property
    def file(self) -> Path:
        return GOLDEN / f"{self}.txt"


SEVERAL = (((200, 60), 8), ((120, 40), 2), ((120, 40), 4), ((80, 24), 4), ((80, 24), 8))
"""Sizes and the streams that are told."""
CASES = (
    *(Case(*size, sms) for size in ((200, 60), (120, 40), (80, 24)) for sms in (132, 4)),
    *(Case(*size, 4, pane) for size in ((60, 20), (40, 12)) for pane in MAXIMISED),
    Case(120, 40, 4, "log"),
    *(Case(*size, 132, "sms") for size in ((60, 20), (40, 12))),
    *(Case(*size, 4, pane, streams) for size, streams in SEVERAL for pane in ("", "serve")),
    Case(60, 20, 4, "serve", 4),
    *(Case(*size, 4, games=0) for size in ((200, 60), (120, 40), (80, 24))),
)


async def captured(case: Case, change: Callable[[str, Grid], None] = lambda pane, grid: None) -> Capture:
    """The case in every theme and depth; `change` is done to each pane that was painted."""
    async with session(
        case.columns, case.rows, sms=case.sms, games=case.games, streams=case.streams, telling=1, every_s=0.5
    ) as run:
        for name, pane in run.app.panes.items():

            def painted(grid: Grid, name: str = name, paint: Callable[[Grid], None] = pane._paint_grid) -> None:
                paint(grid)
                change(name, grid)

            pane._paint_grid = painted
        if case.streams > 1:
            run.app.do.perform("next_stream")
        if case.pane:
            run.app.do.perform(f"zoom_{case.pane}")
            await run.pilot.pause()
        return capture(run)


if os.environ.get("OFA_TUI_WRITE_GOLDEN"):

    async def test_write_the_files_anew() -> None:
        names = Names()
        for path in GOLDEN.glob("*.txt"):
            path.unlink()
        for case in CASES:
            screen = describe(await captured(case), names)
            case.file.write_text(write_screen(screen), encoding="utf-8")
            assert parse_screen(case.file.read_text(encoding="utf-8")) == screen
        COLOURS.write_text(names.table(), encoding="utf-8")


def against_golden(case: Case, now: Capture) -> Comparison:
    colours = read_colours(COLOURS.read_text(encoding="utf-8"))
    assert all({theme for theme, _ in known} == set(THEMES) for known in colours.values()), "themes came or went"
    return compare(parse_screen(case.file.read_text(encoding="utf-8")), colours, now)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_screen_is_as_it_was(case: Case, tmp_path: Path) -> None:
    found = against_golden(case, await captured(case))
    if found.report:
        for name, seen in (("golden", found.golden), ("now", found.now)):
            (tmp_path / f"{name}.png").write_bytes(encode_png(to_grid(seen, found.at[1])))
        drawn = f"drawn in {tmp_path}: golden.png, now.png, in {found.at[0]} at {found.at[1].value}"
        pytest.fail("\n".join([f"{case} is not as it was", *found.report, drawn]), pytrace=False)


def test_there_is_a_file_for_every_case_and_no_other() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {case.file.name for case in CASES} | {COLOURS.name}


SMALL = Case(80, 24, 132)


async def test_a_cell_that_changes_is_found() -> None:
    """A character, an ink, a ground, a weight, and a pixel of the game, each in one cell of one pane."""

    def change(pane: str, grid: Grid) -> None:
        if pane == "loss":
            grid.char[2, 20] = ord("⣿")
        elif pane == "serve":
            grid.fg[3, 1] ^= 0x0000FF
        elif pane == "sms":
            grid.bg[0, 5] ^= 0x00FF00
        elif pane == "tiles":
            grid.attr[0, 14] ^= BOLD
        elif pane == "doom":
            grid.char[9, 30], grid.fg[9, 30], grid.bg[9, 30] = ord("▀"), 0x00FF00, 0xFF00FF

    report = "\n".join(against_golden(SMALL, await captured(SMALL, change)).report)
    for pane, place in (("loss", "row 3, column 21"), ("serve", "row 4, column 2"), ("sms", "row 1, column 6"),
                        ("tiles", "row 1, column 15"), ("doom", "row 10, column 31")):  # fmt: skip
        assert f"{pane}: 1 cells" in report and f"  {place}: " in report
    assert all(f"doom: 1 rows of the picture at {depth.value}" in report for depth in COLOURED)


async def test_a_colour_that_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    themes = load_themes()
    themes["ember"] = replace(themes["ember"], muted=themes["ember"].muted + 0x000500)
    monkeypatch.setattr("ofa_tui.tui.app.load_themes", lambda: themes)
    report = against_golden(SMALL, await captured(SMALL)).report
    assert any(line.startswith("colour muted in ember: a08f7a, was a08a7a at truecolor") for line in report), report
    assert not any(theme in line for line in report for theme in THEMES if theme != "ember")
