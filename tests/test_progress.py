"""The progress line of a terminal ends before anything else is printed."""

from __future__ import annotations

import io

import pytest

from ofa_tui.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)


@pytest.mark.parametrize("term", ["dumb", "unknown", "", None])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(term: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if term is None:
        monkeypatch.delenv("TERM")
    else:
        monkeypatch.setenv("TERM", term)
    terminal = Terminal()
    with Progress("digging", 10, terminal) as progress:
        progress.update(1)
    assert terminal.getvalue() == "digging: 10%\n"


def test_a_line_that_is_left_is_ended_once() -> None:
    terminal = Terminal()
    with Progress("digging", 10, terminal) as progress:
        progress.update(1)
        assert not terminal.getvalue().endswith("\n")
    progress.end()
    assert terminal.getvalue().count("\n") == 1 and terminal.getvalue().endswith("\n")


def test_a_line_that_was_closed_or_never_drawn_gets_no_other() -> None:
    terminal = Terminal()
    with Progress("digging", 10, terminal):
        pass
    assert not terminal.getvalue()
    with Progress("digging", 10, terminal) as progress:
        progress.update(1)
        progress.close("done")
    assert terminal.getvalue().count("\n") == 1 and terminal.getvalue().endswith("took 0 s\n")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_pipe_gets_a_line_where_more_is_done_and_fewer_as_time_goes_on() -> None:
    pipe, clock = io.StringIO(), Clock()
    progress = Progress("digging", 1000, pipe, clock)
    for second in range(1000):
        clock.now = float(second)
        progress.update(min(second, 500), f"{second % 7} worms/s")
    lines = pipe.getvalue().splitlines()
    assert lines[0] == "digging: 0%, 0 worms/s" and lines[1] == "digging: 0%, 5 worms/s, about 16:35 left"
    assert 15 < len(lines) < 25 and "digging: 50%" in lines[-1]


def test_nothing_is_cut_and_a_line_of_several_rows_is_drawn_in_its_own_place() -> None:
    terminal, clock = Terminal(), Clock()
    progress = Progress("digging " + "deep " * 40, 10, terminal, clock)
    progress.update(1)
    clock.now = 1.0
    progress.update(2)
    first, second = terminal.getvalue().split("\r")[1:]
    rows = -(-len(first.removeprefix("\x1b[J")) // 80)
    assert rows == 4 and second.startswith(f"\x1b[{rows - 1}A\x1b[J") and "deep " * 40 in second
    progress.message("x" * 300)
    assert terminal.getvalue().endswith("x" * 300 + "\n")
