"""Proxy fences: the copy engine does not see, by itself, what a task's ordinary stores did, nor the other way round.

An access by the copy engine that follows another task's write needs FENCE_BEFORE in its own task. A write by the copy
engine that another task's access follows needs FENCE_AFTER in its own. The same task in another iteration is another
task; so is one of another program that shares the buffer, be it by taking turns or by a pinned weight version.

What follows what need not be asked: the other checks have shown that two accesses of which one writes are in order, and
an iteration is followed by the next one, so that each access comes after every write of its elements somewhere in the
run, and before every access to what it writes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ofa_tui.program.accesses import Accesses, ProgramError, describe_access, task_label
from ofa_tui.program.distinct import distinct
from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import ProgramSet


class _Place(NamedTuple):
    program: str
    at: int  # index into the program's accesses


def check_fences(programs: ProgramSet, accesses: dict[str, Accesses]) -> dict[str, int]:
    """Fences that each program needs and has. Raises ProgramError."""
    if not TARGETS[programs.target].copy_engine:
        return dict.fromkeys(accesses, 0)
    buffers = {name: number for number, name in enumerate(programs.buffers)}
    buffer_of_view = np.array([buffers[view.buffer] for view in programs.views], np.int64)
    found = {}
    for name, a in accesses.items():
        flags = programs.programs[name].tasks["flags"][a.task]
        found[name] = 0
        for fence, needs in ((FENCE_BEFORE, a.copied), (FENCE_AFTER, a.copied & a.writes)):
            found[name] += len(distinct(a.task[needs]))
            for at in np.flatnonzero(needs & (flags & fence == 0)).tolist():
                other = _counterpart(programs, accesses, buffer_of_view, _Place(name, at), fence == FENCE_BEFORE)
                if other is None:
                    found[name] -= 1
                else:
                    _refuse(programs, accesses, _Place(name, at), other, fence == FENCE_BEFORE)
    return found


def _counterpart(
    programs: ProgramSet, accesses: dict[str, Accesses], buffer_of_view: np.ndarray, place: _Place, before: bool
) -> _Place | None:
    """The nearest access that the one at `place` follows, or that follows it, and that makes it need its fence."""
    a, at = accesses[place.program], place.at
    rows, columns = a.rows[at], a.columns[at]
    for name in sorted(accesses, key=lambda name: name != place.program):
        b = accesses[name]
        same = buffer_of_view[b.view] == buffer_of_view[a.view[at]]
        same &= (b.rows[:, 0] < rows[1]) & (rows[0] < b.rows[:, 1])
        same &= (b.columns[:, 0] < columns[1]) & (columns[0] < b.columns[:, 1])
        found = np.flatnonzero(same & b.writes if before else same)
        if len(found):
            distance = (a.task[at] - b.task[found]) * (1 if before else -1)
            ahead = len(programs.programs[name].tasks)
            return _Place(name, int(found[np.argmin(np.where(distance > 0, distance, distance + 2 * ahead))]))
    return None


def _refuse(
    programs: ProgramSet, accesses: dict[str, Accesses], place: _Place, other: _Place, before: bool
) -> None:
    program, at = programs.programs[place.program], place.at
    label = task_label(program, int(accesses[place.program].task[at]))
    other_label = task_label(programs.programs[other.program], int(accesses[other.program].task[other.at]))
    other_named = other_label if other.program == place.program else f"{other_label} of {other.program}"
    where = describe_access(programs, program, accesses[place.program], at)
    if before:
        use = "copies to" if accesses[place.program].writes[at] else "copies from"
        sentence = f"{label} {use} {where}, which {other_named} writes before it, without a fence before its copies"
    else:
        use = "writes" if accesses[other.program].writes[other.at] else "reads"
        sentence = f"{label} copies to {where}, which {other_named} {use} after it, without a fence after its copies"
    raise ProgramError("fence", f"{program.name}: {sentence}", (label, other_label))
