"""Messages: who waits for whose packets, and that no packet is overwritten while somebody may still look for it.

A generation of a message buffer is written at most once in an iteration, exactly where it is read. Whoever has read all
packets of a task knows that the task is complete; whoever has read some of them knows nothing about it.

The generations of one element follow each other in queue order of their writers. It is enough to show that all readers
of each one precede the writer of the next, and those of the last the first writer of the iteration after: the rest
follows through the writers between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ofa_tui.program.accesses import Accesses, ProgramError, describe_access, describe_region, task_label
from ofa_tui.program.distinct import distinct
from ofa_tui.program.types import ProgramSet, TaskProgram

if TYPE_CHECKING:
    from ofa_tui.program.order import Order


@dataclass(frozen=True)
class MessageEdges:
    """The dependencies of one program that come from messages."""

    writers: np.ndarray
    """i8: the tasks that write messages, in queue order."""
    read_set: np.ndarray
    """i8 [tasks]: tasks with equal numbers read the same parts of the same messages; 0: none."""
    seen: list[list[tuple[int, bool]]]
    """Per read set, in queue order, the tasks whose packets are waited for, and whether all of them are."""


def find_message_edges(programs: ProgramSet, program: TaskProgram, accesses: Accesses) -> MessageEdges:
    """Raises ProgramError where a task looks for a packet that no task writes."""
    message_of = _number_messages(programs)
    members = np.flatnonzero(message_of[accesses.view] >= 0)
    reads, writes = members[accesses.reads[members]], members[accesses.writes[members]]
    read_set = np.zeros(len(program.tasks), np.int64)
    if not len(reads):
        return MessageEdges(distinct(accesses.task[writes]), read_set, [[]])
    part = np.column_stack([message_of[accesses.view], accesses.rows, accesses.columns])
    parts, first, part_of = np.unique(part[reads], axis=0, return_index=True, return_inverse=True)
    under: list[tuple[np.ndarray, np.ndarray]] = []  # per part: the writes under it, and whether they lie in it wholly
    for number, at in enumerate(first):
        same = writes[part[writes, 0] == parts[number, 0]]
        area, whole = _overlap(parts[number, 1:], part[same, 1:])
        if area.sum() < _area(parts[number, 1:]):
            _refuse_unwritten(programs, program, accesses, int(reads[at]))
        under.append((same[area > 0], whole[area > 0]))
    parts_of: dict[int, set[int]] = {}
    for task, number in zip(accesses.task[reads].tolist(), part_of.ravel().tolist(), strict=True):
        parts_of.setdefault(task, set()).add(number)
    numbers: dict[frozenset[int], int] = {frozenset(): 0}
    for task, read in parts_of.items():
        read_set[task] = numbers.setdefault(frozenset(read), len(numbers))
    written = np.bincount(accesses.task[writes], minlength=len(program.tasks))
    seen = [_seen([under[number] for number in read], accesses.task, written) for read in numbers]
    return MessageEdges(distinct(accesses.task[writes]), read_set, seen)


def _number_messages(programs: ProgramSet) -> np.ndarray:
    """i8 [views]: a number for every generation of a message buffer, -1 for other operands."""
    numbers: dict[tuple[str, int], int] = {}
    return np.array([
        numbers.setdefault((view.buffer, view.generation), len(numbers))
        if programs.buffers[view.buffer].kind == "message" else -1 for view in programs.views
    ], np.int64)


def _area(part: np.ndarray) -> int:
    return int((part[1] - part[0]) * (part[3] - part[2]))


def _overlap(part: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elements that `part` (first row, end row, first column, end column) has in common with each of `others`, and
    whether that is all of the other."""
    rows = np.minimum(part[1], others[:, 1]) - np.maximum(part[0], others[:, 0])
    columns = np.minimum(part[3], others[:, 3]) - np.maximum(part[2], others[:, 2])
    area = np.maximum(rows, 0) * np.maximum(columns, 0)
    return area, area == (others[:, 1] - others[:, 0]) * (others[:, 3] - others[:, 2])


def _seen(
    parts: list[tuple[np.ndarray, np.ndarray]], task_of: np.ndarray, written: np.ndarray
) -> list[tuple[int, bool]]:
    if not parts:
        return []
    writers = distinct(task_of[np.concatenate([at for at, _ in parts])])
    read_whole = distinct(np.concatenate([at[whole] for at, whole in parts]))
    rectangles = np.bincount(task_of[read_whole], minlength=len(written))
    return [(int(task), bool(rectangles[task] == written[task])) for task in writers]


def _refuse_unwritten(programs: ProgramSet, program: TaskProgram, accesses: Accesses, at: int) -> None:
    label = task_label(program, int(accesses.task[at]))
    where = describe_access(programs, program, accesses, at)
    raise ProgramError("deadlock", f"{program.name}: {label} waits for ever for {where}, which no task of this program "
                       "writes, or only in part", (label,))


class MessageCheck:
    """One message buffer as one program uses it."""

    def __init__(self, programs: ProgramSet, order: Order, accesses: Accesses, members: np.ndarray) -> None:
        """`members` are the indices into `accesses` of the rectangles in this buffer."""
        self._programs, self._order, self._accesses, self._members = programs, order, accesses, members
        self._buffer = programs.buffers[programs.views[int(accesses.view[members[0]])].buffer].name
        generations = np.array([view.generation for view in programs.views])[accesses.view[members]]
        self._row_edges = distinct(accesses.rows[members])
        self._column_edges = distinct(accesses.columns[members])
        self._generations, self._generation = np.unique(generations, return_inverse=True)
        cells = (len(self._generations), len(self._row_edges) - 1, len(self._column_edges) - 1)
        self._writer = np.full(cells, -1, np.int64)
        self._next, self._first = self._writer.copy(), self._writer[0].copy()
        """Per element, the writers of the generation after each one in the iteration, and of the first one."""
        self.pairs = 0

    def check_iteration(self) -> None:
        """Each generation is written once, exactly where it is read, and overwritten after its readers."""
        read = np.zeros(self._writer.shape, bool)
        for number, at in enumerate(self._members):
            cells, task = self._cells(number), int(self._accesses.task[at])
            if self._accesses.reads[at]:
                read[cells] = True
            if self._accesses.writes[at]:
                other = int(self._writer[cells].max())
                if other >= 0:
                    self._refuse("overlap", f"{{}} and {{}} both write {self._describe(int(at))}", task, other)
                self._writer[cells] = task
        self._check_read_where_written(read)
        self._find_successors()
        for number, at in enumerate(self._members):
            followers = distinct(self._next[self._cells(number)])
            self._check_before(int(at), followers[followers >= 0], 0)

    def check_successors(self) -> None:
        """The last generation of an iteration is overwritten by the next iteration after its readers."""
        if self._order.separates(1):
            return
        for number, at in enumerate(self._members):
            generation, rows, columns = self._cells(number)
            last = self._next[generation, rows, columns] < 0
            self._check_before(int(at), distinct(self._first[rows, columns][last]), 1)

    def _cells(self, number: int) -> tuple[int, slice, slice]:
        at = self._members[number]
        rows = np.searchsorted(self._row_edges, self._accesses.rows[at])
        columns = np.searchsorted(self._column_edges, self._accesses.columns[at])
        return int(self._generation[number]), slice(*rows.tolist()), slice(*columns.tolist())

    def _check_read_where_written(self, read: np.ndarray) -> None:
        unread = np.argwhere((self._writer >= 0) & ~read)
        if len(unread):
            generation, row, column = unread[0]
            name = f"message {self._generations[generation]} of {self._buffer}"
            region = describe_region(name, self._row_edges[row : row + 2], self._column_edges[column : column + 2])
            self._refuse("unread", f"{{}} writes {region}, which no task reads", int(self._writer[tuple(unread[0])]))

    def _find_successors(self) -> None:
        last = len(self._order.program.tasks)
        turn = np.argsort(np.where(self._writer < 0, last, self._writer), axis=0, kind="stable")
        writers = np.take_along_axis(self._writer, turn, axis=0)
        after = np.concatenate([writers[1:], np.full((1, *writers.shape[1:]), -1)])
        np.put_along_axis(self._next, turn, after, axis=0)
        self._first = writers[0]

    def _check_before(self, at: int, writers: np.ndarray, lag: int) -> None:
        """The task of rectangle `at` is complete before `writers` overwrite it, `lag` iterations later.

        A task that reads an element of one generation and writes that of the next does so in this order.
        """
        task = int(self._accesses.task[at])
        if lag == 0 and self._accesses.reads[at]:
            writers = writers[writers != task]
        ordered = self._order.precedes(task, writers, lag)
        self.pairs += len(writers)
        if not ordered.all():
            writer = int(writers[np.argmin(ordered)])
            use = "still be waiting for" if self._accesses.reads[at] else "not have written"
            when = " in the next iteration" if lag else ""
            self._refuse("reuse", f"{{}} may {use} {self._describe(at)} when {{}} overwrites it{when}", task, writer)

    def _describe(self, at: int) -> str:
        return describe_access(self._programs, self._order.program, self._accesses, at)

    def _refuse(self, check: str, sentence: str, *tasks: int) -> None:
        """`sentence` has a {} for each of the tasks."""
        labels = tuple(self._order.label(task) for task in tasks)
        raise ProgramError(check, f"{self._order.program.name}: {sentence.format(*labels)}", labels, tasks[0])
