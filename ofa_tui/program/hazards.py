"""Races and coverage: every buffer of a program, cell by cell.

The edges of all rectangles that touch a buffer cut it into cells; within a cell every access is all or nothing. A cell
has at most one task that writes it and at most one that updates it in place, so two grids of task numbers describe all
writes, and each other access needs only the distinct tasks under its rectangle.

Iterations are compared as far apart as a buffer has copies: with three copies that is four iterations. Every cell that
is written at all is written in each iteration, so whatever lies further apart is ordered through the writers between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ofa_tui.program.accesses import Accesses, ProgramError, describe_access, describe_region
from ofa_tui.program.distinct import distinct
from ofa_tui.program.messages import MessageCheck
from ofa_tui.program.order import Order
from ofa_tui.program.types import Buffer, ProgramSet

STATE_KINDS = ("weight", "master", "moment", "cache")
"""Buffers whose contents outlive an iteration. All others must be written before they are read, in every iteration."""


@dataclass(frozen=True)
class _Rectangle:
    task: int
    rows: slice  # cells
    columns: slice
    rotation: int
    writes: bool
    reads: bool
    at: int  # index into Accesses


class BufferCheck:
    """One buffer, other than of messages, as one program uses it."""

    def __init__(self, programs: ProgramSet, order: Order, accesses: Accesses, members: np.ndarray) -> None:
        """`members` are the indices into `accesses` of the rectangles in this buffer."""
        self._programs = programs
        self._order = order
        self._accesses = accesses
        self._buffer: Buffer = programs.buffers[programs.views[int(accesses.view[members[0]])].buffer]
        self._row_edges = distinct(accesses.rows[members])
        self._column_edges = distinct(accesses.columns[members])
        self._rectangles = sorted(self._cells(members), key=lambda rectangle: rectangle.task)
        self._written: dict[int, np.ndarray] = {}  # rotation -> task that writes each cell, -1 for none
        self._updated: dict[int, np.ndarray] = {}
        self._lags = [lag for lag in range(1, self._buffer.copies + 1) if not order.separates(lag)]
        self.pairs = 0

    def check_iteration(self) -> None:
        """Within an iteration: everything is written exactly once, and before it is read."""
        for rectangle in self._rectangles:
            if rectangle.writes:
                self._claim(rectangle)
        for rotation, owner in [*self._written.items(), *self._updated.items()]:
            self._check_covered(owner, rotation)
        for rectangle in self._rectangles:
            self._check_same_iteration(rectangle)

    def check_successors(self) -> None:
        """Between an iteration and later ones."""
        for lag in self._lags:
            for rectangle in self._rectangles:
                self._check_later_iteration(rectangle, lag)

    def _cells(self, members: np.ndarray) -> Iterator[_Rectangle]:
        a = self._accesses
        rows, columns = (np.searchsorted(edges, spans[members]).tolist()
                         for edges, spans in ((self._row_edges, a.rows), (self._column_edges, a.columns)))
        for number, at in enumerate(members.tolist()):
            yield _Rectangle(int(a.task[at]), slice(*rows[number]), slice(*columns[number]),
                             self._programs.views[int(a.view[at])].rotation, bool(a.writes[at]), bool(a.reads[at]), at)

    # --- coverage ----------------------------------------------------------------------------------------------

    def _claim(self, rectangle: _Rectangle) -> None:
        grids = self._updated if rectangle.reads else self._written
        shape = (len(self._row_edges) - 1, len(self._column_edges) - 1)
        owner = grids.setdefault(rectangle.rotation, np.full(shape, -1, np.int64))
        cells = owner[rectangle.rows, rectangle.columns]
        if (cells >= 0).any():
            other = int(cells.max())
            self._refuse("overlap", f"{{}} and {{}} both write {self._region(rectangle)}", rectangle.task, other)
        cells[...] = rectangle.task

    def _check_covered(self, owner: np.ndarray, rotation: int) -> None:
        rows, columns = self._buffer.shape
        complete = (self._row_edges[0], self._row_edges[-1]) == (0, rows)
        complete &= (self._column_edges[0], self._column_edges[-1]) == (0, columns)
        if complete and (owner >= 0).all():
            return
        cell = np.argwhere(owner < 0)
        if len(cell):
            r, c = cell[0]
            region = describe_region(self._buffer.name, self._row_edges[r : r + 2], self._column_edges[c : c + 2])
        else:
            region = f"all of {self._buffer.name} ({rows} x {columns})"
        sentence = f"no task writes {region}, though {{}} writes another part of that buffer"
        self._refuse("gap", sentence, int(owner.max()))

    # --- order ---------------------------------------------------------------------------------------------------

    def _check_same_iteration(self, rectangle: _Rectangle) -> None:
        """Who reads must read what this iteration writes, all of it, and after updates in place."""
        if not rectangle.reads:
            return
        written, updated = self._written.get(rectangle.rotation), self._updated.get(rectangle.rotation)
        if written is None and updated is None and self._buffer.kind not in STATE_KINDS:
            self._refuse("unwritten", f"{{}} reads {self._region(rectangle)}, which no task of this program writes",
                         rectangle.task)
        if written is None and updated is not None and self._buffer.kind not in STATE_KINDS:
            self._refuse("unwritten", f"{{}} reads {self._region(rectangle)}, which is only updated in place, never "
                         "written", rectangle.task)
        self._check_after(rectangle, written, 0)
        if not rectangle.writes:
            self._check_after(rectangle, updated, 0)

    def _check_later_iteration(self, rectangle: _Rectangle, lag: int) -> None:
        """`rectangle` and whatever writes the same copy `lag` iterations earlier or later are in order."""
        for grids in (self._written, self._updated):
            for rotation, owner in grids.items():
                if self._same_copy(rotation, rectangle.rotation, lag):
                    self._check_after(rectangle, owner, lag)
                if self._same_copy(rectangle.rotation, rotation, lag):
                    self._check_before(rectangle, owner, lag)

    def _same_copy(self, earlier: int, later: int, lag: int) -> bool:
        """Whether rotation `earlier` names the copy that `later` names `lag` iterations on."""
        return (earlier - later - lag) % self._buffer.copies == 0

    def _check_after(self, rectangle: _Rectangle, owner: np.ndarray | None, lag: int) -> None:
        """All writers under the rectangle precede its task, `lag` iterations later."""
        if owner is None:
            return
        writers = self._tasks_under(rectangle, owner)
        ordered = self._order.precedes(writers, rectangle.task, lag)
        self.pairs += len(writers)
        if not ordered.all():
            writer = int(writers[np.argmin(ordered)])
            use = "reads" if rectangle.reads else "writes"
            when = "" if not lag else f" {lag} iteration{'s' if lag > 1 else ''} before"
            sentence = f"{{}} {use} {self._region(rectangle)} without waiting for {{}}, which writes there{when}"
            self._refuse("race", sentence, rectangle.task, writer)
        if lag == 0 and not (seen := self._order.hands_over(writers, rectangle.task)).all():
            writer = int(writers[np.argmin(seen)])
            sentence = (f"{{}} knows only by messages that {{}} has written {self._region(rectangle)}, and may run on "
                        "another block; messages pass on nothing but themselves")
            self._refuse("lane", sentence, rectangle.task, writer)

    def _check_before(self, rectangle: _Rectangle, owner: np.ndarray, lag: int) -> None:
        """The rectangle's task precedes all writers under it, `lag` iterations later."""
        writers = self._tasks_under(rectangle, owner)
        ordered = self._order.precedes(rectangle.task, writers, lag)
        self.pairs += len(writers)
        if not ordered.all():
            writer = int(writers[np.argmin(ordered)])
            use = "reading" if rectangle.reads else "writing"
            self._refuse("race", f"{{}} may still be {use} {self._region(rectangle)} when {{}}, {lag} "
                         f"iteration{'s' if lag > 1 else ''} later, writes there", rectangle.task, writer)

    def _tasks_under(self, rectangle: _Rectangle, owner: np.ndarray) -> np.ndarray:
        """The distinct tasks that own cells of the rectangle."""
        tasks = distinct(owner[rectangle.rows, rectangle.columns])
        return tasks[tasks >= 0]

    # --- sentences -----------------------------------------------------------------------------------------------

    def _region(self, rectangle: _Rectangle) -> str:
        return describe_access(self._programs, self._order.program, self._accesses, rectangle.at)

    def _refuse(self, check: str, sentence: str, *tasks: int) -> None:
        """`sentence` has a {} for each of the tasks."""
        labels = tuple(self._order.label(task) for task in tasks)
        raise ProgramError(check, f"{self._order.program.name}: {sentence.format(*labels)}", labels, tasks[0])


def check_buffers(programs: ProgramSet, order: Order, accesses: Accesses) -> int:
    """Checks every buffer `order`'s program touches; returns the number of ordered pairs. Raises ProgramError."""
    names = {name: i for i, name in enumerate(programs.buffers)}
    buffer_of_view = np.array([names[view.buffer] for view in programs.views], np.int64)
    messages = np.array([programs.buffers[view.buffer].kind == "message" for view in programs.views], bool)
    message = messages[accesses.view]
    distinct = np.concatenate([np.flatnonzero(message), _distinct(order, accesses, np.flatnonzero(~message))])
    buffer = buffer_of_view[accesses.view[distinct]]
    turn = np.argsort(buffer, kind="stable")
    groups = np.split(distinct[turn], np.flatnonzero(np.diff(buffer[turn])) + 1)
    checks = [
        (MessageCheck if messages[accesses.view[members[0]]] else BufferCheck)(programs, order, accesses, members)
        for members in groups if len(members)
    ]
    _earliest([check.check_iteration for check in checks])
    _earliest([check.check_successors for check in checks])
    return sum(check.pairs for check in checks)


def _distinct(order: Order, accesses: Accesses, members: np.ndarray) -> np.ndarray:
    """One of `members` per region, mode, ancestors and events: tasks that agree in all of these are alike."""
    tasks = accesses.task[members]
    key = np.column_stack([
        accesses.view[members], accesses.rows[members], accesses.columns[members], accesses.reads[members],
        order.group[tasks], order.signal[tasks], order.message[tasks], order.program.tasks["lane"][tasks],
        np.where(accesses.writes[members], tasks, -1),
    ])
    return members[np.sort(np.unique(key, axis=0, return_index=True)[1])]


def _earliest(checks: list[Callable[[], None]]) -> None:
    """Runs all checks and raises the error whose task is claimed first: the others may be its consequences."""
    found: list[ProgramError] = []
    for check in checks:
        try:
            check()
        except ProgramError as error:
            found.append(error)
    if found:
        raise min(found, key=lambda error: error.place)
