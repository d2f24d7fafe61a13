"""Where the time of the SMs of a role goes: task families, waiting, and what lies between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import OPCODES
from ofa_tui.timeline.limits import Limits
from ofa_tui.timeline.programs import Facts
from ofa_tui.timeline.timeline import ITERATION, LAST_TASK, Timeline

FLOPS_A_BYTE = 2.0
"""Tasks with fewer are rated by the memory they move: a decoded token's products have one at most, a step's many."""
WAITING, BETWEEN = "waiting", "between tasks"


@dataclass(frozen=True)
class Row:
    """A task family. Parts of tasks at the edges of the window count as parts."""

    name: str
    sm_ns: float
    """Time inside its tasks on all SMs, waits left out."""
    tasks: float
    flops: float
    moved: float
    """Bytes."""


@dataclass(frozen=True)
class Table:
    """The rows' times, waiting and what is between tasks sum to the number of SMs times the window."""

    role: int
    sms: int
    begin_ns: int
    end_ns: int
    iterations: int
    """Steps, tokens or tics in the window."""
    rows: list[Row]
    waiting_ns: float
    between_ns: float

    @property
    def total_ns(self) -> float:
        return float(self.sms) * (self.end_ns - self.begin_ns)

    @property
    def unit(self) -> str:
        return ITERATION[self.role]


def make_table(timeline: Timeline, facts: Facts, role: int, sms: np.ndarray, begin: int, end: int,
               iterations: int) -> Table:
    """The time from `begin` to `end` on these SMs."""
    own = timeline.part(np.isin(timeline.sm, sms) & (timeline.end > begin) & (timeline.begin - timeline.waited < end))
    length = np.maximum(own.end - own.begin, 1)
    share = (np.minimum(own.end, end) - np.maximum(own.begin, begin)).clip(0) / length
    share = np.where(own.end == own.begin, 1.0, share)
    held = own.held * share
    body = (own.end - own.begin) * share - held
    before = (np.minimum(own.begin, end) - np.maximum(own.begin - own.waited, begin)).clip(0)
    counts = share * own.together
    family = facts.of("family", own.program, own.task)
    columns = (body, counts, facts.of("flops", own.program, own.task) * counts,
               facts.of("moved", own.program, own.task) * counts)
    sums = [np.bincount(family, column, len(facts.families)).tolist() for column in columns]
    rows = [Row(name, *figures) for name, *figures in zip(facts.families, *sums, strict=True) if figures[1] > 0]
    waiting = float(before.sum() + held.sum())
    between = float(len(sms)) * (end - begin) - waiting - sum(row.sm_ns for row in rows)
    return Table(role, len(sms), begin, end, iterations, rows, waiting, between)


def last_tasks(timeline: Timeline, facts: Facts, role: int) -> Timeline:
    """Those whose ends are the ends of the role's iterations, in order of time."""
    last = (timeline.role == role) & (facts.of("opcode", timeline.program, timeline.task) == OPCODES[LAST_TASK[role]])
    return timeline.part(np.flatnonzero(last)[np.argsort(timeline.end[last], kind="stable")])


def role_tables(timeline: Timeline, facts: Facts, last: int | None = None) -> Iterator[Table]:
    """For each role with two iterations at least: the `last` whole ones, or all between the first end and the last."""
    roles = timeline.role_of_sms()
    for role in ITERATION:
        ends, sms = last_tasks(timeline, facts, role).end, np.flatnonzero(roles == role)
        if len(ends) < 2 or not len(sms):
            continue
        first = max(0, len(ends) - 1 - last) if last and role == abi.TRAIN else 0
        yield make_table(timeline, facts, role, sms, int(ends[first]), int(ends[-1]), len(ends) - 1 - first)


def sm_table(timeline: Timeline, facts: Facts, table: Table, sm: int) -> Table:
    """The part of one SM in a table."""
    return make_table(timeline, facts, table.role, np.array([sm]), table.begin_ns, table.end_ns, table.iterations)


def shortened(table: Table, most: int) -> Table:
    """The table with `most` rows at most: the largest, and the others as one."""
    rows = sorted(table.rows, key=lambda row: -row.sm_ns)
    if len(rows) <= most:
        return table
    kept, others = rows[: max(0, most - 1)], rows[max(0, most - 1) :]
    rest = Row(f"{len(others)} others", sum(row.sm_ns for row in others), sum(row.tasks for row in others), 0.0, 0.0)
    return replace(table, rows=[*kept, rest])


HEADER = ("task family", "ms", "share", "tasks", "mean us", "rate", "limit")


def table_cells(table: Table, limits: Limits | None) -> Iterator[tuple[str, ...]]:
    """A row of texts under HEADER for each family, largest first, then waiting, between tasks and the sum."""
    for row in sorted(table.rows, key=lambda row: -row.sm_ns):
        rate, share = rate_texts(row, table.sms, limits)
        yield (row.name, *_time_texts(row.sm_ns, table), f"{row.tasks / table.iterations:,.1f}",
               f"{row.sm_ns / row.tasks / 1e3:,.1f}", rate, share)
    tasks = sum(row.tasks for row in table.rows) / table.iterations
    yield (WAITING, *_time_texts(table.waiting_ns, table), "", "", "", "")
    each = table.between_ns / 1e3 / max(tasks * table.iterations, 1.0)
    yield (BETWEEN, *_time_texts(table.between_ns, table), "", f"{each:,.1f}", "", "")
    yield ("sum", *_time_texts(table.total_ns, table), f"{tasks:,.1f}", "", "", "")


def _time_texts(ns: float, table: Table) -> tuple[str, str]:
    return f"{ns / table.iterations / 1e6:,.3f}", f"{ns / table.total_ns:.1%}"


def rate_texts(row: Row, sms: int, limits: Limits | None) -> tuple[str, str]:
    """What so many SMs would reach if all did this; and the per cent of what they could."""
    if row.sm_ns <= 0:
        return "", ""
    if row.flops > FLOPS_A_BYTE * row.moved:
        rate = row.flops / row.sm_ns * 1e9 * sms
        text = f"{rate / 1e12:,.1f} TFLOP/s" if rate >= 1e12 else f"{rate / 1e9:,.1f} GFLOP/s"
        return text, f"{rate / (limits.flop_s_of_sm * sms):.0%}" if limits else ""
    if row.moved:
        rate = row.moved / row.sm_ns * 1e9 * sms
        return f"{rate / 1e9:,.1f} GB/s", f"{rate / limits.bytes_s(sms):.0%}" if limits else ""
    return "", ""


def table_lines(table: Table, limits: Limits | None) -> Iterator[str]:
    """The table for a terminal."""
    ms = (table.end_ns - table.begin_ns) / 1e6
    yield (f"{abi.ROLES[table.role]}: {table.sms} SMs, {table.iterations:,} {table.unit}s in {ms:,.1f} ms, "
           f"{ms / table.iterations:,.3f} ms a {table.unit}; times are of all SMs together, a {table.unit}")
    cells = [HEADER, *table_cells(table, limits)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADER))]
    for row in cells:
        first, *others = zip(row, widths, strict=True)
        yield ("  " + first[0].ljust(first[1]) + "".join("  " + text.rjust(width) for text, width in others)).rstrip()
