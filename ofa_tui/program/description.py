"""One task in full, as `program show --task` prints it: what it touches, waits for, and who waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.installation import command
from ofa_tui.program.accesses import Accesses, describe_region, describe_view, list_accesses, task_label
from ofa_tui.program.distinct import distinct
from ofa_tui.program.ops import ADAMW_DECAY, FENCE_AFTER, FENCE_BEFORE, OPS
from ofa_tui.program.types import ProgramSet, TaskProgram

FLAGS = {ADAMW_DECAY: "weight decay", FENCE_BEFORE: "fence before copies", FENCE_AFTER: "fence after copies"}
MODES = {"r": "reads", "w": "writes", "rw": "updates"}
FULL_LIST = 6
"""Tasks that are named one by one; of more, the first and the last."""


def flag_text(task: np.void) -> str:
    return ", ".join(name for flag, name in FLAGS.items() if task["flags"] & flag)


def wait_text(programs: ProgramSet, wait: np.void) -> str:
    first, n = int(wait["first"]), int(wait["n"])
    name = programs.counters[first]
    if n > 1:
        name += f" to {programs.counters[first + n - 1]}"
    return f"{name} at {wait['count']}" + (" of the iteration before" if wait["lag"] else "")


def find_tasks(programs: ProgramSet, names: list[str], wanted: str) -> list[tuple[str, int]]:
    """Programs and places in their queues of the task with label or number `wanted`. Raises OfaError."""
    found = [(name, index) for name in names for index, label in enumerate(programs.programs[name].labels)
             if label == wanted or str(index) == wanted]
    if not found:
        raise OfaError(f"no task is called {wanted!r} or has that number; "
                       f"{command()} program show --stage tasks lists them")
    return found


def task_lines(programs: ProgramSet, name: str, index: int) -> Iterator[str]:
    """The task at `index` of the program `name`."""
    program = programs.programs[name]
    accesses = list_accesses(programs, program)
    task = program.tasks[index]
    op = OPS[task["opcode"]]
    row0, rows, col0, cols = task["tile"].tolist()
    yield f"{name}: task {index:,} of {len(program.tasks):,}, {task_label(program, index)}"
    yield f"    {op.name}: {op.summary}"
    yield f"    tile rows {row0}-{row0 + rows - 1} columns {col0}-{col0 + cols - 1}"
    if program.claims == abi.CLAIM_OWNED:
        yield f"    lane {task['lane']}"
    if task["flags"]:
        yield f"    {flag_text(task)}"
    yield from _operand_lines(programs, accesses, op.accesses, index)
    for wait in task["waits"][: task["n_waits"]]:
        counters = np.arange(wait["first"], wait["first"] + wait["n"])
        producers = np.flatnonzero(np.isin(program.tasks["signal"], counters))
        yield f"    waits for {wait_text(programs, wait)}: {_tasks_text(program, producers)}"
    yield from _message_lines(programs, program, accesses, index)
    if task["signal"] != abi.NONE_U32:
        waiting = _waiting(program, int(task["signal"]))
        yield f"    signals {programs.counters[task['signal']]}, waited for by {_tasks_text(program, waiting)}"


def _operand_lines(programs: ProgramSet, accesses: Accesses, declared: tuple, index: int) -> Iterator[str]:
    for at in np.flatnonzero(accesses.task == index):
        access, view = declared[accesses.slot[at]], programs.views[accesses.view[at]]
        buffer = programs.buffers[view.buffer]
        region = describe_region(describe_view(programs, view), accesses.rows[at], accesses.columns[at])
        rows, columns = buffer.shape
        copied = ", copied" * bool(accesses.copied[at])
        yield (f"    {MODES[access.mode]} {access.name}: {region}, of {rows:,} x {columns:,} {buffer.dtype} "
               f"({buffer.kind}, {buffer.layout}{copied})")


def _message_lines(programs: ProgramSet, program: TaskProgram, accesses: Accesses, index: int) -> Iterator[str]:
    """Who writes the messages that the task reads, and who reads those that it writes."""
    for at in np.flatnonzero(accesses.task == index):
        view = programs.views[accesses.view[at]]
        if programs.buffers[view.buffer].kind != "message":
            continue
        same = np.array([programs.views[other] == view for other in accesses.view])
        same &= (accesses.rows[:, 0] < accesses.rows[at, 1]) & (accesses.rows[at, 0] < accesses.rows[:, 1])
        same &= (accesses.columns[:, 0] < accesses.columns[at, 1]) & (accesses.columns[at, 0] < accesses.columns[:, 1])
        name = describe_view(programs, view)
        if accesses.reads[at]:
            others = distinct(accesses.task[same & accesses.writes])
            yield f"    polls {name}: {_tasks_text(program, others)}"
        else:
            others = distinct(accesses.task[same & accesses.reads])
            yield f"    sends {name}, polled by {_tasks_text(program, others)}"


def _waiting(program: TaskProgram, counter: int) -> np.ndarray:
    waits = program.tasks["waits"]
    first, end = waits["first"].astype(np.int64), waits["first"].astype(np.int64) + waits["n"]
    used = np.arange(abi.MAX_WAITS) < program.tasks["n_waits"][:, None]
    return np.flatnonzero((used & (first <= counter) & (counter < end)).any(axis=1))


def _tasks_text(program: TaskProgram, tasks: np.ndarray) -> str:
    labels = [task_label(program, int(task)) for task in tasks]
    if len(labels) > FULL_LIST:
        return f"{len(labels):,} tasks from {labels[0]} to {labels[-1]}"
    return "; ".join(labels) or "nobody"
