"""The player's commands as demo files (.lmp), written while the game is played."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from pathlib import Path

import numpy as np

from ofa_tui.doom.lmp import COMMAND_BYTES, END, HEADER_BYTES, Demo
from ofa_tui.engine.protocol import Commands
from ofa_tui.errors import OfaError
from ofa_tui.record.files import RECORDED, cannot_write, make_new_file

_BODY = ["forward", "side", "turn", "buttons"]


class DemoRecorder:
    """Writes what an engine's snapshots say of one game's commands; give it those of every snapshot from the launch on.

    Each new game gets a file of its own: `out.lmp`, `out-2.lmp`, ... A file is a whole demo after every write. A rewind
    leaves it as it is until the game goes on; then it ends where the game went on, and grows from there. Where commands
    were missed the demo ends, and the next new game begins another.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Without a path the demo is in a file without a name, from which `save_copy` takes it.

        Raises OfaError where `path` cannot be a new file.
        """
        if path is not None and os.path.lexists(path):
            raise OfaError(f"{path} exists; give the demo another name")
        if path is not None and not path.parent.is_dir():
            raise OfaError(f"there is no folder {path.parent} for the demo {path.name}; make it first")
        if path is not None and not os.access(path.parent, os.W_OK):
            raise OfaError(f"the folder {path.parent} cannot be written; choose another one for the demo {path.name}")
        self.path = path
        """The file of the current game, or of the last one."""
        self.files: list[Path] = []
        self.missed = 0
        """Tics whose commands came too late to be read."""
        self.start: Demo | None = None
        """The current game without its commands: episode, map, skill."""
        self._descriptor: int | None = None
        self._complete = False
        """The file has every command of its game up to now."""
        self._tics = 0
        """Commands of the game as it is; behind them the file may have some that a rewind took back."""
        self._next: int | None = None

    def write(self, commands: Commands) -> None:
        """Takes new commands. Raises OfaError when the file cannot be written."""
        rows = commands.rows
        if not len(rows):
            return
        if self._next is not None and commands.first != self._next:
            self.missed += commands.first - self._next
            self._end()
        self._next = commands.first + len(rows)
        marks = np.flatnonzero(rows["starts"] | rows["skipped"]).tolist()
        after = [row + 1 for row in marks if rows["skipped"][row]]
        for first, end in itertools.pairwise(sorted({0, *marks, *after, len(rows)})):
            if rows["skipped"][first]:
                self._tics -= int(rows["undone"][first]) if self._complete else 0
                continue
            if rows["starts"][first]:
                self._begin(rows[first])
            self._append(rows[first:end])

    @property
    def tics(self) -> int:
        """Length of the current game's demo."""
        return self._tics

    def save_copy(self, path: Path, advice: str = RECORDED) -> Path:
        """Saves the demo of the current game as it is, in a new file (`make_new_file`), which is returned.

        Raises OfaError, also before the first game.
        """
        if self._descriptor is None:
            raise OfaError("there is no demo yet: no game has begun")
        copy = make_new_file(path, advice)
        try:
            body = os.pread(self._descriptor, HEADER_BYTES + COMMAND_BYTES * self._tics, 0)
            copy.write_bytes(body + bytes([END]))
        except OSError as error:
            with contextlib.suppress(OSError):
                copy.unlink()
            raise cannot_write(copy, error, advice) from None
        return copy

    def close(self) -> None:
        self._end()
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _end(self) -> None:
        """The demo ends here."""
        if self._complete:
            self._write(bytes([END]), HEADER_BYTES + COMMAND_BYTES * self._tics)
        self._complete = False

    def _begin(self, row: np.void) -> None:
        self.close()
        if self.path is not None and self.files:
            self.path = self._free_path()
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise cannot_write(self.path or Path(tempfile.gettempdir()), error) from None
        self._complete = True
        self._tics = 0
        self.start = Demo(np.zeros(0), skill=int(row["skill"]), episode=int(row["episode"]), map=int(row["map"]))
        self._write(self.start.header() + bytes([END]), 0)

    def _open(self) -> int:
        if self.path is None:
            with tempfile.TemporaryFile() as unnamed:
                return os.dup(unnamed.fileno())
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self.files.append(self.path)
        return descriptor

    def _free_path(self) -> Path:
        first = self.files[0]
        numbered = (first.with_stem(f"{first.stem}-{n}") for n in itertools.count(2))
        return next(path for path in numbered if not os.path.lexists(path))

    def _append(self, rows: np.ndarray) -> None:
        """Writes over the mark of the end, and another behind, which is then the file's."""
        if not self._complete:
            return
        body = np.stack([rows[name].view(np.uint8) for name in _BODY], axis=1).tobytes()
        self._write(body + bytes([END]), HEADER_BYTES + COMMAND_BYTES * self._tics)
        self._tics += len(rows)

    def _write(self, data: bytes, offset: int) -> None:
        """Writes at `offset` and ends the file behind it."""
        assert self._descriptor is not None
        try:
            while data:
                count = os.pwrite(self._descriptor, data, offset)
                data, offset = data[count:], offset + count
            os.ftruncate(self._descriptor, offset)
        except OSError as error:
            raise cannot_write(self.path or Path(tempfile.gettempdir()), error) from None
