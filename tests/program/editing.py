"""Looking at compiled programs, and changing copies of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import OPS, Access, Op
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from tests.program.cells import Tile, Touch, state_buffers, touches

Place = tuple[str, int]  # program, task
Wait = tuple[int, int, int, int]  # first, count, n, lag
Rng = random.Random


@dataclass(frozen=True)
class Mutant:
    programs: ProgramSet
    what: str
    """The mistake for people."""
    hurried: tuple[Place, ...] = ()
    delayed: tuple[Place, ...] = ()
    """Tasks that go wrong if the ones are early and the others late."""


def copied(programs: ProgramSet) -> ProgramSet:
    """A copy whose tasks, labels, views and buffers may be changed."""
    tasks = {name: TaskProgram(name, program.tasks.copy(), list(program.labels), program.claims)
             for name, program in programs.programs.items()}
    return replace(programs, programs=tasks, views=list(programs.views), buffers=dict(programs.buffers))


def places(programs: ProgramSet, wanted: Callable[[np.void, Op], bool]) -> list[Place]:
    """The tasks for which `wanted` holds."""
    return [(name, index) for name, program in programs.programs.items() for index, task in enumerate(program.tasks)
            if wanted(task, OPS[task["opcode"]])]


def task_at(programs: ProgramSet, place: Place) -> np.void:
    return programs.programs[place[0]].tasks[place[1]]


def op_at(programs: ProgramSet, place: Place) -> Op:
    return OPS[task_at(programs, place)["opcode"]]


def label_at(programs: ProgramSet, place: Place) -> str:
    return programs.programs[place[0]].labels[place[1]]


def waits_of(task: np.void) -> list[Wait]:
    return [tuple(wait) for wait in task["waits"][: task["n_waits"]].tolist()]


def set_waits(task: np.void, waits: list[Wait]) -> bool:
    """False where a descriptor cannot hold so many."""
    if len(waits) > abi.MAX_WAITS:
        return False
    task["waits"] = 0
    task["n_waits"] = len(waits)
    for slot, wait in enumerate(waits):
        task["waits"][slot] = wait
    return True


def adapt_counts(programs: ProgramSet, counter: int, by: int) -> bool:
    """Adds to the count of every wait for the counter; false where a descriptor cannot hold the waits."""
    for program in programs.programs.values():
        for task in program.tasks:
            if not set_waits(task, [part for wait in waits_of(task) for part in adapted(wait, counter, by)]):
                return False
    return True


def adapted(wait: Wait, counter: int, by: int) -> Iterator[Wait]:
    """The wait with another count for one of its counters, in up to three parts."""
    first, count, n, lag = wait
    if not first <= counter < first + n:
        yield wait
        return
    if counter > first:
        yield first, count, counter - first, lag
    if count + by > 0:
        yield counter, count + by, 1, lag
    if counter + 1 < first + n:
        yield counter + 1, count, first + n - counter - 1, lag


def producers(programs: ProgramSet, counters: range) -> tuple[Place, ...]:
    return tuple(places(programs, lambda task, op: int(task["signal"]) in counters))


def waiters(programs: ProgramSet, counter: int) -> tuple[Place, ...]:
    return tuple(places(programs, lambda task, op: any(
        first <= counter < first + n for first, _, n, _ in waits_of(task))))


def touches_of(programs: ProgramSet, place: Place) -> tuple[Touch, ...]:
    """Raises Outside."""
    task = task_at(programs, place)
    tile: Tile = tuple(task["tile"].tolist())
    buffers = programs.buffers | state_buffers(len(programs.programs["doom"].tasks))
    return touches(int(task["opcode"]), tile, task["operands"].tolist(), programs.views, buffers)


def node_of(programs: ProgramSet, place: Place) -> list[int]:
    """The tasks that do the same to the same operands, other tiles of them."""
    tasks = programs.programs[place[0]].tasks
    return np.flatnonzero((tasks["operands"] == tasks["operands"][place[1]]).all(axis=1)).tolist()


def operands(programs: ProgramSet, place: Place) -> list[tuple[int, Access, View]]:
    """Slot, access and view of each operand that is there."""
    found = zip(op_at(programs, place).accesses, task_at(programs, place)["operands"].tolist(), strict=False)
    return [(slot, access, programs.views[index]) for slot, (access, index) in enumerate(found)
            if index != abi.NONE_U16]


def set_operand(programs: ProgramSet, place: Place, slot: int, view: View) -> None:
    if view not in programs.views:
        programs.views.append(view)
    task_at(programs, place)["operands"][slot] = programs.views.index(view)


def remove(programs: ProgramSet, place: Place) -> None:
    program = programs.programs[place[0]]
    program.tasks = np.delete(program.tasks, place[1])
    del program.labels[place[1]]


def insert(programs: ProgramSet, place: Place, task: np.void, label: str) -> None:
    program = programs.programs[place[0]]
    program.tasks = np.insert(program.tasks, place[1], task)
    program.labels.insert(place[1], label)


def reorder(programs: ProgramSet, name: str, order: list[int]) -> None:
    program = programs.programs[name]
    program.tasks = program.tasks[order]
    program.labels = [program.labels[i] for i in order]


def new_counter(programs: ProgramSet, name: str) -> int:
    """Adds a counter to a copy; returns its number."""
    programs.counters = [*programs.counters, name]
    return len(programs.counters) - 1


def writes_for(programs: ProgramSet, writer: Place, reader: Place) -> bool:
    """Whether the one writes something that the other reads."""
    read = [touch for touch in touches_of(programs, reader) if "r" in touch.access.mode]
    return any(written.view == touch.view and _overlap(written, touch) for touch in read
               for written in touches_of(programs, writer) if "w" in written.access.mode)


def _overlap(one: Touch, other: Touch) -> bool:
    return any(r0 < s1 and s0 < r1 and c0 < d1 and d0 < c1
               for r0, r1, c0, c1 in one.rects for s0, s1, d0, d1 in other.rects)
