"""Before and around the app: can this terminal show it, and does everything stop when it goes away."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType

from ofa_tui.errors import OfaError

LEAST_COLUMNS, LEAST_ROWS = 24, 6
"""To start with. A terminal that is made smaller later still shows what fits."""
GRACE_S = 8.0
"""How long an orderly exit may take after the terminal went away."""


def check_terminal(environ: Mapping[str, str] = os.environ) -> None:
    """Raises OfaError, with the way out, where the terminal UI cannot run."""
    way_out = "use a real terminal, or --record DIR to run without one"
    if environ.get("TEXTUAL_DRIVER"):  # a browser or a test feeds the app
        return
    term = environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise OfaError(f"the terminal UI needs a terminal that can move its cursor, but TERM is {term!r}; {way_out}")
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output"), (sys.__stderr__, "error output")):
        if stream is None or not stream.isatty():
            raise OfaError(f"the terminal UI needs a terminal, but standard {name} is not one; {way_out}")
    columns, rows = shutil.get_terminal_size()
    if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
        raise OfaError(
            f"a terminal of {columns}x{rows} is too small for even one pane; "
            f"enlarge it to {LEAST_COLUMNS}x{LEAST_ROWS}, or use --record DIR to run without one"
        )
    encoding = (sys.__stderr__.encoding if sys.__stderr__ else "") or ""
    if encoding.lower().replace("-", "") != "utf8":
        raise OfaError(
            f"the terminal UI draws with Unicode characters, but the locale's encoding is {encoding or 'unknown'}; "
            "set LC_ALL=C.UTF-8, or use --record DIR to run without a terminal"
        )


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
