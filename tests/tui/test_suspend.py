"""Ctrl-Z, fg, bg, SIGSTOP: the shell gets its terminal back, and the UI takes it anew."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from job_shell import ENTERS, LEAVES, PROMPT, JobShell
from test_terminal import DEMO, environment

from ofa_tui.record.reader import RecordedRun
from ofa_tui.tui import suspend
from ofa_tui.tui.flow import FrameFlow

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[JobShell]:
    shell = JobShell(100, 30, environment(OFA_TUI_STATE=str(tmp_path)), tmp_path)
    try:
        shell.type(f"{sys.executable} {DEMO} --report-stop\n")
        shell.wait_for(lambda: shell.output.count(b"\x1b[6n") > 5)
        assert not shell.cooked
        yield shell
    finally:
        shell.close()


def stopped(shell: JobShell) -> bool:
    return shell.output.rfind(PROMPT.encode()) > shell.output.rfind(LEAVES) > 0


def drawn_again(shell: JobShell, since: int, *, entered: bool = True) -> None:
    """All of the screen, and pictures again; `entered`: on a screen of its own."""
    shell.wait_for(lambda: shell.output.count(b"\x1b[6n", since) > 5)
    assert (ENTERS in shell.output[since:]) == entered
    for pane in ("1 doom", "3 loss", "4 serve", "5 player", "0 T ", "ofa-tui"):
        assert pane in shell.text(since)
    assert not shell.cooked


def quit_with(shell: JobShell, code: int) -> None:
    shell.type("q")
    shell.wait_for_text("Stop this run?")
    shell.type("y")
    assert shell.exit_code() == code and "Traceback" not in shell.text()


def process_of(shell: JobShell) -> int:
    children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
    if not children.exists():
        pytest.skip("this system does not list a process's children")
    return int(children.read_text().split()[0])


def test_ctrl_z_gives_the_terminal_back_and_fg_draws_all_again(shell: JobShell) -> None:
    for _ in range(2):
        shell.type("\x1a")
        shell.wait_for(lambda: stopped(shell) and shell.cooked)
        before = len(shell.output)
        shell.command("echo $((6 * 7))")
        shell.wait_for_text("42\r\n", before)
        before = len(shell.output)
        shell.command("fg")
        drawn_again(shell, before)
        assert "held while this program was stopped" in shell.text(before)
    quit_with(shell, 0)


def test_the_run_is_held_meanwhile(shell: JobShell) -> None:
    def step(since: int) -> int:
        shell.wait_for_text("tiny  step ", since)
        return int(re.findall(r"tiny  step ([0-9,]+)", shell.text(since))[-1].replace(",", ""))

    shell.type("\x1a")
    shell.wait_for(lambda: stopped(shell))
    time.sleep(6)
    before = len(shell.output)
    first = step(0)
    shell.command("fg")
    drawn_again(shell, before)
    assert 0 <= step(before) - first < 60, "it makes 18 steps a second"


def test_in_the_background_it_stays_stopped(shell: JobShell) -> None:
    shell.type("\x1a")
    shell.wait_for(lambda: stopped(shell) and shell.cooked)
    before = len(shell.output)
    shell.command("bg")
    shell.follow(1.5)
    assert shell.cooked and ENTERS not in shell.output[before:]
    before = len(shell.output)
    shell.command("fg")
    drawn_again(shell, before)


def test_after_sigstop_the_screen_is_drawn_again_and_left_as_it_was(shell: JobShell) -> None:
    process = process_of(shell)
    os.kill(process, signal.SIGSTOP)
    shell.wait_for_text("Stopped")
    before = len(shell.output)
    shell.command("fg")
    drawn_again(shell, before, entered=False)
    os.kill(process, signal.SIGTERM)
    assert shell.exit_code() == 128 + signal.SIGTERM


def test_a_stray_sigcont_costs_a_redraw_and_nothing_more(shell: JobShell) -> None:
    process = process_of(shell)
    before = len(shell.output)
    os.kill(process, signal.SIGCONT)
    drawn_again(shell, before, entered=False)
    quit_with(shell, 0)


def test_a_headless_run_is_held_and_recorded_whole(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("Once there was a fox who lived under a hill and liked the rain.\n" * 400)
    shell = JobShell(120, 30, environment(), tmp_path)

    def steps() -> int:
        path = tmp_path / "out" / "loss.csv"
        return path.read_text().count("\n") - 1 if path.exists() else 0

    try:
        shell.type(f"{sys.executable} -m ofa_tui --record out --preset shakespeare-char --data story.txt --tokenizer "
                   "bytes --steps 60 --sms train=1,serve=1,doom=0\n")  # fmt: skip
        shell.wait_for(lambda: steps() >= 3, 120)
        shell.type("\x1a")
        shell.wait_for_text("Stopped")
        shell.follow(0.5)
        then = steps()
        shell.follow(1.5)
        assert steps() == then < 60
        shell.command("fg")
        shell.wait_for(lambda: (tmp_path / "out" / "summary.json").exists(), 120)
        assert shell.exit_code() == 0
    finally:
        shell.close()
    run = RecordedRun(tmp_path / "out")
    assert run.complete and [entry.step for entry in run.losses] == list(range(60))
    assert "stopped by SIGTSTP, and continued" in (tmp_path / "out" / "kernel.log").read_text()


@pytest.mark.parametrize("answered", [True, False])
async def test_the_program_leaves_once_the_terminal_has_answered(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell would take a late answer for typed text; for one that never comes the wait has an end."""
    monkeypatch.setattr(suspend, "ANSWERS_S", 1e9 if answered else 0.0)
    far, near = pty.openpty()
    app: Any = SimpleNamespace(flow=FrameFlow())
    driver: Any = SimpleNamespace(fileno=near)
    suspension = suspend.Suspension(app, driver)
    app.flow.sent(0.0, 0)  # a request alone, as before the first frame
    app.flow.sent(0.0, 5000)
    ended = asyncio.Event()
    try:
        suspension.leave(ended.set)
        suspension.leave(lambda: pytest.fail("it leaves once"))
        assert suspension.away and ended.is_set() != answered
        if answered:
            app.flow.acknowledged(0.1)
            await asyncio.sleep(3 * suspend.LOOK_EVERY_S)
            assert not ended.is_set()
            app.flow.acknowledged(0.2)
            await asyncio.wait_for(ended.wait(), 30)
    finally:
        suspension.close()
        os.close(far)
        os.close(near)
