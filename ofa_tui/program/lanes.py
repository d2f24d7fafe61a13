"""Owned tasks: what the engine takes for granted of a program whose tasks have lanes (cuda/sched/seats.h).

A block finds its tasks by stepping from run to run: lanes come in runs that count up from 0. At most as many blocks
share an iteration as tasks signal the counter that the task before the last waits for, and these have one lane each, so
that every block has one of them. After them come only the run of that task and the last task: whatever a block has
stored in an iteration is passed on by that counter, then to the last task, from there to the one that opens the next
iteration, and to all blocks that see it open.
"""

from __future__ import annotations

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import ProgramError, refuse_any, task_label
from ofa_tui.program.types import ProgramSet, TaskProgram


def check_lanes(programs: ProgramSet, program: TaskProgram) -> None:
    """Raises ProgramError. The order of the tasks has been checked before."""
    if program.claims != abi.CLAIM_OWNED:
        refuse_any(program, program.tasks["lane"] != 0, "lane", "has a lane, but whoever comes first may claim it")
        return
    lanes = program.tasks["lane"].astype(np.int64)
    before = np.concatenate([[-1], lanes[:-1]])
    refuse_any(program, (lanes != 0) & (lanes != before + 1), "lane", "has a lane that neither follows that of the "
               "task before it nor begins a run at 0, so that no block finds it")
    _check_last_run(programs, program, lanes)


def _check_last_run(programs: ProgramSet, program: TaskProgram, lanes: np.ndarray) -> None:
    tasks, waiting = program.tasks, len(program.tasks) - 2
    label = task_label(program, waiting)
    first, count, n, lag = tasks["waits"][waiting, 0].tolist()
    if waiting < 0 or not tasks["n_waits"][waiting] or n != 1 or lag:
        raise ProgramError("lane", f"{program.name}: the first wait of {label} is not for one counter of this "
                           "iteration, by which the engine knows how many blocks may share it", (label,))
    end = int(waiting - lanes[waiting])  # of the run that is counted; then that of the waiting task begins
    run = np.arange(max(0, end - count), end)
    stray = (tasks["signal"][run] != first) | (lanes[run] != np.arange(len(run)))
    if len(run) < count or stray.any():
        other, counter = task_label(program, int(run[np.argmax(stray)])), programs.counters[first]
        raise ProgramError("lane", f"{program.name}: the {count} tasks that signal {counter!r}, for which {label} "
                           f"waits, are not the last run of lanes, as {other} shows; a block without one of them would "
                           "not pass on what it has stored", (label, other))
