"""Files of lines that may still grow, or that a kill or a full disk has cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from ofa_tui.errors import OfaError

T = TypeVar("T")


class GrowingLines(Generic[T]):
    """The entries of a file, one a line. Half a line at the end waits for the rest of it."""

    def __init__(self, path: Path, parse: Callable[[str], T | None], *, heading: bool = False) -> None:
        """`parse` may raise what damage makes it raise, and returns None for a line that is no entry; a `heading` is
        the first line of the file."""
        self.path = path
        self.entries: list[T] = []
        self.damaged = 0
        """Lines that could not be read; a full disk may leave half a line before a whole one."""
        self.torn = False
        """Whether the file ends in half a line."""
        self._parse = parse
        self._heading = heading
        self._read_bytes = 0

    def refresh(self) -> None:
        """Reads what was appended since."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                data = file.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self.torn = len(whole) < len(data)
        self._read_bytes += len(whole)
        lines = whole.decode("utf-8", "replace").split("\n")[:-1]
        if lines and self._heading:
            self._heading = False
            del lines[0]
        for line in lines:
            self._add(line)

    def _add(self, line: str) -> None:
        try:
            entry = self._parse(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, OfaError):
            self.damaged += 1
            return
        if entry is not None:
            self.entries.append(entry)
