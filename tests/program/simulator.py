"""Blocks that claim tasks in order and run them in any interleaving, over a memory that remembers who wrote what.

An oracle for the validator: it knows nothing of ancestors. Each element carries the number of the iteration (for
weights, the version) it belongs to and whether it has been updated in place. A task that reads anything but complete
data of its own iteration, whose inputs change while it runs, or that writes under somebody else's feet, fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import OPS, Access
from ofa_tui.program.types import ProgramSet, View

WRITTEN, UPDATED, BUSY = 1, 2, -1


class Fault(Exception):
    """An interleaving in which the program goes wrong."""


@dataclass
class _Block:
    ticket: int
    running: bool = False
    reads: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # live view, contents at the start


Choice = Callable[[list[int], random.Random], int]
CHOICES: dict[str, Choice] = {
    "any": lambda ready, rng: rng.choice(ready),
    "latest claim first": lambda ready, rng: ready[-1],
    "earliest claim first": lambda ready, rng: ready[0],
    "mostly the latest": lambda ready, rng: ready[-1] if rng.random() < 0.9 else rng.choice(ready),
}


class Simulator:
    def __init__(self, programs: ProgramSet, name: str) -> None:
        self.programs = programs
        self.tasks = programs.programs[name].tasks
        self.labels = programs.programs[name].labels
        self.counters = np.zeros(len(programs.counters), np.int64)
        self.done: dict[tuple[int, int], int] = {}  # (iteration, task): times run
        self.memory = {b.name: np.zeros((b.copies, *b.shape), np.int64) for b in programs.buffers.values()}
        self.updated_in_place = set()
        self.written_first = set()
        for task in self.tasks:
            for access, view in self._operands(task):
                if access.mode == "rw":
                    self.updated_in_place.add(view.buffer)
                elif access.mode == "w":
                    self.written_first.add(view.buffer)

    def run(self, blocks: int, iterations: int, choice: str, seed: int) -> None:
        """Runs `iterations` on `blocks` blocks. Raises Fault."""
        rng = random.Random(seed)
        last = iterations * len(self.tasks)
        claimed = min(blocks, last)
        live = [_Block(ticket) for ticket in range(claimed)]
        while live:
            live.sort(key=lambda block: block.ticket)
            ready = [i for i, block in enumerate(live) if block.running or self._may_start(block.ticket)]
            if not ready:
                raise Fault(f"deadlock at {self._name(live[0].ticket)}")
            block = live[CHOICES[choice](ready, rng)]
            if not block.running:
                self._start(block)
                continue
            self._finish(block)
            if claimed < last:
                block.ticket, block.running, claimed = claimed, False, claimed + 1
            else:
                live.remove(block)
        for iteration in range(iterations):
            for task in range(len(self.tasks)):
                if self.done.get((iteration, task)) != 1:
                    raise Fault(f"{self.labels[task]} ran {self.done.get((iteration, task), 0)} times")

    def _name(self, ticket: int) -> str:
        return f"{self.labels[ticket % len(self.tasks)]} of iteration {ticket // len(self.tasks)}"

    def _may_start(self, ticket: int) -> bool:
        iteration, index = divmod(ticket, len(self.tasks))
        task = self.tasks[index]
        for first, count, n, lag in task["waits"][: task["n_waits"]].tolist():
            if (self.counters[first : first + n] < count * (iteration + 1 - lag)).any():
                return False
        return True

    def _operands(self, task: np.void) -> Iterator[tuple[Access, View]]:
        for access, index in zip(OPS[task["opcode"]].accesses, task["operands"].tolist(), strict=False):
            if index != abi.NONE_U16:
                yield access, self.programs.views[index]

    def _regions(self, task: np.void, access: Access, view: View, iteration: int) -> list[np.ndarray]:
        buffer = self.programs.buffers[view.buffer]
        whole = self.memory[view.buffer][(iteration + view.rotation) % buffer.copies]
        r, rs, c, cs = task["tile"].tolist()
        width = whole.shape[1] // 3
        return {
            "tile": lambda: [whole[r : r + rs, c : c + cs]],
            "rows": lambda: [whole[r : r + rs]],
            "cols": lambda: [whole[c : c + cs]],
            "all": lambda: [whole],
            "columns": lambda: [whole[:, c : c + cs]],
            "transposed": lambda: [whole[:, r : r + rs]],
            "heads": lambda: [whole[r : r + rs, part * width + c : part * width + c + cs] for part in range(3)],
            "row_head": lambda: [whole[r : r + rs, c // cs : c // cs + 1]],
            "part": lambda: [whole[r // rs : r // rs + 1]],
        }[access.region]()

    def _expected(self, access: Access, view: View, iteration: int) -> int:
        """Tag of the data a task of `iteration` has to find: 4 * generation + state."""
        buffer = self.programs.buffers[view.buffer]
        if buffer.kind == "weight":
            version = iteration + view.rotation
            return 4 * version + WRITTEN if version and "publish" in self.labels else 0
        if access.mode == "rw":
            if view.buffer in self.written_first:
                return 4 * (iteration + 1) + WRITTEN
            return 4 * iteration + UPDATED if iteration else 0
        return 4 * (iteration + 1) + (UPDATED if view.buffer in self.updated_in_place else WRITTEN)

    def _start(self, block: _Block) -> None:
        iteration, index = divmod(block.ticket, len(self.tasks))
        task = self.tasks[index]
        block.running, block.reads = True, []
        for access, view in self._operands(task):
            for part in self._regions(task, access, view, iteration):
                if "r" in access.mode and (part != self._expected(access, view, iteration)).any():
                    raise Fault(f"{self._name(block.ticket)} reads {view.buffer} that is not complete")
                if access.mode == "r":
                    block.reads.append((part, part.copy()))
                elif (part == BUSY).any():
                    raise Fault(f"{self._name(block.ticket)} writes {view.buffer} together with another task")
        for access, view in self._operands(task):
            if "w" in access.mode:
                for part in self._regions(task, access, view, iteration):
                    part[...] = BUSY

    def _finish(self, block: _Block) -> None:
        iteration, index = divmod(block.ticket, len(self.tasks))
        task = self.tasks[index]
        if any((part != before).any() for part, before in block.reads):
            raise Fault(f"an input of {self._name(block.ticket)} changed while it ran")
        for access, view in self._operands(task):
            if "w" not in access.mode:
                continue
            generation = iteration + (view.rotation if self.programs.buffers[view.buffer].kind == "weight" else 1)
            for part in self._regions(task, access, view, iteration):
                if (part != BUSY).any():
                    raise Fault(f"an output of {self._name(block.ticket)} was written by another task")
                part[...] = 4 * generation + (UPDATED if access.mode == "rw" else WRITTEN)
        self.done[iteration, index] = self.done.get((iteration, index), 0) + 1
        if task["signal"] != abi.NONE_U32:
            self.counters[task["signal"]] += 1
