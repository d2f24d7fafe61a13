"""What each block of the serve role can know of what the others wrote, where messages are used.

A message is one word and makes nothing else known (`cuda/sched/messages.h`): data beside it must be passed on by
counters or the opening of a token, or stay with the block that wrote it. Every block has a clock of its own and knows
how far those of the others were when it last heard of them.
"""

from __future__ import annotations

from collections.abc import Iterable

Clock = list[int]


class Clocks:
    def __init__(self, blocks: int) -> None:
        self._known = [[0] * blocks for _ in range(blocks)]
        self._signalled: dict[int, Clock] = {}
        self._opened = [0] * blocks
        self._written: dict[int, tuple[int, int]] = {}
        """Block and time of the last write of a cell."""

    def begin(self, block: int, counters: Iterable[int], opened: bool) -> None:
        """A task begins that has waited for the counters and, perhaps, for its token to be open."""
        known = self._known[block]
        known[block] += 1
        for counter in counters:
            _join(known, self._signalled.get(counter, known))
        if opened:
            _join(known, self._opened)

    def open(self, block: int) -> None:
        self._opened = list(self._known[block])

    def signal(self, block: int, counter: int) -> None:
        known = self._known[block]
        _join(self._signalled.setdefault(counter, list(known)), known)

    def write(self, block: int, cells: Iterable[int]) -> None:
        stamp = block, self._known[block][block]
        for cell in cells:
            self._written[cell] = stamp

    def unheard(self, block: int, cells: Iterable[int]) -> int | None:
        """A cell of which the block cannot know the content."""
        known = self._known[block]
        for cell in cells:
            writer, time = self._written.get(cell, (block, 0))
            if known[writer] < time:
                return cell
        return None


def _join(known: Clock, other: Clock) -> None:
    known[:] = map(max, known, other)
