"""What can be refused before starting, and that the terminal and the engine survive every way out."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from slow_link import spawn, wait_exit, watch

from ofa_tui.errors import OfaError
from ofa_tui.tui.colour import Depth, detect_depth
from ofa_tui.tui.terminal import check_terminal, input_closed

ROOT = Path(__file__).resolve().parents[2]
DEMO = str(Path(__file__).with_name("demo.py"))


def environment(**changes: str) -> dict[str, str]:
    base = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TEXTUAL_DRIVER")}
    return {**base, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **changes}


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_dumb_terminal_is_refused_with_the_way_out(term: str) -> None:
    with pytest.raises(OfaError, match=r"TERM.*--record"):
        check_terminal({"TERM": term})


def test_pipes_are_refused_before_anything_starts() -> None:
    command = [sys.executable, DEMO]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1 and "--record" in done.stderr


def test_a_locale_without_unicode_is_refused() -> None:
    pid, terminal = spawn([sys.executable, DEMO], 80, 24, environment(PYTHONIOENCODING="iso8859-1"))
    report = watch(pid, terminal, seconds=0.0, settle=20.0, until=b"terminal\r\n")
    assert wait_exit(pid, terminal) == 2
    assert b"LC_ALL=C.UTF-8" in report.output and b"\x1b[" not in report.output


def test_depths() -> None:
    assert detect_depth({"TERM": "xterm-256color", "COLORTERM": "truecolor"}) is Depth.TRUECOLOR
    assert detect_depth({"TERM": "screen-256color"}) is Depth.EIGHT_BIT
    assert detect_depth({"TERM": "linux", "TEXTUAL_COLOR_SYSTEM": "truecolor"}) is Depth.TRUECOLOR
    assert detect_depth({"TERM": "linux"}) is Depth.FOUR_BIT
    assert detect_depth({"TERM": "vt100"}) is Depth.NONE
    assert detect_depth({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}) is Depth.NONE


def test_a_closed_pipe_is_noticed() -> None:
    reader, writer = os.pipe()
    assert not input_closed(reader)
    os.close(writer)
    assert input_closed(reader)
    os.close(reader)


START, RESTORED = b"\x1b[?1049h", (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("ctrl-c", 0),
        pytest.param("SIGINT", 130, marks=pytest.mark.slow),
        ("SIGTERM", 143),
        ("SIGHUP", 129),
        ("abort", 3),
        ("crash", 2),
        ("bug", 70),
    ],
)
def test_every_way_out_restores_the_terminal(how: str, code: int) -> None:
    extra = ["--fail", how] if how in ("abort", "crash", "bug") else []
    pid, terminal = spawn([sys.executable, DEMO, "--report-stop", *extra], 100, 30, environment())
    report = watch(pid, terminal, seconds=0.0, settle=20.0, until=b"ofa-tui")
    assert START in report.output
    if how == "ctrl-c":
        os.write(terminal, b"\x03")
    elif how == "abort":
        watch(pid, terminal, seconds=0.0, settle=20.0, until=b"invented abort")
        os.write(terminal, b"q")
    elif how.startswith("SIG"):
        os.kill(pid, getattr(signal, how))
    output = bytearray()
    assert wait_exit(pid, terminal, 20.0, output) == code
    assert all(sequence in output for sequence in RESTORED)
    assert b"engine stopped" in output
    if extra:
        assert f"invented {how}".encode() in output.split(RESTORED[0])[-1], "said on the restored screen"
        assert re.search(rb"ofa-tui: step \d+ of 3,000 \S+ loss \d", output.split(RESTORED[0])[-1])
        assert b"Traceback" not in output


def test_a_terminal_that_goes_away_ends_the_run() -> None:
    """Closing the far side hangs up: no process and no engine may stay behind."""
    pid, terminal = spawn([sys.executable, DEMO], 100, 30, environment())
    watch(pid, terminal, seconds=0.0, settle=20.0, until=b"ofa-tui")
    os.close(terminal)
    assert wait_exit(pid, -1, 25.0) in (129, 1, -signal.SIGHUP)


@pytest.mark.slow
def test_keys_stay_quick_on_a_slow_link() -> None:
    pid, terminal = spawn([sys.executable, DEMO, "--depth", "256"], 120, 40, environment())
    report = watch(pid, terminal, seconds=8.0, rate=500e3, delay=0.03, key=b"g", echo=b"gamma")
    os.kill(pid, signal.SIGTERM)
    wait_exit(pid, terminal)
    assert len(report.echoes_s) >= 5
    assert sorted(report.echoes_s)[len(report.echoes_s) // 2] < 0.3
