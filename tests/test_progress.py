"""The progress line of a terminal ends before anything else is printed."""

from __future__ import annotations

import io

from ofa_tui.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
