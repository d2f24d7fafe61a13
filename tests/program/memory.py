"""Tasks as the cells they touch, in one flat memory of hashes.

What a task writes is a hash of its kind, its iteration and everything it read; each cell receives that hash combined
with the cell's own name. So contents agree only if everything that went into them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm
from operator import itemgetter

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE, OPS
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import Buffer, ProgramSet, View
from tests.program.cells import Cut, Outside, Touch, touches

CLOCK = {"train": "step", "sweep": "sweep batch", "decode": "token", "doom": "tic"}

FIELDS = ("opcode", "n_waits", "flags", "signal", "lane", "tile", "operands", "waits")
Row = tuple[int, int, int, int, int, list[int], list[int], list[tuple[int, int, int, int]]]
Values = tuple[int, ...]
Wait = tuple[int, int, int]  # counter, count, lag
Message = tuple[tuple[int, ...], int, int]  # cells, generation + 1, generations


class Fault(Exception):
    """What goes wrong when the program runs: a sentence."""


class Layout:
    """Where the cells of all buffers lie in memory. Cells 0 and 1 belong to nobody."""

    def __init__(self, cut: Cut, buffers: dict[str, Buffer]) -> None:
        self.cut = cut
        self.buffers = buffers
        self.base: dict[str, int] = {}
        self.names = [0, 0]
        self.initial = [0, 0]
        for name, buffer in buffers.items():
            names = cut.names(name)
            self.base[name] = len(self.names)
            for copy in range(buffer.copies):
                self.names += names
                self.initial += [hash((cell, copy)) for cell in names]
        self.rotation = lcm(*(buffer.copies for buffer in buffers.values()))

    def span(self, name: str, version: int) -> slice:
        """The cells of a buffer's copy for a weight version."""
        size = self.cut.size(name)
        start = self.base[name] + version % self.buffers[name].copies * size
        return slice(start, start + size)

    def cells(self, touch: Touch, version: int) -> list[int]:
        start = self.span(touch.view.buffer, version + touch.view.rotation).start
        return [start + cell for cell in self.cut.cells(touch)]

    def patterns(self, touched: Sequence[Touch]) -> list[Pattern]:
        """One for each remainder of a weight version modulo `rotation`."""
        first = Pattern(self, touched, 0)
        return [first, *(Pattern(self, touched, v) if first.rotates else first for v in range(1, self.rotation))]

    def describe(self, cell: int) -> str:
        name = max((name for name, base in self.base.items() if base <= cell), key=lambda name: self.base[name])
        r0, r1, c0, c1 = self.cut.rect(name, (cell - self.base[name]) % self.cut.size(name))
        return f"{name} rows {r0}-{r1 - 1} columns {c0}-{c1 - 1}"


class Pattern:
    """The cells that a task touches, at one remainder of the weight version."""

    __slots__ = ("bulk", "gather", "others", "packets", "polls", "reads", "rotates", "tag", "writes")

    def __init__(self, layout: Layout, touched: Sequence[Touch], version: int) -> None:
        self.reads: list[tuple[int, bool]] = []
        """Cells, and whether the copy engine reads them."""
        self.polls: list[Message] = []
        self.tag = (0, 1)
        """Generation + 1 and generations of what it sends."""
        self.rotates = False
        writes: dict[int, bool] = {}
        packets: list[int] = []
        for touch in touched:
            buffer = layout.buffers[touch.view.buffer]
            message = buffer.kind == "message"
            cells = layout.cells(touch, version)
            tag = (touch.view.generation + 1, buffer.generations)
            self.rotates |= buffer.copies > 1
            if "r" in touch.access.mode:
                self.reads += [(cell, touch.access.copied) for cell in cells]
                if message:
                    self.polls.append((tuple(cells), *tag))
            if "w" in touch.access.mode and message:
                packets += cells
                self.tag = tag
            elif "w" in touch.access.mode:
                writes |= dict.fromkeys(cells, touch.access.copied)
        own = {*writes, *packets}
        self.gather = itemgetter(0, 1, *(cell for cell, _ in self.reads))
        """What it reads, behind the contents of cells 0 and 1."""
        self.others = itemgetter(0, 1, *(cell for cell, _ in self.reads if cell not in own))
        """The same without what it overwrites itself."""
        self.writes = [(cell, layout.names[cell]) for cell in writes]
        self.packets = [(cell, layout.names[cell]) for cell in packets]
        self.bulk = [cell for cell, copied in writes.items() if copied]
        """Those of `writes` that the copy engine writes."""


class Task:
    """One task of a program. Its patterns are set once it is known which memory it runs in."""

    def __init__(self, programs: ProgramSet, program: str, index: int, row: Row,
                 views: list[int]) -> None:
        """`row` is the descriptor's, `views` the numbers of the program set's views."""
        opcode, n_waits, flags, signal, lane, tile, operands, waits = row
        self.program, self.index = program, index
        self.label = programs.programs[program].labels[index]
        if opcode >= len(OPS):
            raise Fault(f"{self.label} has an unknown opcode")
        self.op = OPS[opcode].name
        self.opens_token = self.op in ("token_begin", "stream_begin")
        self.lane = lane
        self.signal = None if signal == abi.NONE_U32 else signal
        self.waits: list[Wait] = [(counter, count, lag) for first, count, n, lag in waits[:n_waits]
                                  for counter in range(first, first + n)]
        engine = TARGETS[programs.target].copy_engine
        self.fenced_before = bool(flags & FENCE_BEFORE) or not engine
        self.fenced_after = bool(flags & FENCE_AFTER) or not engine
        self.kind = hash((opcode, flags & ~(FENCE_BEFORE | FENCE_AFTER), *tile))
        self.identity = (program, opcode, self.kind, *(views[i] if i < len(views) else -1 for i in operands))
        """Tasks of two program sets that have it in common must find and leave the same."""
        self.number = -1
        """Of its identity in the reference; -1: a task that the reference does not have."""
        self.patterns: list[Pattern] = []
        self._row = (opcode, (tile[0], tile[1], tile[2], tile[3]), operands)

    def touches(self, programs: ProgramSet, buffers: dict[str, Buffer]) -> tuple[Touch, ...]:
        """Raises Fault."""
        try:
            return touches(*self._row, programs.views, buffers)
        except Outside as outside:
            raise Fault(f"{self.label} {outside}") from None


def read_tasks(programs: ProgramSet) -> dict[str, list[Task]]:
    """Raises Fault."""
    views = [_VIEWS.setdefault(view, len(_VIEWS)) for view in programs.views]
    return {name: [Task(programs, name, index, row, views) for index, row in enumerate(_rows(program.tasks))]
            for name, program in programs.programs.items()}


def _rows(tasks: np.ndarray) -> Iterable[Row]:
    """The descriptors without their numpy types, which are slow."""
    return zip(*(tasks[field].tolist() for field in FIELDS), strict=True)


_VIEWS: dict[View, int] = {}
"""A number for every view that was ever seen: comparing numbers is faster."""
