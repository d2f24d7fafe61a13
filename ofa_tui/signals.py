"""Signals while something is being built: they unwind the stack, so that whatever was begun is cleaned up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from ofa_tui.errors import OfaError


class SignalledError(OfaError):
    """SIGTERM or SIGHUP came. `exit_code` is 128 + its number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """While open, SIGTERM and SIGHUP raise SignalledError in the main thread, as SIGINT raises KeyboardInterrupt."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SignalledError(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
