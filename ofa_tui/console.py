"""What the program says on standard error, beside its progress."""

from __future__ import annotations

import contextlib
import sys


def say(text: str) -> None:
    """A line on standard error. One that is closed or full keeps the program from nothing."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
