"""A timeline as regular as a clock, for the fake engine's first three SMs: two train, one serves."""

from __future__ import annotations

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import TimelinePart
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.timeline.programs import program_facts

PROGRAMS = compile_programs(
    ModelConfig(layers=1, width=64, heads=2, feed_forward=128, context=32, vocab=320),
    TrainConfig(batch=2, steps=4, learning_rate=1e-3, warmup_steps=1),
)
FACTS = program_facts(PROGRAMS)
MS = 1_000_000
STEP_MS, TOKEN_MS = 100, 25


def _task(program: str, label: str) -> int:
    number = abi.PROGRAMS.index(program)
    place = FACTS.programs[number].labels.index(label)
    return number * abi.TIMELINE_TOGETHER * abi.TIMELINE_TASKS + place


# SM, task, begin and end after its step's or token's beginning, waited, held; all in ms
STEP = (
    (0, _task("train", "layers.0.fc1 rows 0-15 columns 0-63"), 10, 50, 5, 0),
    (0, _task("train", "publish"), 90, 100, 0, 0),
    (1, _task("train", "layers.0.norm1 rows 0-15 columns 0-63"), 20, 60, 0, 0),
)
TOKEN = ((2, _task("decode", "sample"), 4, 5, 3, 0),)


def between(after_s: float, until_s: float) -> TimelinePart:
    """The tasks that end in that time."""
    rows = []
    for every_ms, tasks in ((STEP_MS, STEP), (TOKEN_MS, TOKEN)):
        for number in range(int(after_s * 1000 / every_ms) - 1, int(until_s * 1000 / every_ms) + 1):
            rows += [(sm, task, number, number * every_ms + begin, number * every_ms + end, waited, held)
                     for sm, task, begin, end, waited, held in tasks
                     if number >= 0 and after_s * 1000 < number * every_ms + end <= until_s * 1000]
    entries = np.zeros(len(rows), abi.TIMELINE_ENTRY)
    for entry, (_, task, number, begin, end, waited, held) in zip(entries, rows, strict=True):
        entry["begin_ns"], entry["body_ns"] = begin * MS, (end - begin) * MS
        entry["waited_ns"], entry["held_ns"] = waited * MS, held * MS
        entry["task"], entry["iteration"] = task, number
    return TimelinePart(np.array([row[0] for row in rows], np.uint16), entries, np.zeros(4, np.int64))
