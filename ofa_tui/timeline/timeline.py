"""What SMs ran and when, put together from what an engine's polls gave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import TimelinePart

LAST_TASK = {abi.TRAIN: "publish", abi.SERVE: "sample", abi.DOOM: "doom_tic"}
"""The task type whose end is the end of an iteration of a role."""
ITERATION = {abi.TRAIN: "step", abi.SERVE: "token", abi.DOOM: "tic"}
ROLE_OF_PROGRAM = np.array([abi.TRAIN, abi.TRAIN, abi.SERVE, abi.DOOM])


@dataclass(frozen=True)
class Timeline:
    """Tasks that have ended, one element of each array a task (or several done as one), in order of time on each SM.

    All i8, times in ns since the launch. A task has its SM to itself from `begin - waited` to `end`; the rest of an
    SM's time lies between tasks.
    """

    n_sms: int
    sm: np.ndarray
    program: np.ndarray
    task: np.ndarray
    together: np.ndarray
    """How many tasks were done as one; `task` is the first."""
    iteration: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    held: np.ndarray
    """Of the time from begin to end: waits inside the task."""
    waited: np.ndarray
    """Before the beginning: the SM had nothing to do but wait for the task's inputs."""
    claimed: np.ndarray
    """Before the beginning the task was claimed."""
    lost: int = 0
    """Tasks that are left out because their times were overwritten before they were read."""

    def __len__(self) -> int:
        return len(self.sm)

    @property
    def role(self) -> np.ndarray:
        """i8: the role that each task belongs to."""
        return ROLE_OF_PROGRAM[self.program]

    def role_of_sms(self) -> np.ndarray:
        """i8 [n_sms]: the role that each SM spent most of its tasks on; idle without any."""
        counts = np.zeros((self.n_sms, len(abi.ROLES)), np.int64)
        np.add.at(counts, (self.sm, self.role), 1)
        return np.where(counts.any(axis=1), counts.argmax(axis=1), abi.IDLE)

    def part(self, members: np.ndarray) -> Timeline:
        """Some of its tasks: a mask or indices."""
        return replace(self, **{name: getattr(self, name)[members] for name in ARRAYS})


ARRAYS = ("sm", "program", "task", "together", "iteration", "begin", "end", "held", "waited", "claimed")


def make_timeline(parts: Iterable[TimelinePart], n_sms: int) -> Timeline:
    """The timeline of consecutive polls."""
    given: Sequence[TimelinePart] = list(parts)
    sms = np.concatenate([np.zeros(0, np.int64), *(part.sms for part in given)]).astype(np.int64)
    entries = np.concatenate([np.zeros(0, abi.TIMELINE_ENTRY), *(part.entries for part in given)])
    column = {name: entries[name].astype(np.int64) for name in abi.TIMELINE_ENTRY.names or ()}
    what, task = np.divmod(column["task"], abi.TIMELINE_TASKS)
    program, together = np.divmod(what, abi.TIMELINE_TOGETHER)
    begin = column["begin_ns"]
    whole = Timeline(n_sms, sms, program, task, together + 1, column["iteration"], begin, begin + column["body_ns"],
                     np.minimum(column["held_ns"], column["body_ns"]), column["waited_ns"], column["claimed_ns"],
                     sum(int(part.lost.sum()) for part in given))
    return whole.part(np.lexsort((begin, sms)))
