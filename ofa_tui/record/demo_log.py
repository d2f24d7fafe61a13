"""The player's commands as demo files (.lmp), written while the game is played."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from pathlib import Path

import numpy as np

from ofa_tui.doom.lmp import COMMAND_BYTES, END, HEADER_BYTES, Demo
from ofa_tui.engine.protocol import Commands
from ofa_tui.errors import OfaError
from ofa_tui.record.files import cannot_write

_BODY = ["forward", "side", "turn", "buttons"]


class DemoRecorder:
    """Writes what an engine's snapshots say of the player's commands; give it every snapshot from the launch on.

    Each new game gets a file of its own: `out.lmp`, `out-2.lmp`, ... A file is a whole demo after every write. Where
    commands were missed the demo ends, and the next new game begins another.
    """

    def __init__(self, path: Path) -> None:
        """Raises OfaError where `path` cannot be a new file."""
        if os.path.lexists(path):
            raise OfaError(f"{path} exists; give the demo another name")
        if not path.parent.is_dir():
            raise OfaError(f"there is no folder {path.parent} for the demo {path.name}; make it first")
        self.path = path
        """The file of the current game, or of the last one."""
        self.files: list[Path] = []
        self.missed = 0
        """Tics whose commands came too late to be read."""
        self._first_path = path
        self._descriptor: int | None = None
        self._tics = 0
        self._next: int | None = None

    def write(self, commands: Commands) -> None:
        """Appends new commands. Raises OfaError when the file cannot be written."""
        rows = commands.rows
        if not len(rows):
            return
        if self._next is not None and commands.first != self._next:
            self.missed += commands.first - self._next
            self.close()
        self._next = commands.first + len(rows)
        starts = np.flatnonzero(rows["starts"]).tolist()
        for first, end in itertools.pairwise(sorted({0, *starts, len(rows)})):
            if rows["starts"][first]:
                self._begin(rows[first])
            self._append(rows[first:end])

    def save_copy(self, path: Path) -> None:
        """Copies the demo of the current game as it is. Raises OfaError, also before the first game."""
        if not self.files:
            raise OfaError("there is no demo yet: no game has begun")
        try:
            shutil.copyfile(self.path, path)
        except OSError as error:
            raise cannot_write(path, error) from None

    def close(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _begin(self, row: np.void) -> None:
        self.close()
        if self.files:
            self.path = self._free_path()
        try:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise cannot_write(self.path, error) from None
        self.files.append(self.path)
        self._tics = 0
        start = Demo(np.zeros(0), skill=int(row["skill"]), episode=int(row["episode"]), map=int(row["map"]))
        self._write(start.header() + bytes([END]), 0)

    def _free_path(self) -> Path:
        numbered = (self._first_path.with_stem(f"{self._first_path.stem}-{n}") for n in itertools.count(2))
        return next(path for path in numbered if not os.path.lexists(path))

    def _append(self, rows: np.ndarray) -> None:
        """Writes over the mark of the end, and another behind."""
        if self._descriptor is None:
            return
        body = np.stack([rows[name].view(np.uint8) for name in _BODY], axis=1).tobytes()
        self._write(body + bytes([END]), HEADER_BYTES + COMMAND_BYTES * self._tics)
        self._tics += len(rows)

    def _write(self, data: bytes, offset: int) -> None:
        assert self._descriptor is not None
        try:
            while data:
                count = os.pwrite(self._descriptor, data, offset)
                data, offset = data[count:], offset + count
        except OSError as error:
            raise cannot_write(self.path, error) from None
