"""Writing that survives a kill: whole lines appended at once, whole files put in place at once."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ofa_tui.errors import OfaError

RECORDED = "choose another folder; what was recorded before is readable"
"""What to do about a failed write of a recording, and what it means."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MOST_ALIKE = 1000


def cannot_write(path: Path, error: OSError, advice: str = RECORDED) -> OfaError:
    """The sentence for a failed write. `advice` is what else can be done than to make room, where that helps."""
    room = "make room, or " if error.errno in NO_ROOM else ""
    return OfaError(f"cannot write {path} ({error.strerror or type(error).__name__}); {room}{advice}")


def make_folder(path: Path, advice: str = RECORDED) -> None:
    """Makes a folder where it is not there yet. Raises OfaError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error, advice) from None


def make_new_folder(path: Path, advice: str = RECORDED) -> Path:
    """Makes a folder that was not there, of that name or with -2, -3 and so on behind it: also where another process
    makes one of the name at this moment. Raises OfaError."""
    return _made_new(path, Path.mkdir, advice)


def make_new_file(path: Path, advice: str = RECORDED) -> Path:
    """As `make_new_folder`, an empty file; the number stands before the name's last dot."""
    return _made_new(path, lambda place: place.touch(exist_ok=False), advice)


def _made_new(path: Path, make: Callable[[Path], object], advice: str) -> Path:
    for number in range(1, MOST_ALIKE):
        place = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            make(place)
        except FileExistsError as error:
            taken = error
        except OSError as error:
            raise cannot_write(place, error, advice) from None
        else:
            return place
    raise cannot_write(path, taken, advice)


def check_place(path: Path, what: str) -> None:
    """Raises OfaError where `write_whole` could not put a file, or would put it in place of something else."""
    if not os.access(path.parent, os.W_OK) or (os.path.lexists(path) and not path.is_file()):
        raise OfaError(f"cannot write {what} {path}; name a file in a folder that exists and can be written")


class AppendFile:
    """A file that only grows. Every write goes to the system at once, so that a kill loses none of it."""

    def __init__(self, path: Path, *, new: bool = False):
        """Raises OfaError where the file cannot be opened, or is not `new` though it must be."""
        self.path = path
        must_be_new = os.O_EXCL if new else 0
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | must_be_new, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from None

    def write(self, data: bytes) -> None:
        """Appends all of `data`. Raises OfaError for a full disk and the like; a part may have been written then."""
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def write_lines(self, lines: list[str]) -> None:
        if lines:
            self.write("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))

    def write_objects(self, objects: list[dict[str, Any]]) -> None:
        """Appends one line of JSON for each."""
        self.write_lines([json.dumps(entry, ensure_ascii=False) for entry in objects])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def write_whole(path: Path, data: bytes, advice: str = RECORDED) -> None:
    """Puts a file in place so that a reader sees the old one or the whole new one. Raises OfaError with `advice`."""
    scratch = path.with_name(f".{path.name}.new")
    try:
        with scratch.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise cannot_write(path, error, advice) from None


def write_json(path: Path, value: dict[str, Any]) -> None:
    """`write_whole` of indented JSON."""
    write_whole(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace"))
