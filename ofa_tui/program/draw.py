"""A simulated schedule drawn for a terminal, and written down as a trace for Chrome or Perfetto."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ofa_tui.program.analysis import Usage, Window, bins
from ofa_tui.program.simulate import NO_TASK, Schedule
from ofa_tui.trace_file import Event, trace_slice, track_name, write_events

EIGHTHS = " ▁▂▃▄▅▆▇█"
SMS_A_LINE = 64
NAME_WIDTH = 19


def bar(values: np.ndarray) -> str:
    """A column for each value between 0 and 1; what is not nothing is seen."""
    steps = np.clip(np.rint(values * 8), np.where(values > 1e-4, 1, 0), 8).astype(int)
    return "".join(EIGHTHS[step] for step in steps)


def sm_lines(usage: Usage, window: Window) -> Iterator[str]:
    """Busy share of each SM, a column each."""
    busy = usage.busy / window.length
    for first in range(0, len(busy), SMS_A_LINE):
        last = min(first + SMS_A_LINE, len(busy)) - 1
        yield f"  {f'SM {first} to {last}':<{NAME_WIDTH}}{bar(busy[first : last + 1])}"


def time_lines(schedule: Schedule, window: Window, families: list[str], columns: int) -> Iterator[str]:
    """A row for each family, by its first task: the share of all SMs that run it, over the window."""
    family_of = np.array(families)
    of_ticket = np.tile(family_of, schedule.iterations)
    capacity = window.length / columns * schedule.blocks
    ready = np.minimum(schedule.could_start, schedule.start)
    for family in dict.fromkeys(families):
        members = of_ticket == family
        row = bins(schedule.start[members], schedule.end[members], window, columns) / capacity
        yield f"  {family:<{NAME_WIDTH}}{bar(row)}"
    yield f"  {'waiting':<{NAME_WIDTH}}{bar(bins(ready, schedule.start, window, columns) / capacity)}"


def write_trace(path: Path, schedule: Schedule, labels: list[str], families: list[str]) -> int:
    """One track per SM, tasks and what they waited for. Returns the number of slices. Raises OfaError."""
    return write_events(path, _trace_events(schedule, labels, families))


def _trace_events(schedule: Schedule, labels: list[str], families: list[str]) -> Iterator[Event]:
    for sm in range(schedule.blocks):
        yield track_name(0, sm, f"SM {sm}")
    start, end = (np.rint(times).astype(np.int64).tolist() for times in (schedule.start, schedule.end))
    could = np.rint(np.minimum(schedule.could_start, schedule.start)).astype(np.int64).tolist()
    causes = schedule.cause.tolist()
    for ticket, sm in enumerate(schedule.block.tolist()):
        iteration, task = divmod(ticket, schedule.tasks)
        if start[ticket] > could[ticket]:
            cause = causes[ticket]
            by = labels[cause % schedule.tasks] if cause != NO_TASK else "nothing"
            yield trace_slice("waiting", "waiting", 0, sm, could[ticket], start[ticket],
                              {"task": labels[task], "for": by})
        yield trace_slice(labels[task], families[task], 0, sm, start[ticket], end[ticket],
                          {"task": task, "iteration": iteration})
