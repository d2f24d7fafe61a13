"""Where an error that nobody foresaw is written down."""

from __future__ import annotations

import contextlib
import traceback
from pathlib import Path

from ofa_tui import locations


def write_crash_log(error: BaseException) -> Path:
    """Its traceback, as a file; where that cannot be written, the name it would have had."""
    log = locations.cache() / "crash.log"
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(traceback.format_exception(error)))
    return log
