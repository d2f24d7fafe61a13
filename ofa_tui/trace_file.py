"""Chrome's JSON trace format, which chrome://tracing and ui.perfetto.dev open: slices on tracks.

A track is a pair of numbers, its process and its thread. Times are in us with whole nanoseconds, so that neighbours on
a track never overlap.
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ofa_tui.errors import OfaError

Event = dict[str, Any]


def track_name(process: int, thread: int, name: str, kind: str = "thread_name") -> Event:
    """What a track, or with "process_name" a group of tracks, is called."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def track_place(process: int, thread: int) -> Event:
    """Tracks of a process stand in the order of their numbers."""
    return {"name": "thread_sort_index", "ph": "M", "pid": process, "tid": thread, "args": {"sort_index": thread}}


def trace_slice(name: str, category: str, process: int, thread: int, begin_ns: int, end_ns: int,
                args: dict[str, Any]) -> Event:
    return {"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread, "ts": begin_ns / 1000,
            "dur": (end_ns - begin_ns) / 1000, "args": args}


def write_events(path: Path, events: Iterable[Event]) -> int:
    """Writes them one a line as they come; returns the number of slices. Raises OfaError where that cannot be."""
    slices = 0
    try:
        with path.open("w", encoding="utf-8") as out:
            out.write('{"displayTimeUnit":"ns","traceEvents":[\n')
            for number, event in enumerate(events):
                out.write((",\n" if number else "") + json.dumps(event, separators=(",", ":"), ensure_ascii=False))
                slices += event["ph"] == "X"
            out.write("\n]}\n")
    except OSError as error:
        raise OfaError(f"the trace {path} cannot be written ({error.strerror}); name a file in a folder that "
                       "exists and can be written") from None
    return slices
