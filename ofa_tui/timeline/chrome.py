"""A timeline as a trace file: a track per SM, and one of steps, of tokens and of tics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.timeline.programs import Facts
from ofa_tui.timeline.table import ITERATION, last_tasks
from ofa_tui.timeline.timeline import Timeline
from ofa_tui.trace_file import Event, trace_slice, track_name, track_place, write_events

SMS, ITERATIONS = 0, 1
"""The process numbers of the two groups of tracks."""
MADE_AT_ONCE = 10_000


def write_trace(path: Path, timeline: Timeline, facts: Facts) -> int:
    """Returns the number of slices. Raises OfaError where the file cannot be written."""
    return write_events(path, trace_events(timeline, facts))


def trace_events(timeline: Timeline, facts: Facts) -> Iterator[Event]:
    """Waits inside a task are drawn before it: that is where nearly all of them are."""
    yield track_name(SMS, 0, "SMs", "process_name")
    for sm, role in enumerate(timeline.role_of_sms().tolist()):
        yield track_name(SMS, sm, f"SM {sm} {abi.ROLES[role]}")
        yield track_place(SMS, sm)
    yield track_name(ITERATIONS, 0, "iterations", "process_name")
    for role, unit in ITERATION.items():
        yield from _iteration_slices(timeline, facts, role, unit)
    for first in range(0, len(timeline), MADE_AT_ONCE):
        yield from _task_slices(timeline.part(np.arange(first, min(first + MADE_AT_ONCE, len(timeline)))), facts)


def _iteration_slices(timeline: Timeline, facts: Facts, role: int, unit: str) -> Iterator[Event]:
    """From the end of one to the end of the next; of several games those of the first."""
    last = last_tasks(timeline, facts, role)
    if role == abi.DOOM:
        last = last.part(last.task == 0)
    if len(last) < 2:
        return
    yield track_name(ITERATIONS, role, f"{unit}s")
    ends = last.end.tolist()
    for number, begin, end in zip(last.iteration[1:].tolist(), ends[:-1], ends[1:], strict=True):
        yield trace_slice(f"{unit} {number}", unit, ITERATIONS, role, begin, end, {unit: number})


def _task_slices(timeline: Timeline, facts: Facts) -> Iterator[Event]:
    columns = [getattr(timeline, name).tolist() for name in
               ("sm", "program", "task", "together", "iteration", "begin", "end", "held", "waited", "claimed")]
    families = facts.of("family", timeline.program, timeline.task).tolist()
    tiles = facts.of("tile", timeline.program, timeline.task).tolist()
    for (sm, program, task, together, iteration, begin, end, held, waited, claimed), family, tile in zip(
            zip(*columns, strict=True), families, tiles, strict=True):
        label = facts.programs[program].labels[task]
        args = {"program": abi.PROGRAMS[program], "task": task, "iteration": iteration,
                "tile": tile, "claimed_us_before": claimed / 1e3}
        if together > 1:
            args["tasks"] = together
        if waited:
            yield trace_slice("waiting", "waiting", SMS, sm, begin - waited, begin, {"for inputs of": label})
        if held:
            yield trace_slice("waiting", "waiting", SMS, sm, begin, begin + held, {"inside": label})
        yield trace_slice(label, facts.families[family], SMS, sm, begin + held, end, args)
