"""Changes of compiled programs by hand, and the refusal that each has to meet."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.proved import fingerprint
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from ofa_tui.program.validate import ProgramError, validate
from tests.program.shapes import small_programs

SMALL = small_programs()
SM90_MODEL = ModelConfig(layers=2, width=128, heads=2, feed_forward=256, context=64, vocab=512)
SM90 = compile_programs(SM90_MODEL, TrainConfig(batch=4, steps=10, learning_rate=1e-3, warmup_steps=2), games=2,
                        target="sm90")

Change = Callable[[ProgramSet, TaskProgram], object]
Mutants = dict[str, tuple[str, Change, str, tuple[str, ...]]]
"""What is wrong: the program changed, how, the check that has to find it, words of its message."""


def check_mutant(programs: ProgramSet, name: str, change: Change, check: str, words: tuple[str, ...]) -> None:
    """A copy of `programs` with `change` made in its program `name` is refused."""
    changed = copy.deepcopy(programs)
    change(changed, changed.programs[name])
    assert fingerprint(changed) != fingerprint(programs)
    check_refused(changed, check, words)


def check_refused(programs: ProgramSet, check: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ProgramError) as refusal:
        validate(programs)
    message = str(refusal.value)
    assert refusal.value.check == check, message
    assert all(word in message for word in words), message
    assert "\n" not in message


def named(program: TaskProgram, start: str) -> int:
    """Index of the first task whose label begins with `start`."""
    return next(i for i, label in enumerate(program.labels) if label.startswith(start))


def remove(program: TaskProgram, task: int) -> None:
    program.tasks = np.delete(program.tasks, task)
    del program.labels[task]


def move(program: TaskProgram, task: int, to: int) -> None:
    """Takes a task out of the queue and puts it back at place `to`."""
    order = list(range(len(program.tasks)))
    order.insert(to, order.pop(task))
    program.tasks = program.tasks[order]
    program.labels = [program.labels[i] for i in order]


def count_again(program: TaskProgram, counter: int) -> None:
    """Adapts the waits for one counter (which stand alone) to the number of its producers."""
    waits = program.tasks["waits"]
    for task, slot in np.argwhere(waits["first"] == counter):
        waits[task, slot]["count"] = (program.tasks["signal"] == counter).sum()


def remove_uncounted(program: TaskProgram, task: int) -> None:
    counter = program.tasks["signal"][task]
    remove(program, task)
    count_again(program, counter)


def tile_moved(column: int, by: int, label: str) -> Change:
    def change(programs: ProgramSet, program: TaskProgram) -> None:
        program.tasks["tile"][named(program, label), column] += by

    return change


def on_task(label: str, change: Callable[[np.void], None]) -> Change:
    return lambda programs, program: change(program.tasks[named(program, label)])


def on_tasks(label: str, change: Callable[[np.void], None]) -> Change:
    """`change` on all tasks whose label begins with `label`."""

    def change_all(programs: ProgramSet, program: TaskProgram) -> None:
        for task, name in zip(program.tasks, program.labels, strict=True):
            if name.startswith(label):
                change(task)

    return change_all


def set_field(name: str, value: object) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task[name] = value

    return change


def set_wait(name: str, value: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["waits"][0][name] = value

    return change


def set_operand(slot: int, value: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["operands"][slot] = value

    return change


def set_tile(column: int, value: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["tile"][column] = value

    return change


def set_view(label: str, slot: int, view: View) -> Change:
    """`view` is operand `slot` of all tasks whose label begins with `label`."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        programs.views.append(view)
        on_tasks(label, set_operand(slot, len(programs.views) - 1))(programs, program)

    return change


def set_buffer(name: str, **fields: object) -> Change:
    def change(programs: ProgramSet, program: TaskProgram) -> None:
        programs.buffers[name] = replace(programs.buffers[name], **fields)

    return change


def decode_reads(buffer: str, rotation: int) -> Change:
    """The decode program takes `buffer` to be its embedding table."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        programs.views.append(View(buffer, rotation))
        programs.programs["decode"].tasks["operands"][0][0] = len(programs.views) - 1

    return change
