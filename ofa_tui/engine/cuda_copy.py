"""The host's copy of what the kernel publishes: what is new is fetched at each poll, in an order that fits together.

First the counters, then what they cover, then the counters once more: with the first a reader knows what it may look
at, with the last what the kernel may have begun to overwrite in between.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.cuda_device import Gpu
from ofa_tui.engine.memory import RunMemory


@dataclass(frozen=True)
class Followed:
    """An array that grows, or goes round, as a counter counts."""

    array: str
    counter: str
    ring: bool = False
    per_game: bool = False
    """Array and counter have a row for each game."""
    per_sm: bool = False
    """Array and counter have a row for each SM."""
    shown: bool = False
    """Of the games after the first a reader looks at the newest entry alone."""


FOLLOWED = (
    Followed("losses", "steps_done"),
    Followed("step_end_ns", "steps_done"),
    Followed("sweep_sums", "sweep_batches_done"),
    Followed("sweep_counts", "sweep_batches_done"),
    Followed("served", "tokens_served", ring=True),
    Followed("frames", "frames", ring=True, per_game=True, shown=True),
    Followed("doom_status", "frames", ring=True, per_game=True, shown=True),
    Followed("doom_commands", "frames", ring=True, per_game=True),
    Followed("timeline", "timeline", ring=True, per_sm=True),
)


def _offset(field: str) -> int:
    assert abi.TELEMETRY.fields is not None
    return abi.TELEMETRY.fields[field][1]


COUNTERS_END = _offset("applied")
"""The telemetry before it has to be read first."""


def pieces(first: int, end: int, length: int, ring: bool) -> list[tuple[int, int]]:
    """(row, rows) of the entries first .. end of an array of `length` rows; in a ring the newest that it still has."""
    if not ring:
        return [(first, end - first)] if end > first else []
    first = max(first, end - length)
    if end <= first:
        return []
    start = first % length
    fits = min(end - first, length - start)
    rest = end - first - fits
    return [(start, fits), *([(0, rest)] if rest else [])]


class SharedCopy:
    """The first bytes of the arena, here (pinned) and on the GPU at `base`."""

    def __init__(self, gpu: Gpu, memory: RunMemory, base: int) -> None:
        self._gpu, self._memory, self._base = gpu, memory, base
        self._telemetry = memory["telemetry"][0]
        self._games = memory.config.games
        self._at = memory.arena.offset("telemetry")
        self._after = memory.arena.offset("telemetry_after")
        self._n_sms = n_sms = memory.config.n_sms
        self._telemetry_end = _offset("sms") + n_sms * abi.SM_STATUS.itemsize
        self._seen = {name: self._counters(name) for name in {followed.counter for followed in FOLLOWED}}
        self._first = dict(self._seen)

    def load(self, address: int) -> int:
        """The counter at an address in the copy, as it stood before the rest was fetched."""
        return ctypes.c_uint64.from_address(address).value

    def load_after(self, address: int) -> int:
        """The same counter, as it stood after the rest was fetched."""
        return self.load(address - self._at + self._after)

    def _counters(self, name: str) -> list[int]:
        """One, or one of each game or SM."""
        return [int(value) for value in np.ravel(self._telemetry[name])]

    def _fetch(self, offset: int, count: int, to: int | None = None) -> None:
        place = offset if to is None else to
        self._gpu.fetch(self._memory.arena.part(place, count), self._base + offset)

    # --- from the GPU; inside Gpu.current -------------------------------------------------------------------------

    def fetch_counters(self) -> None:
        self._fetch(self._at, COUNTERS_END)
        self._gpu.finish(self._gpu.copy_stream)

    def fetch_new(self) -> None:
        """What is new since the last call."""
        self.fetch_counters()
        self._fetch(self._at + COUNTERS_END, self._telemetry_end - COUNTERS_END)
        self._fetch(self._memory.arena.offset("serve"), abi.SERVE_STATE.itemsize)
        for followed in FOLLOWED:
            for index in range(self._games if followed.per_game else self._n_sms if followed.per_sm else 1):
                self._fetch_rows(followed, index)
        for name in self._seen:
            self._seen[name] = self._counters(name)
        self._fetch(self._at, COUNTERS_END, to=self._after)
        self._gpu.finish(self._gpu.copy_stream)

    def _fetch_rows(self, followed: Followed, index: int) -> None:
        array, offset = self._memory[followed.array], self._memory.arena.offset(followed.array)
        if followed.per_game or followed.per_sm:
            array = array[index]
            offset += index * array.nbytes
        base = 0 if followed.ring else self._first[followed.counter][index]
        first, end = self._seen[followed.counter][index] - base, self._counters(followed.counter)[index] - base
        if followed.shown and index > 0:
            first = max(first, end - 1)
        row_bytes = array.nbytes // max(len(array), 1)
        for row, rows in pieces(first, end, len(array), followed.ring):
            self._fetch(offset + row * row_bytes, rows * row_bytes)

    def fetch_all(self) -> None:
        """Everything, after the kernel's end."""
        fetched_to = self._memory.arena.offset("telemetry")
        self._gpu.download(self._memory.arena.part(fetched_to, self._memory.shared_bytes - fetched_to),
                           self._base + fetched_to)
        self._memory["telemetry_after"][:] = self._memory["telemetry"]

    # --- to the GPU; inside Gpu.current ---------------------------------------------------------------------------

    def send(self, offset: int, count: int) -> None:
        """Queues bytes of the control block or the prompts; they arrive in the order of the calls."""
        self._gpu.send(self._base + offset, self._memory.arena.part(offset, count))

    def finish_sending(self) -> None:
        """What was sent may be changed again afterwards."""
        self._gpu.finish(self._gpu.control_stream)
