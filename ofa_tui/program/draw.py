"""A simulated schedule drawn for a terminal, and written down as a trace for Chrome or Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui.program.analysis import Usage, Window, bins
from ofa_tui.program.simulate import NO_TASK, Schedule

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
    """Chrome's JSON trace format: one track per SM, tasks and what they waited for. Returns the number of slices.

    Times are in us with whole nanoseconds, so that neighbours on a track never overlap.
    """
    events: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": sm, "args": {"name": f"SM {sm}"}}
        for sm in range(schedule.blocks)
    ]
    start, end = (np.rint(times).astype(np.int64).tolist() for times in (schedule.start, schedule.end))
    could = np.rint(np.minimum(schedule.could_start, schedule.start)).astype(np.int64).tolist()
    sms, causes = schedule.block.tolist(), schedule.cause.tolist()
    for ticket, sm in enumerate(sms):
        iteration, task = divmod(ticket, schedule.tasks)
        if start[ticket] > could[ticket]:
            cause = causes[ticket]
            by = labels[cause % schedule.tasks] if cause != NO_TASK else "nothing"
            events.append(_slice("waiting", "waiting", sm, could[ticket], start[ticket],
                                 {"task": labels[task], "for": by}))
        events.append(_slice(labels[task], families[task], sm, start[ticket], end[ticket],
                             {"task": task, "iteration": iteration}))
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":")))
    return len(events) - schedule.blocks


def _slice(name: str, category: str, sm: int, start: int, end: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cat": category, "ph": "X", "pid": 0, "tid": sm, "ts": start / 1000,
            "dur": (end - start) / 1000, "args": args}
