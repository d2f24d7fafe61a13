"""The terminal UI. Importing this package loads Textual only when `run_ui` is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ofa_tui.engine.protocol import Engine
    from ofa_tui.tui.options import UiOptions


def run_ui(engine: Engine, options: UiOptions | None = None) -> int:
    """Starts `engine`, shows it until the person quits, stops it. Returns the exit code.

    Without `options` they are those of the person's settings file.

    A terminal that cannot move its cursor gets the run in lines. Raises OfaError before anything is started where
    nothing can be shown, and AbortedError after the terminal is restored where the kernel stopped itself.
    """
    import os

    from ofa_tui.tui.terminal import check_terminal, moves_cursor

    check_terminal(replay=engine.info.backend == "replay")
    if not moves_cursor():
        from ofa_tui.tui.lines import run_lines

        return run_lines(engine, os.environ.get("TERM", ""))
    from ofa_tui.tui.session import run_session

    return run_session(engine, options)
