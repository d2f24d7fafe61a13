"""A cast, played into a terminal, shows what the screenshot of that moment shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from ansi_screen import AnsiScreen
from short_record import STEPS, make_record

from ofa_tui.cli import main
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.record.reader import RecordedRun
from ofa_tui.tui.cast import FRAMES_PER_S
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.headless import screen_of

COLUMNS, ROWS = 120, 40
ROUNDED_S = 1e-6
"""Times in a cast have so many decimals."""


class Cast:
    """The header and the events of a file, each checked against the format."""

    def __init__(self, path: Path) -> None:
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        self.header: dict[str, Any] = json.loads(first)
        assert (self.header["version"], self.header["width"], self.header["height"]) == (2, COLUMNS, ROWS)
        assert isinstance(self.header["timestamp"], int)
        assert all(isinstance(value, str) for value in self.header["env"].values())
        self.events: list[tuple[float, str]] = []
        for line in rest:
            at, kind, output = json.loads(line)
            assert kind == "o" and isinstance(output, str)
            assert at >= (self.events[-1][0] if self.events else 0)
            self.events.append((at, output))
        assert self.events[0][1].startswith("\x1b[?25l") and self.events[-1][1].endswith("\x1b[?25h")

    def screen(self, seconds: float) -> AnsiScreen:
        screen = AnsiScreen(COLUMNS, ROWS)
        for at, output in self.events:
            if at <= seconds:
                screen.feed(output)
        return screen

    def text(self, seconds: float = 1e9) -> str:
        return "\n".join("".join(cell.char for cell in row) for row in self.screen(seconds).rows)


def _screenshot(record: Path, seconds: float) -> Grid:
    """Through the compositor, as `ofa-tui screenshot` makes it."""
    engine = ReplayEngine(record, clock=lambda: 0.0)
    engine.start()
    engine.seek(seconds)
    return screen_of(engine, engine.passage(), (COLUMNS, ROWS))


def test_an_exported_cast_shows_the_screenshots_of_its_times(record: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    assert main(["export", str(record), "--cast", f"{COLUMNS}x{ROWS}", "-o", str(path)]) == 0
    cast, engine = Cast(path), ReplayEngine(record)
    assert cast.header["timestamp"] == int(datetime.fromisoformat(RecordedRun(record).run["started"]).timestamp())
    assert len(cast.events) <= (engine.end - engine.begin) * FRAMES_PER_S + 3
    times = sorted({at for at, _ in cast.events})
    for at in (times[0], times[len(times) // 3], times[2 * len(times) // 3], times[-1]):
        assert not cast.screen(at).shows(_screenshot(record, engine.begin + at + (ROUNDED_S / 2 if at else 0)))
    assert list(tmp_path.iterdir()) == [path]


def test_a_part_begins_at_its_own_zero(record: Path, tmp_path: Path) -> None:
    path = tmp_path / "part.cast"
    options = ["--from", "0.5", "--to", "0.8", "--theme", "light"]
    assert main(["export", str(record), "--cast", f"{COLUMNS}x{ROWS}", "-o", str(path), *options]) == 0
    times = [at for at, _ in Cast(path).events]
    assert times[0] == 0 and times[-1] == pytest.approx(0.3, abs=2 * ROUNDED_S)


def test_a_run_writes_its_cast_as_it_goes(tmp_path: Path) -> None:
    folder = make_record(tmp_path / "run", "--cast", f"{COLUMNS}x{ROWS}")
    cast = Cast(folder / "ui.cast")
    times = [at for at, _ in cast.events]
    assert len(times) <= times[-1] * FRAMES_PER_S + 3
    assert f"step {STEPS}/{STEPS}" in cast.text() and "finished" in cast.text() and "4 serve" in cast.text()
    assert "finished" not in cast.text(times[-1] / 2)


UNWRITABLE = {"nowhere/ui.cast": "No such file"}
"""Where a cast leads that cannot be written, and the reason. A device that is always full where the system has one."""
if Path("/dev/full").exists():
    UNWRITABLE["/dev/full"] = "No space left"


@pytest.mark.parametrize("target", UNWRITABLE)
def test_a_cast_that_cannot_be_written_is_one_sentence(tmp_path: Path, target: str) -> None:
    (tmp_path / "story.txt").write_text("Once there was a fox who lived under a hill.\n" * 500)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ui.cast").symlink_to(target)
    arguments = ["--record", "out", "--steps", "2", "--sms", "train=1,serve=0,doom=0", "--data", "story.txt",
                 "--tokenizer", "bytes", "--cast", "80x24"]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "ofa_tui", *arguments], cwd=tmp_path, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if line.startswith("ofa-tui: ")]
    assert done.returncode == 2 and len(said) == 1 and "ui.cast" in said[0] and UNWRITABLE[target] in said[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cast", "0x0"], ["--cast '0x0'", "120x40"]),
        (["--cast", "axb"], ["--cast 'axb'", "120x40"]),
        (["--cast", "9999x40"], ["--cast '9999x40'"]),
        (["--cast", "80x24", "-o", "ui.gif"], ["ui.gif", ".cast"]),
        (["--cast", "80x24", "-o", "nowhere/ui.cast"], ["nowhere/ui.cast", "folder that exists"]),
        (["--cast", "80x24", "--every", "2"], ["--every", "--cast"]),
        (["--cast", "80x24", "--game", "1"], ["--game", "--cast"]),
        (["--cast", "80x24", "--theme", "plaid"], ["plaid", "dark"]),
        (["--cast", "80x24", "--from", "999"], ["goes from second"]),
        (["--theme", "light"], ["--theme", "--cast"]),
    ],
)
def test_bad_input(
    record: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(record), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ofa-tui: ") and said.count("\n") == 1 and all(word in said for word in words)
    assert not os.listdir(tmp_path)
