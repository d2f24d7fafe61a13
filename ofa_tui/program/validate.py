"""The proof that a program set may run, worked out from the descriptors alone.

What is shown for each program, for any number of blocks that claim its tasks in order:

1. every index is in range, every operand has its opcode's shape, every tile lies inside its operands (`accesses`);
2. every wait joins all signals of its counters, and waits only for tasks claimed earlier: no schedule can deadlock;
3. no counter mixes two iterations (`order`); the tasks that open and end an iteration, and the others that a program
   has exactly once, are there and in their place, and an iteration ends before the next one opens;
4. every written buffer is written exactly once per iteration, without gap or overlap, and any two accesses to the same
   elements of which one writes are ordered, in one iteration and from one to the next ones (`hazards`);
5. programs share only what they may: train and sweep take turns as wholes, decode reads nothing but rotating weights;
6. doom plays each game once per iteration, one tic after the other.

Assumed of the engine: claim order is queue order; a block runs one task at a time; the train role finishes an iteration
of one of its programs before it begins one of the other; a pinned weight version is not overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import GAME_OP, Accesses, ProgramError, list_accesses, task_label
from ofa_tui.program.hazards import check_buffers
from ofa_tui.program.ops import OPCODES, OPS
from ofa_tui.program.order import Order
from ofa_tui.program.types import ProgramSet, TaskProgram

__all__ = ["ProgramError", "ProgramReport", "Report", "validate"]

TURN_TAKING = ("train", "sweep")


@dataclass(frozen=True)
class ProgramReport:
    tasks: int
    edges: int
    """Pairs of distinct waits and counters."""
    rectangles: int
    pairs: int
    """Pairs of accesses that were shown to be ordered."""


@dataclass(frozen=True)
class Report:
    """What was proved, per program."""

    programs: dict[str, ProgramReport]

    def lines(self) -> list[str]:
        return [
            f"{name}: {r.tasks:,} tasks, {r.edges:,} waits, {r.rectangles:,} regions, "
            f"{r.pairs:,} pairs of accesses in order"
            for name, r in self.programs.items()
        ]


def validate(programs: ProgramSet) -> Report:
    """Prove `programs`. Raises ProgramError, a sentence that names the tasks, for the first thing found wrong."""
    _check_tables(programs)
    iterations = max([buffer.copies for buffer in programs.buffers.values()], default=1)
    reports: dict[str, ProgramReport] = {}
    accesses: dict[str, Accesses] = {}
    for name, program in programs.programs.items():
        accesses[name] = list_accesses(programs, program)
        _check_opcodes(programs.target, program)
        if name == "doom":
            _check_games(program)
        order = Order(programs, program, max(1, iterations))
        pairs = check_buffers(programs, order, accesses[name])
        order.check_iterations_apart()
        if name == "doom":
            _check_tics_apart(order)
        else:
            _check_whole_iterations(order)
        reports[name] = ProgramReport(len(program.tasks), order.edges, len(accesses[name].task), pairs)
    _check_counters_apart(programs)
    _check_sharing(programs, accesses)
    return Report(reports)


def _check_tables(programs: ProgramSet) -> None:
    if set(programs.programs) != set(abi.PROGRAMS):
        given, wanted = ", ".join(programs.programs), ", ".join(abi.PROGRAMS)
        raise ProgramError("table", f"the programs are {given}; there must be {wanted}")
    for name, program in programs.programs.items():
        if program.name != name:
            raise ProgramError("table", f"the program {name} is called {program.name!r}")
    for view in programs.views:
        if view.buffer not in programs.buffers:
            raise ProgramError("table", f"the operand table names the buffer {view.buffer!r}, which does not exist")
        copies = programs.buffers[view.buffer].copies
        if not 0 <= view.rotation < copies:
            raise ProgramError("table", f"operand {view.buffer!r} has rotation {view.rotation} of {copies} copies")


def _check_opcodes(target: str, program: TaskProgram) -> None:
    """Opcodes that belong to one program stand in no other, and those it has exactly once are there, in their place."""
    opcodes = program.tasks["opcode"]
    for opcode, op in enumerate(OPS):
        found = np.flatnonzero(opcodes == opcode)
        if op.program not in ("", program.name) or op.target not in ("", target):
            if len(found):
                label = task_label(program, int(found[0]))
                raise ProgramError("control", f"{program.name}: {label} is a {op.name}, which only the program "
                                   f"{op.program} may have", (label,))
        elif op.place and not len(found):
            raise ProgramError("control", f"{program.name}: no task is a {op.name}; there must be exactly one")
        elif op.place and len(found) > 1:
            label, other = (task_label(program, int(task)) for task in found[:2])
            raise ProgramError("control", f"{program.name}: {label} and {other} are both a {op.name}; there must be "
                               "exactly one", (label, other))
        elif op.place in ("first", "last"):
            end = 0 if op.place == "first" else len(opcodes) - 1
            if found[0] != end:
                label, other = task_label(program, int(found[0])), task_label(program, end)
                raise ProgramError("control", f"{program.name}: {label} must be the {op.place} task of the queue, "
                                   f"where {other} is", (label, other))


def _check_games(program: TaskProgram) -> None:
    """Every task plays a game of its own, and all games are played."""
    tasks, labels = program.tasks, [task_label(program, task) for task in range(len(program.tasks))]
    others = tasks["opcode"] != OPCODES[GAME_OP]
    if others.any():
        label = labels[int(np.argmax(others))]
        raise ProgramError("game", f"doom: {label} is no {GAME_OP}", (label,))
    if len(tasks) > abi.MAX_GAMES:
        label = labels[abi.MAX_GAMES]
        raise ProgramError("game", f"doom: {label} is one game more than the {abi.MAX_GAMES} there may be", (label,))
    played: dict[int, str] = {}
    for label, game in zip(labels, tasks["tile"][:, 0].tolist(), strict=True):
        if game >= len(tasks):
            raise ProgramError("game", f"doom: {label} plays game {game}, though the {len(tasks)} games are numbered "
                               "from 0", (label,))
        if game in played:
            raise ProgramError("game", f"doom: {played[game]} and {label} both play game {game}",
                               (played[game], label))
        played[game] = label


def _check_tics_apart(order: Order) -> None:
    """Every game waits for its tic of the iteration before."""
    apart = order.precedes(order.signal, order.wait_set, 1)
    if not apart.all():
        label = order.label(int(np.argmin(apart)))
        raise ProgramError("game", f"doom: {label} does not wait for its own tic before, so that two blocks could play "
                           "one game", (label,))


def _check_counters_apart(programs: ProgramSet) -> None:
    owner: dict[int, str] = {}
    for name, program in programs.programs.items():
        for counter in np.unique(program.tasks["signal"]):
            if counter != abi.NONE_U32 and owner.setdefault(int(counter), name) != name:
                raise ProgramError("counter", f"counter {programs.counters[counter]!r} is signalled by both "
                                   f"{owner[int(counter)]} and {name}, whose iterations are not the same")


def _check_sharing(programs: ProgramSet, accesses: dict[str, Accesses]) -> None:
    """Buffers used by two programs, one of which writes them."""
    views = [(view.buffer, programs.buffers[view.buffer].kind) for view in programs.views]
    touched = {name: {views[v][0] for v in np.unique(a.view)} for name, a in accesses.items()}
    written = {name: {views[v][0] for v in np.unique(a.view[a.writes])} for name, a in accesses.items()}
    for writer, buffers in written.items():
        for other in touched:
            shared = buffers & touched[other]
            if other == writer or {writer, other} == set(TURN_TAKING):
                continue
            for buffer in sorted(shared):
                pinned = [v for v in np.unique(accesses[other].view) if programs.views[v].buffer == buffer]
                if programs.buffers[buffer].copies < 3 or any(programs.views[v].rotation for v in pinned):
                    raise ProgramError("sharing", f"{other} uses {buffer}, which {writer} may be writing at that time")


def _check_whole_iterations(order: Order) -> None:
    """The first task opens the iteration for all others, the last is complete after all others and before the next."""
    last = len(order.signal) - 1
    name = order.program.name
    others = np.arange(1, last)
    joined = order.precedes(order.signal[others], order.wait_set[last], 0)
    opened = order.precedes(order.signal[:1], order.wait_set[1:], 0)
    for ordered, tasks, end in ((joined, others, last), (opened, np.arange(1, last + 1), 0)):
        if not ordered.all():
            task, bound = order.label(int(tasks[np.argmin(ordered)])), order.label(end)
            side = f"complete before {bound} ends" if end else f"held back until {bound} has opened"
            raise ProgramError("turn", f"{name}: {task} is not {side} the iteration", (task, bound))
    if not order.precedes(order.signal[last:], order.wait_set[:1], 1).all():
        first, final = order.label(0), order.label(last)
        raise ProgramError("turn", f"{name}: {first} does not wait for {final} of the iteration before", (first, final))
