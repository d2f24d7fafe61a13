"""What the tasks of a program wait for, as joins: sets of tasks that must all be complete.

A counter is a join of all tasks that signal it; a message that a task reads is a join of the tasks that write the
elements it reads. A wait names a join and how many iterations back it is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.program.accesses import task_label
from ofa_tui.program.ops import OPS
from ofa_tui.program.regions import REGIONS, Rectangle
from ofa_tui.program.types import ProgramSet, TaskProgram, View

Wait = tuple[int, int]
"""A join and the lag of the iteration it is meant in."""


@dataclass(frozen=True)
class Joins:
    waits: list[tuple[Wait, ...]]
    """Per task: what must be complete before it starts. Tasks that wait for the same share the tuple."""
    feeds: list[tuple[int, ...]]
    """Per task: the joins it is one of."""
    producers: list[int]
    """Per join: its tasks in an iteration."""
    messages: list[bool]
    """Per join: data that is its own flag, not a counter."""


def program_joins(programs: ProgramSet, program: TaskProgram) -> Joins:
    """The joins of a program. Raises OfaError for a wait that is no join of all who signal its counter."""
    messages = _Messages(programs, program)
    signals = program.tasks["signal"].tolist()
    producers = [0] * len(programs.counters)
    for signal in signals:
        if signal != abi.NONE_U32:
            producers[signal] += 1
    known: dict[tuple[Wait, ...], tuple[Wait, ...]] = {}
    waits = []
    for task, (given, n_waits) in enumerate(zip(program.tasks["waits"].tolist(), program.tasks["n_waits"].tolist(),
                                                strict=True)):
        joined = [*_counter_waits(program, task, given[:n_waits], producers), *messages.read_by(task)]
        waits.append(known.setdefault(tuple(joined), tuple(joined)))
    feeds: list[tuple[int, ...]] = [(signal,) if signal != abi.NONE_U32 else () for signal in signals]
    first = len(producers)
    for join, writers in enumerate(messages.joins, first):
        for writer in writers:
            feeds[writer] = (*feeds[writer], join)
    return Joins(waits, feeds, [*producers, *map(len, messages.joins)],
                 [False] * first + [True] * len(messages.joins))


def _counter_waits(program: TaskProgram, task: int, given: Iterable[tuple[int, int, int, int]],
                   producers: list[int]) -> Iterable[Wait]:
    for first, count, n, lag in given:
        for counter in range(first, first + n):
            if counter >= len(producers) or count != producers[counter]:
                raise OfaError(f"{program.name}: {task_label(program, task)} waits for {count} signals, which are not "
                               "all of its counter's; such a program would not pass the validator")
            yield counter, lag


class _Messages:
    """Who writes the elements of a message that a task reads."""

    def __init__(self, programs: ProgramSet, program: TaskProgram) -> None:
        self.joins: list[tuple[int, ...]] = []
        self._programs = programs
        self._operands = program.tasks["operands"].tolist()
        self._opcodes = program.tasks["opcode"].tolist()
        self._tiles = [tuple(tile) for tile in program.tasks["tile"].tolist()]
        self._is_message = [programs.buffers[view.buffer].kind == "message" for view in programs.views]
        self._known: dict[tuple[View, tuple[Rectangle, ...]], int] = {}
        self._written: dict[View, list[tuple[int, Rectangle]]] = {}
        self._first = len(programs.counters)
        for task in range(len(self._tiles)):
            for view, spans in self._touched(task, "w"):
                self._written.setdefault(view, []).extend((task, span) for span in spans)

    def read_by(self, task: int) -> Iterable[Wait]:
        for view, spans in self._touched(task, "r"):
            key = (view, tuple(spans))
            if key not in self._known:
                writers = {writer for writer, written in self._written.get(view, ())
                           if any(_overlap(written, span) for span in spans)}
                self._known[key] = self._first + len(self.joins)
                self.joins.append(tuple(sorted(writers)))
            yield self._known[key], 0

    def _touched(self, task: int, mode: str) -> Iterable[tuple[View, list[Rectangle]]]:
        for access, operand in zip(OPS[self._opcodes[task]].accesses, self._operands[task], strict=False):
            if operand != abi.NONE_U16 and mode in access.mode and self._is_message[operand]:
                view = self._programs.views[operand]
                shape = self._programs.buffers[view.buffer].shape
                yield view, REGIONS[access.region].rectangles(self._tiles[task], shape)


def _overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def without(joins: Joins, keep: Callable[[int], bool]) -> tuple[Joins, list[int]]:
    """The joins of the tasks to keep, and those tasks. Who waited for a dropped task inherits its waits.

    Waits two and more iterations back are left out: whoever has them waits for the iteration before as well.
    """
    bridge: list[dict[Wait, None]] = [{} for _ in joins.producers]  # an ordered set: what a join now stands for
    inherited: list[dict[Wait, None]] = []
    for task, waits in enumerate(joins.waits):
        own: dict[Wait, None] = {}
        for join, lag in waits:
            own.update(bridge[join] if lag == 0 else {(join, lag): None})
        inherited.append(own)
        for join in joins.feeds[task]:
            bridge[join].update({(join, 0): None} if keep(task) else own)
    kept = [task for task in range(len(joins.waits)) if keep(task)]
    remaining = [0] * len(joins.producers)
    for task in kept:
        for join in joins.feeds[task]:
            remaining[join] += 1
    shared: dict[tuple[Wait, ...], tuple[Wait, ...]] = {}
    waits_of = []
    for task in kept:
        joined = tuple(dict.fromkeys(
            (other, lag + more)
            for join, lag in inherited[task]
            for other, more in (bridge[join] if lag else [(join, 0)])
            if lag + more < 2 and remaining[other]
        ))
        waits_of.append(shared.setdefault(joined, joined))
    return Joins(waits_of, [joins.feeds[task] for task in kept], remaining, joins.messages), kept
