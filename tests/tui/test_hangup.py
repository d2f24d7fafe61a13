"""Whoever watched a real run is gone: the terminal hung up, or the browser's end of the pipes was closed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from slow_link import spawn, wait_exit
from test_terminal import environment

from ofa_tui.checkpoint.checkpoint import Checkpoint
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.record.reader import RecordedRun

COMMAND = [sys.executable, "-m", "ofa_tui", "--preset", "shakespeare-char", "--data", "story.txt",
           "--tokenizer", "bytes", "--steps", "100000", "--sms", "train=1,serve=1,doom=0"]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "story.txt").write_text("Once there was a fox who lived under a hill and liked the rain.\n" * 400)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "introduced").touch()
    return tmp_path


def recording(folder: Path) -> Path | None:
    """The one that the key `r` began, once it has three steps."""
    return next((path.parent for path in folder.glob("ofa-tui-*/loss.csv") if path.read_text().count("\n") > 3), None)


def follow(descriptor: int, met: Callable[[bytes], object], seconds: float = 120.0) -> None:
    """Reads, and answers position reports where it is a terminal, until what came meets the condition."""
    end, output = time.monotonic() + seconds, b""
    while not met(output):
        assert time.monotonic() < end, output[-2000:]
        if select.select([descriptor], [], [], 0.05)[0]:
            data = os.read(descriptor, 1 << 16)
            output += data
            if os.isatty(descriptor):
                os.write(descriptor, b"\x1b[5;5R" * data.count(b"\x1b[6n"))


def check_record(folder: Path) -> RecordedRun:
    path = recording(folder)
    assert path is not None
    run = RecordedRun(path)
    assert run.ended and not run.damage
    steps = [entry.step for entry in run.losses]
    assert steps == list(range(steps[0], steps[-1] + 1))
    replay = ReplayEngine(path)
    replay.seek(replay.end)
    assert replay.poll().steps_done == steps[-1] + 1
    return run


def test_a_terminal_that_hangs_up_leaves_a_checkpoint_and_a_whole_record(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    environ = environment(OFA_TUI_STATE=str(folder / "state"))
    pid, terminal = spawn([*COMMAND, "--checkpoints", "kept"], 100, 30, environ)
    follow(terminal, lambda output: output.count(b"\x1b[6n") > 20)
    os.write(terminal, b"r")
    follow(terminal, lambda _: recording(folder))
    os.close(terminal)
    assert wait_exit(pid, -1, 60.0) == 128 + signal.SIGHUP
    run = check_record(folder)
    (path,) = (folder / "kept").glob("*.safetensors")
    checkpoint = Checkpoint(path)
    checkpoint.check()
    assert checkpoint.step >= run.losses[-1].step + 1


def test_a_browser_that_goes_away_ends_the_run(folder: Path) -> None:
    """As textual-serve runs it: packets of a letter, four bytes of length and so many bytes."""
    environ = environment(
        TEXTUAL_DRIVER="textual.drivers.web_driver:WebDriver", TEXTUAL_COLOR_SYSTEM="truecolor", COLUMNS="100",
        ROWS="30", OFA_TUI_STATE=str(folder / "state"),
    )  # fmt: skip
    process = subprocess.Popen(COMMAND, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=(folder / "said").open("wb"))  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        follow(process.stdout.fileno(), lambda output: b"4 serve" in output)
        process.stdin.write(b"D" + (1).to_bytes(4, "big") + b"r")
        process.stdin.flush()
        follow(process.stdout.fileno(), lambda _: recording(folder))
        process.stdin.close()
        follow_end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < follow_end:
            if select.select([process.stdout], [], [], 0.05)[0]:
                os.read(process.stdout.fileno(), 1 << 16)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGHUP
    check_record(folder)
    said = (folder / "said").read_text()
    assert "the end of this run was not kept" in said and "--checkpoint-at-end" in said
    assert "Traceback" not in said and not list(folder.rglob("*.safetensors"))
