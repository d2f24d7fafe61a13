"""A cast of a run's UI, from its snapshots as they come: live ones, or those of a record."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.record.files import AppendFile
from ofa_tui.tui.cast import FRAMES_PER_S, CastFile
from ofa_tui.tui.headless import open_screen

HALF_A_POLL_S = 0.005
"""Snapshots come every so often, not when a frame is due: one that comes this little before counts as on time."""


class RunCast:
    """Draws at most FRAMES_PER_S screens a second of the run's clock into a file; its last one is the run's last."""

    def __init__(
        self,
        path: Path,
        engine: Engine,
        size: tuple[int, int],
        *,
        timestamp: int,
        theme: str = "",
        begin_s: float = 0.0,
    ) -> None:
        """`size` is (columns, rows), `timestamp` the Unix time of the cast's 0, `begin_s` that of the run's clock.

        Raises OfaError for a theme that is not there, and where the file cannot be written.
        """
        self._begin_s = begin_s
        self._stack = contextlib.ExitStack()
        self._screen = self._stack.enter_context(open_screen(engine, size, theme=theme))
        try:
            self._file = CastFile(AppendFile(path), size, timestamp, f"ofa-tui, preset {engine.info.preset}")
        except BaseException:
            self._stack.close()
            raise
        self._due_s = self._now_s = begin_s
        self._stale = self._finished = self._closed = False

    def write(self, snapshot: Snapshot) -> None:
        """`feed`, and `show` where a frame is due. Raises OfaError for a full disk."""
        # The engine of a finished run is stopped, which is no news of the run.
        self._finished |= snapshot.state == "finished"
        self.feed(replace(snapshot, state="finished") if self._finished else snapshot)
        if snapshot.seconds >= self._due_s - HALF_A_POLL_S:
            self.show()

    def feed(self, snapshot: Snapshot) -> None:
        """Takes every snapshot in order."""
        self._screen.feed(snapshot)
        self._now_s, self._stale = snapshot.seconds, True

    def show(self) -> None:
        """Writes the screen of now. Raises OfaError for a full disk."""
        self._stale = False
        self._due_s = max(self._due_s, self._now_s - 1 / FRAMES_PER_S) + 1 / FRAMES_PER_S
        self._file.show(self._now_s - self._begin_s, self._screen.cells())

    def close(self) -> None:
        """Shows what is not shown yet and ends the file. A second call changes nothing. Raises OfaError."""
        if self._closed:
            return
        self._closed = True
        with self._stack:
            if self._stale:
                self.show()
            self._file.close(self._now_s - self._begin_s)
