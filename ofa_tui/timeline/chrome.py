"""A timeline as a trace that chrome://tracing and ui.perfetto.dev open: a track per SM, and one of steps.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.timeline.programs import Facts
from ofa_tui.timeline.table import ITERATION, iteration_ends
from ofa_tui.timeline.timeline import Timeline

SMS, ITERATIONS = 0, 1
"""The process numbers of the two groups of tracks."""
MADE_AT_ONCE = 10_000


def write_trace(path: Path, timeline: Timeline, facts: Facts) -> int:
    """Returns the number of slices. Raises OfaError where the file cannot be written."""
    count = 0
    try:
        with path.open("w", encoding="utf-8") as out:
            out.write('{"displayTimeUnit":"ns","traceEvents":[\n')
            for number, event in enumerate(trace_events(timeline, facts)):
                out.write((",\n" if number else "") + json.dumps(event, separators=(",", ":"), ensure_ascii=False))
                count += event["ph"] == "X"
            out.write("\n]}\n")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OfaError(f"the trace cannot be written to {path} ({reason}); choose another --out") from None
    return count


def trace_events(timeline: Timeline, facts: Facts) -> Iterator[dict[str, Any]]:
    """Times are in us with whole nanoseconds, so that neighbours on a track never overlap. Waits inside a task are
    drawn before it: that is where nearly all of them are."""
    yield _name("process_name", SMS, 0, "SMs")
    for sm, role in enumerate(timeline.role_of_sms().tolist()):
        yield _name("thread_name", SMS, sm, f"SM {sm} {abi.ROLES[role]}")
        yield {"name": "thread_sort_index", "ph": "M", "pid": SMS, "tid": sm, "args": {"sort_index": sm}}
    yield _name("process_name", ITERATIONS, 0, "iterations")
    for role, unit in ITERATION.items():
        yield from _iteration_slices(timeline, facts, role, unit)
    for first in range(0, len(timeline), MADE_AT_ONCE):
        yield from _task_slices(timeline.part(np.arange(first, min(first + MADE_AT_ONCE, len(timeline)))), facts)


def _iteration_slices(timeline: Timeline, facts: Facts, role: int, unit: str) -> Iterator[dict[str, Any]]:
    """From the end of one to the end of the next; of several games those of the first."""
    own = timeline.part(timeline.task == 0) if role == abi.DOOM else timeline
    ends = iteration_ends(own, facts, role)
    numbers = np.sort(own.iteration[np.isin(own.end, ends) & (own.role == role)])
    if len(ends) < 2 or len(numbers) != len(ends):
        return
    yield _name("thread_name", ITERATIONS, role, f"{unit}s")
    for number, begin, end in zip(numbers[1:].tolist(), ends.tolist(), ends[1:].tolist(), strict=False):
        yield _slice(f"{unit} {number}", unit, ITERATIONS, role, begin, end, {unit: number})


def _task_slices(timeline: Timeline, facts: Facts) -> Iterator[dict[str, Any]]:
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
            yield _slice("waiting", "waiting", SMS, sm, begin - waited, begin, {"for inputs of": label})
        if held:
            yield _slice("waiting", "waiting", SMS, sm, begin, begin + held, {"inside": label})
        yield _slice(label, facts.families[family], SMS, sm, begin + held, end, args)


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(name: str, category: str, pid: int, tid: int, begin: int, end: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cat": category, "ph": "X", "pid": pid, "tid": tid, "ts": begin / 1000,
            "dur": (end - begin) / 1000, "args": args}
