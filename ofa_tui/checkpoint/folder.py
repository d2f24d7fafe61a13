"""The folder that a run writes its checkpoints to: held by one run at a time, and of one run alone."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from ofa_tui.checkpoint.checkpoint import Checkpoint, Identity, checkpoint_files
from ofa_tui.checkpoint.tensors import scratch_name
from ofa_tui.errors import OfaError

LOCK = ".lock"
MOST_NOTE_BYTES = 200
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""What a file system says that cannot lock files: some of those in a network."""
MOST_TRIES = 100
OTHER_FOLDER = "give another folder with --checkpoints"


class Claim:
    """The right to write into a folder. The system takes it back from a process that dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        """Takes nothing yet."""
        self.folder = folder
        self._lock = folder / LOCK
        self._descriptor: int | None = None
        self._made: list[Path] = []

    def take(self) -> None:
        """Makes the folder, holds it, and removes what a run that was killed left half written; where it is held
        already, sees that it still is. Raises OSError where that cannot be, and OfaError where another run holds
        it."""
        if self._descriptor is not None and self._is_there(self._descriptor):
            return
        self._let_go()
        try:
            self._descriptor = self._open_lock()
            note = f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now():%Y-%m-%d %H:%M:%S}"
            os.truncate(self._descriptor, 0)
            os.pwrite(self._descriptor, note.encode()[:MOST_NOTE_BYTES], 0)
            for left in self.folder.glob(scratch_name(Path("step-*.safetensors")).name):
                left.unlink()
        except (OSError, OfaError):
            self.release()
            raise

    def take_at_start(self) -> None:
        """`take` where nothing is lost yet: every failure is an OfaError."""
        try:
            self.take()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise OfaError(f"cannot write checkpoints into {self.folder} ({reason}); {OTHER_FOLDER}") from None

    def release(self) -> None:
        """Lets others have it, and takes away a folder that got nothing. Safe to call twice."""
        if self._descriptor is not None and self._is_there(self._descriptor):
            with contextlib.suppress(OSError):
                self._lock.unlink()
        self._let_go()
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        self._made = []

    def _make_folder(self) -> None:
        missing = [folder for folder in (self.folder, *self.folder.parents) if not os.path.lexists(folder)]
        self._made = missing + self._made
        self.folder.mkdir(parents=True, exist_ok=True)

    def _open_lock(self) -> int:
        # Its holder may take the lock's file and the folder away just after they were found here: then once more.
        for _ in range(MOST_TRIES):
            try:
                self._make_folder()
                descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except FileNotFoundError as error:
                gone = error
                continue
            self._lock_file(descriptor)
            if self._is_there(descriptor):
                return descriptor
            os.close(descriptor)
            gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        raise gone

    def _lock_file(self, descriptor: int) -> None:
        """Closes it where it cannot be locked."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _note(descriptor)
            os.close(descriptor)
            raise OfaError(f"another run ({holder}) writes its checkpoints into {self.folder}; wait for its end, or "
                           f"{OTHER_FOLDER}") from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                os.close(descriptor)
                raise

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.stat(self._lock), os.fstat(descriptor))
        except OSError:
            return False

    def _let_go(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _note(descriptor: int) -> str:
    """Who holds the lock, as far as it has said so."""
    text = os.pread(descriptor, MOST_NOTE_BYTES, 0).decode(errors="replace")
    return text if text.isprintable() and text else "which has just begun"


def check_new(folder: Path) -> None:
    """Raises OfaError where a run that begins would replace checkpoints, or lie beside them so that nobody can tell
    which to resume."""
    for step, path in checkpoint_files(folder):
        if _identity(path):
            raise OfaError(f"{folder} holds checkpoints of an earlier run, up to step {step}; go on from them with "
                           f"--resume {folder}, or {OTHER_FOLDER}")


def earlier_checkpoints(folder: Path, step: int, ours: Callable[[], Identity]) -> list[tuple[int, Path]]:
    """(step, file) of what a run that goes on from `step` finds of its own. `ours` is asked where there is something
    to compare. Raises OfaError as `check_new` where there are others."""
    earlier: list[tuple[int, Path]] = []
    for found, path in checkpoint_files(folder):
        identity = _identity(path)
        if identity is None:
            continue
        if identity != ours():
            raise OfaError(f"{folder} holds {path.name} of another run; {OTHER_FOLDER}")
        if found > step:
            raise OfaError(f"{folder} holds {path.name}, which this run would replace, since it goes on from step "
                           f"{step}; resume the newest one, or {OTHER_FOLDER}")
        earlier.append((found, path))
    return earlier


def _identity(path: Path) -> Identity | None:
    """None of what cannot be read: it counts as nothing."""
    try:
        return Checkpoint(path).identity
    except OfaError:
        return None
