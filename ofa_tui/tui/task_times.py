"""The last seconds of a run's timeline, as tables for the SM pane."""

from __future__ import annotations

from collections import deque

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import TimelinePart
from ofa_tui.timeline.limits import Limits
from ofa_tui.timeline.programs import Facts
from ofa_tui.timeline.table import Table, role_tables, sm_table
from ofa_tui.timeline.timeline import ITERATION, ROLE_OF_PROGRAM, Timeline, make_timeline

SECONDS, MOST_ROWS, REFRESH_S = 5.0, 100_000, 0.5
"""What is kept of each role: so long, but no more tasks than can be summed up in passing. A GPU runs millions a
second."""


class TaskTimes:
    def __init__(self, n_sms: int, facts: Facts, limits: Limits | None) -> None:
        self.facts, self.limits = facts, limits
        self.lost = 0
        """Tasks whose times were overwritten before they were read, since the launch."""
        self._n_sms = n_sms
        self._parts: dict[int, deque[tuple[float, TimelinePart]]] = {role: deque() for role in ITERATION}
        self._timelines: dict[int, Timeline] = {}
        self._tables: dict[int, Table] = {}
        self._seconds, self._summed_s = 0.0, float("-inf")

    def absorb(self, part: TimelinePart, seconds: float) -> None:
        self.lost += int(part.lost.sum())
        self._seconds = seconds
        programs = part.entries["task"] // (abi.TIMELINE_TASKS * abi.TIMELINE_TOGETHER)
        for role, kept in self._parts.items():
            own = ROLE_OF_PROGRAM[programs] == role
            if own.any():
                kept.append((seconds, TimelinePart(part.sms[own], part.entries[own])))
            rows = sum(len(held.sms) for _, held in kept)
            while len(kept) > 2 and (kept[1][0] < seconds - SECONDS or rows > MOST_ROWS):
                rows -= len(kept.popleft()[1].sms)

    @property
    def tables(self) -> dict[int, Table]:
        """By role, of those that have run two iterations lately. Summed up when they are asked for, and not more often
        than every REFRESH_S of the run."""
        if self._seconds - self._summed_s >= REFRESH_S:
            self._summed_s = self._seconds
            self._tables = {}
            for role, kept in self._parts.items():
                self._timelines[role] = made = make_timeline((part for _, part in kept), self._n_sms)
                self._tables |= {table.role: table for table in role_tables(made, self.facts)}
        return self._tables

    def whole(self, role: int) -> Table | None:
        """Of all SMs of a role; of the first role that has a table where this one has none."""
        return self.tables.get(role) or next(iter(self.tables.values()), None)

    def of_sm(self, sm: int, role: int) -> Table | None:
        """One SM's part in the table of its role."""
        table = self.tables.get(role)
        if table is None or not np.any(self._timelines[role].sm == sm):
            return None
        return sm_table(self._timelines[role], self.facts, table, sm)
