"""An error in a dialog closes the dialog, not the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_session import session, steady  # noqa: F401
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.command import CommandList
from textual.widgets import Static

from ofa_tui.tui.dialogs import Dialog, Palette

pytestmark = pytest.mark.usefixtures("steady")


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path))
    return tmp_path / "crash.log"


class FailingText(Static, can_focus=True):
    def on_key(self, event: events.Key) -> None:
        raise IndexError("invented")


class FailingDialog(Dialog):
    BINDINGS = [Binding("c", "fail")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield FailingText("text")

    def on_key(self, event: events.Key) -> None:
        if event.key == "w":
            raise KeyError("invented too")
        if event.key == "b":
            self.app.run_worker(self.work())

    def action_fail(self) -> None:
        raise ValueError("invented, too")

    async def work(self) -> None:
        raise LookupError("invented as well")


class Hasty(Dialog):
    def on_key(self, event: events.Key) -> None:
        self.dismiss(event.key)


async def test_the_palette_closes_once() -> None:
    async with session(100, 30) as run:
        await run.press(":")
        palette = run.app.screen
        assert isinstance(palette, Palette)
        palette.dismiss()
        palette.dismiss()
        await run.pilot.pause()
        assert len(run.app.screen_stack) == 1 and "failed" not in run.text("footer")


async def test_the_palette_pages_through_a_list_without_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Textual's is while it has not been laid out."""
    async with session(100, 30) as run:
        await run.press(":")
        await run.pilot.pause()
        entries = run.app.screen.query_one(CommandList)
        assert entries.option_count
        entries.highlighted = 0
        monkeypatch.setattr(CommandList, "_index_to_line", {})
        await run.press("pageup")
        await run.press("pagedown")
        assert isinstance(run.app.screen, Palette) and "failed" not in run.text("footer")


async def test_a_key_pressed_twice_closes_once() -> None:
    answers: list[object] = []
    async with session(100, 30) as run:
        dialog = Hasty()
        run.app.push_screen(dialog, answers.append)
        await run.pilot.pause()
        for key in "ab":
            dialog.post_message(events.Key(key, key))
        await run.pilot.pause()
        assert answers == ["a"] and len(run.app.screen_stack) == 1
        assert "failed" not in run.text("footer")


@pytest.mark.parametrize("key", ["w", "a", "b", "c"])
async def test_it_is_closed_and_the_rest_goes_on(key: str, log: Path) -> None:
    async with session(100, 30) as run:
        run.app.push_screen(FailingDialog())
        await run.pilot.pause()
        if key == "a":
            run.app.screen.query_one(FailingText).focus()
            await run.pilot.pause()
        await run.press(key)
        await run.pilot.pause()
        assert len(run.app.screen_stack) == 1 and "a dialog failed" in run.text("footer")
        assert "invented" in log.read_text()
        await run.press("?")
        assert len(run.app.screen_stack) == 2
        await run.press("escape")
        await run.press("y")
        assert "linear" in run.text("loss")
