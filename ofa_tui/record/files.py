"""Writing that survives a kill: whole lines appended at once, whole files put in place at once."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ofa_tui.errors import OfaError

RECORDED = "what was recorded before is readable, make room or choose another folder"
"""What a failed write means for a recording, and what to do."""


def cannot_write(path: Path, error: OSError, advice: str = RECORDED) -> OfaError:
    """The sentence for a failed write."""
    return OfaError(f"cannot write {path} ({error.strerror or type(error).__name__}); {advice}")


def make_folder(path: Path, advice: str = RECORDED) -> None:
    """Makes a folder where it is not there yet. Raises OfaError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error, advice) from None


def check_place(path: Path, what: str) -> None:
    """Raises OfaError where `write_whole` could not put a file, or would put it in place of something else."""
    if not os.access(path.parent, os.W_OK) or (os.path.lexists(path) and not path.is_file()):
        raise OfaError(f"cannot write {what} {path}; name a file in a folder that exists and can be written")


class AppendFile:
    """A file that only grows. Every write goes to the system at once, so that a kill loses none of it."""

    def __init__(self, path: Path):
        """Raises OfaError where the file cannot be opened."""
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
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
