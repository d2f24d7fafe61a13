"""Whether a record is still being written: a file that its writer holds locked for as long as it lives.

The system lets go of the lock with the process, however that ends. A file system that cannot lock (some in a network)
tells nothing; then only the summary says that a run is over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

NAME = ".writing"


class Presence:
    """Held from now until `close`, or the end of the process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._descriptor = -1
        # It takes its name locked: nobody ever finds it free while its writer lives.
        scratch = folder / f"{NAME}.new"
        with contextlib.suppress(OSError):
            self._descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())
            os.replace(scratch, self._path)
            return
        with contextlib.suppress(OSError):
            scratch.unlink()

    def close(self) -> None:
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1


def writer_is_gone(folder: Path) -> bool:
    """Whether a writer that held its presence here ended without saying so. False where nothing is known."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
