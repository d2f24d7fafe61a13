"""Before and around the app: can this terminal show it, and does everything stop when it goes away."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from ofa_tui.errors import OfaError
from ofa_tui.tui.glyphs import translated

WITHOUT_A_TERMINAL = {
    False: "--record DIR runs without one",
    True: "ofa-tui screenshot, report and export --cast show a recorded run without one",
}
"""The way out, by whether it is a replay that cannot be shown."""
GRACE_S = 8.0
"""How long an orderly exit may take after the terminal went away."""


def moves_cursor(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal is one that a full-screen program can run in at all."""
    return bool(environ.get("TEXTUAL_DRIVER")) or environ.get("TERM", "") not in ("", "dumb", "unknown")


def check_terminal(environ: Mapping[str, str] = os.environ, *, replay: bool = False) -> None:
    """Raises OfaError, with the way out, where neither the UI nor its lines (moves_cursor) can be shown."""
    if environ.get("TEXTUAL_DRIVER"):  # a browser or a test feeds the app
        return
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output"), (sys.__stderr__, "error output")):
        if stream is None or not stream.isatty():
            raise OfaError(
                f"the terminal UI needs a terminal, but standard {name} is not one; use a real terminal, or: "
                f"{WITHOUT_A_TERMINAL[replay]}"
            )


@contextmanager
def drawn_in(codec: str) -> Iterator[None]:
    """While open, Textual, which writes to sys.__stderr__, sends characters of that codec alone; "utf-8": any."""
    before = sys.__stderr__
    assert before is not None
    with translated(before, codec) as stream:
        sys.__stderr__ = stream  # type: ignore[misc,assignment]
        try:
            yield
        finally:
            sys.__stderr__ = before  # type: ignore[misc]


def input_closed(descriptor: int = 0) -> bool:
    """Whether whoever fed our standard input is gone (the terminal hung up, the pipe was closed)."""
    poller = select.poll()
    poller.register(descriptor, select.POLLHUP | select.POLLERR)
    return any(mask & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, mask in poller.poll(0))


class SignalGuard:
    """While active, SIGINT, SIGTERM and SIGHUP ask for an orderly exit; if that hangs (a terminal that is gone can
    block every write) `last_resort` is called after GRACE_S and the process leaves.

    `code` is 128 + the signal's number once one came, else 0.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, ask: Callable[[int], None], last_resort: Callable[[], object]) -> None:
        self._ask, self._last_resort = ask, last_resort
        self._before: dict[int, object] = {}
        self._timer: threading.Timer | None = None
        self.code = 0

    def __enter__(self) -> SignalGuard:
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self._timer is not None:
            self._timer.cancel()

    def _received(self, number: int, _frame: FrameType | None) -> None:
        self.leave(128 + number)

    def leave(self, code: int) -> None:
        """Asks for an orderly exit with `code`, and makes sure of it."""
        if self.code:
            return
        self.code = code
        self._timer = threading.Timer(GRACE_S, self._give_up)
        self._timer.daemon = True
        self._timer.start()
        self._ask(code)

    def _give_up(self) -> None:
        try:
            self._last_resort()
        finally:
            os._exit(self.code)
