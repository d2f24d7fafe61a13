"""timeline.bin: what each SM ran and when, as rows of fixed size in the order in which polls gave them out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import TimelinePart
from ofa_tui.record.files import AppendFile

NAME = "timeline.bin"
ROW = np.dtype([("sm", "<u4"), ("lost", "<u4"), ("entry", abi.TIMELINE_ENTRY)])
"""lost: entries of any SM that are missing in front of this row."""


class TimelineLog:
    """Written only where there is something to write."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._file: AppendFile | None = None
        self._lost = 0

    def write(self, part: TimelinePart) -> None:
        """Raises OfaError."""
        self._lost += int(part.lost.sum())
        if not len(part.entries):
            return
        rows = np.zeros(len(part.entries), ROW)
        rows["sm"], rows["entry"] = part.sms, part.entries
        rows["lost"][0] = min(self._lost, abi.NONE_U32)
        self._lost = 0
        self._file = self._file or AppendFile(self._path)
        self._file.write(rows.tobytes())

    def close(self) -> None:
        if self._file:
            self._file.close()


def read_timeline(folder: Path) -> TimelinePart | None:
    """A record's whole timeline, up to the last whole row; None where it kept none."""
    try:
        data = (folder / NAME).read_bytes()
    except OSError:
        return None
    rows = np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], ROW)
    return TimelinePart(rows["sm"].astype(np.uint16), rows["entry"].copy(), rows["lost"].astype(np.int64))
