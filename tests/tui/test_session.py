"""How a run in the UI ends: the recording, the closing line and the engine agree on its last moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from app_session import Session, session
from fake_run import FakeEngine

from ofa_tui.commands import watch
from ofa_tui.commands.watch import live_recorder
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.record.reader import RecordedRun
from ofa_tui.tui import handlers
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.session import closing_line, take_the_end


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@asynccontextmanager
async def _recording() -> AsyncIterator[Session[FakeEngine]]:
    """A run that was recorded for a second; nothing was read of the two seconds after it, the last ones."""
    async with session() as run:
        run.app.options = UiOptions(recorder=live_recorder({}, run.engine.info))
        await run.press("r")
        await run.advance(1.0)
        run.wait(2.0)
        yield run


@pytest.mark.parametrize(("code", "reason"), [(0, "stopped"), (130, "SIGINT"), (143, "SIGTERM"), (129, "SIGHUP")])
async def test_a_recording_has_the_steps_up_to_the_stop_and_says_why_it_ends(
    code: int, reason: str, folder: Path
) -> None:
    async with _recording() as run:
        app, seen = run.app, run.app.model.losses.count
        run.engine.stop()
        take_the_end(app, code)
    record = RecordedRun(app.saved[0])
    assert record.ended and record.exit_reason == reason and not record.damage and app.recorder is None
    assert app.model.losses.count > seen + 10
    assert record.losses[-1].loss == pytest.approx(app.model.losses.values[-1])
    assert f"step {record.losses[-1].step + 1:,} of" in closing_line(app.model, app.saved)


@pytest.mark.parametrize(("failure", "reason"), [(AbortedError("SM 1 hangs"), "aborted"), (OfaError("no"), "failed")])
async def test_a_run_that_failed_is_not_asked_again(
    failure: OfaError, reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _recording() as run:
        run.app.failure = failure
        monkeypatch.setattr(run.engine, "poll", lambda: pytest.fail("asked"))
        take_the_end(run.app, 0)
    record = RecordedRun(run.app.saved[0])
    assert (record.exit_reason, record.message) == (reason, str(failure))


async def test_a_recording_that_broke_off_is_not_called_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(snapshot: object) -> None:
        raise OfaError("the disk is full")

    async with _recording() as run:
        monkeypatch.setattr(run.app.recorder, "write", full)
        run.engine.stop()
        take_the_end(run.app, 0)
    (broken,) = run.app.broken
    line = closing_line(run.app.model, run.app.saved, run.app.broken)
    assert "saved" not in line and line.endswith(f"recording broke off in ./{broken.name}")
    record = RecordedRun(broken)
    assert (record.exit_reason, record.message) == ("failed", "the disk is full")


def test_two_recordings_of_one_second_have_a_folder_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "datetime", SimpleNamespace(now=lambda: datetime(2026, 12, 1)))
    info = FakeEngine().info
    recordings = [live_recorder({}, info)() for _ in range(3)]
    for number, recording in enumerate(recordings):
        recording.close(str(number))
    name = "ofa-tui-2026-12-01-000000"
    assert [recording.folder for recording in recordings] == [folder / name, folder / f"{name}-2", folder / f"{name}-3"]
    assert [RecordedRun(recording.folder).exit_reason for recording in recordings] == ["0", "1", "2"]


async def test_screenshots_of_two_programs_in_one_second(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers.time, "strftime", lambda form: "now")
    (folder / "ofa-tui-now.svg").write_text("of another program")
    async with session(80, 24, options=UiOptions(screenshots=folder)) as run:
        run.app.do.perform("screenshot_svg")
        await run.app.workers.wait_for_complete()
    assert run.app.saved == [folder / "ofa-tui-now-2.svg"] and "<svg" in run.app.saved[0].read_text()
    assert (folder / "ofa-tui-now.svg").read_text() == "of another program"


async def test_whoever_quits_stops_the_run_before_the_recording(folder: Path) -> None:
    async with _recording() as run:
        run.app.do.leave()
        assert run.app.recorder is not None
        run.engine.stop()
        take_the_end(run.app, 0)
    assert RecordedRun(run.app.saved[0]).exit_reason == "stopped"
