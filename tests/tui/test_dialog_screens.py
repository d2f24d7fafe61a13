"""Golden screens of what comes on top of the panes or into them for a while: dialogs, the prompt line, the details of
an SM, the bar of a replay. In the default theme, at two sizes.

A file has the whole screen's characters, but for the game's picture, and what the cells of the dialog look like. After
a deliberate change, write the files anew and read their difference:

    OFA_TUI_WRITE_GOLDEN=1 ./scripts/test tests/tui/test_dialog_screens.py && git diff tests/tui/golden_dialogs
"""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields
from pathlib import Path
from string import ascii_letters, digits
from typing import Any, NamedTuple

import numpy as np
import pytest
from app_session import Session, session, steady  # noqa: F401
from fake_timeline import FACTS, between
from replay_session import replaying
from seen import picture_box
from textual.geometry import Region
from textual.widgets import Input

from ofa_tui.timeline.limits import Limits
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.dialogs import Palette
from ofa_tui.tui.grid import BOLD, Grid
from ofa_tui.tui.layout import Box
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import encode_png, screen_grid
from ofa_tui.tui.theme import Theme

GOLDEN = Path(__file__).parent / "golden_dialogs"
SIZES = ((120, 40), (60, 20))
OUTSIDE = "·"
"""The sign of cells that belong to the panes."""
SIGNS = ascii_letters + digits
MOST_LINES = 30
PALETTE_WAITS = 100
DAY = "2026-11-30"
"""On which the replayed run is said to have been recorded."""
Opened = AbstractAsyncContextManager[Session[Any]]


def pressed(*keys: str, **arguments: Any) -> Callable[[int, int, Path], Opened]:
    """A run of the fake engine after some keys."""

    @asynccontextmanager
    async def opened(columns: int, rows: int, record: Path) -> AsyncIterator[Session[Any]]:
        async with session(columns, rows, **arguments) as run:
            await run.press(*keys)
            yield run

    return opened


def replayed(*keys: str) -> Callable[[int, int, Path], Opened]:
    """A replay after two seconds and some keys."""

    @asynccontextmanager
    async def opened(columns: int, rows: int, record: Path) -> AsyncIterator[Session[Any]]:
        async with replaying(record, columns, rows) as run:
            run.engine.origin = (DAY,)
            await run.advance(2.0)
            await run.press(*keys)
            run.app.clear_message()
            run.app.repaint_all()
            yield run

    return opened


class Dialog(NamedTuple):
    open: Callable[[int, int, Path], Opened]
    pane: str = ""
    """Whose cells are looked at; else those of the widgets on top."""


TIMED = UiOptions(depth=Depth.TRUECOLOR, facts=FACTS, limits=Limits(1e6, 1e6, 1e6, "made up"))
FIRST_RUN = UiOptions(depth=Depth.TRUECOLOR, introduce=True)
DIALOGS = {
    "help": Dialog(pressed("?")),
    "guide-1": Dialog(pressed(options=FIRST_RUN)),
    "guide-4": Dialog(pressed("enter", "enter", "enter", options=FIRST_RUN)),
    "prompt": Dialog(pressed("/", *"Once")),
    "quit": Dialog(pressed("q")),
    "palette": Dialog(pressed(":")),
    "sm": Dialog(pressed("2", "down", "right"), "sms"),
    "sm-timeline": Dialog(pressed("2", "down", options=TIMED, timeline=between), "sms"),
    "sm-role": Dialog(pressed("2", "down", "enter")),
    "replay": Dialog(replayed(), "replay"),
    "replay-paused": Dialog(replayed("<", "space"), "replay"),
    "replay-end": Dialog(replayed("end"), "replay"),
    "replay-step": Dialog(replayed("o", *"12")),
    "replay-quit": Dialog(replayed("q")),
    "replay-help": Dialog(replayed("?")),
}
CASES = [(name, *size) for name in DIALOGS for size in SIZES]


def golden_file(name: str, columns: int, rows: int) -> Path:
    return GOLDEN / f"{name}-{columns}x{rows}.txt"


async def captured(name: str, columns: int, rows: int, record: Path) -> tuple[str, Grid]:
    """The text of the file, and the screen."""
    dialog = DIALOGS[name]
    async with dialog.open(columns, rows, record) as run:
        await settled(run)
        screen = screen_grid(run.app)
        box = run.app.boxes(*run.app.size)[dialog.pane] if dialog.pane else box_on_top(run)
        return describe(screen, box, picture_box(run.app), run.app.themes["dark"]), screen


async def settled(run: Session[Any]) -> None:
    """The palette has found its commands, and no cursor blinks."""
    app = run.app
    for field in app.screen.query(Input):
        field.cursor_blink = False
    before = ""
    for _ in range(PALETTE_WAITS):
        await run.pilot.pause(0.02 if isinstance(app.screen, Palette) else None)
        now = run.text()
        if now == before:
            break
        before = now
    app.repaint_all()
    await run.pilot.pause()


def box_on_top(run: Session[Any]) -> Box:
    """Where the widgets of the dialog are, or the prompt line."""
    app = run.app
    on_top = [app.query_one("#prompt")] if len(app.screen_stack) == 1 else app.screen.walk_children()
    region = Region.from_union([widget.region for widget in on_top if widget.display and widget.region])
    return Box(region.x, region.y, region.width, region.height)


def describe(screen: Grid, box: Box, picture: Box, theme: Theme) -> str:
    """Characters; a sign for the look of each cell in the box; what the signs mean, in the theme's names."""
    chars, signs = screen.char.copy(), np.full(screen.char.shape, ord(OUTSIDE), np.uint32)
    on_top = np.zeros(chars.shape, bool)
    on_top[box.y : box.y + box.height, box.x : box.x + box.width] = True
    hidden = np.zeros(chars.shape, bool)
    hidden[picture.y : picture.y + picture.height, picture.x : picture.x + picture.width] = True
    chars[hidden & ~on_top] = ord(" ")
    names: dict[int, str] = {}
    for field in fields(Theme):
        value = getattr(theme, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            names.setdefault(value, field.name)
    legend: dict[str, str] = {}
    for y, x in np.argwhere(on_top).tolist():
        ink, ground = (names.get(int(part[y, x]), f"{int(part[y, x]):06x}") for part in (screen.fg, screen.bg))
        bold = ", bold" if screen.attr[y, x] & BOLD and chars[y, x] != 32 else ""
        look = f"{'-' if chars[y, x] == 32 else ink} on {ground}{bold}"
        signs[y, x] = ord(legend.setdefault(look, SIGNS[len(legend)]))
    # Behind a wide character stands a 0.
    rows = [[f"|{''.join(chr(code) for code in row if code)}|" for row in part.tolist()] for part in (chars, signs)]
    meanings = [f"{sign} {look}" for look, sign in legend.items()]
    return "\n".join(["[characters]", *rows[0], "", "[styles]", *rows[1], "", "[legend]", *meanings]) + "\n"


@pytest.fixture
def same_names(steady: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """The help names the settings file and the program."""
    monkeypatch.setenv("OFA_TUI_CONFIG", "/made/up")
    monkeypatch.setenv("OFA_TUI_STARTED_AS", "ofa-tui")


if os.environ.get("OFA_TUI_WRITE_GOLDEN"):

    @pytest.mark.usefixtures("same_names")
    async def test_write_the_files_anew(folder: Path) -> None:
        GOLDEN.mkdir(exist_ok=True)
        for path in GOLDEN.glob("*.txt"):
            path.unlink()
        for case in CASES:
            (text, _) = await captured(*case, folder)
            golden_file(*case).write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("same_names")
@pytest.mark.parametrize("case", CASES, ids=lambda case: golden_file(*case).stem)
async def test_a_dialog_is_as_it_was(case: tuple[str, int, int], folder: Path, tmp_path: Path) -> None:
    was = golden_file(*case).read_text(encoding="utf-8")
    now, screen = await captured(*case, folder)
    if now != was:
        (tmp_path / "now.png").write_bytes(encode_png(screen))
        changes = list(difflib.unified_diff(was.splitlines(), now.splitlines(), "golden", "now", lineterm="", n=0))
        pytest.fail("\n".join([*changes[:MOST_LINES], f"drawn in {tmp_path / 'now.png'}"]), pytrace=False)


def test_there_is_a_file_for_every_case_and_no_other() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {golden_file(*case).name for case in CASES}
