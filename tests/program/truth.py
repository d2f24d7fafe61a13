"""What the unchanged program computes: run task by task in queue order, each iteration after the one before.

Tokens depend on the weight versions they happened to pin, so their truth is worked out for every sequence of versions
that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ofa_tui.program.types import Buffer, ProgramSet, View
from tests.program.cells import Cut, Touch, state_buffers
from tests.program.memory import CLOCK, Layout, Values, read_tasks

SWEEP_EVERY = SWEEP_BATCHES = 2


def iterations_of_training(steps: int) -> list[tuple[str, int]]:
    """The train role's order: a held-out sweep after every SWEEP_EVERY steps, except the last."""
    order: list[tuple[str, int]] = []
    for step in range(steps):
        if step and step % SWEEP_EVERY == 0:
            order += [("sweep", batch) for batch in range(batches_before(step - 1), batches_before(step))]
        order.append(("train", step))
    return order


def batches_before(step: int) -> int:
    return step // SWEEP_EVERY * SWEEP_BATCHES


def steps_before(batch: int) -> int:
    return (batch // SWEEP_BATCHES + 1) * SWEEP_EVERY


@dataclass
class Token:
    """The memory after a token, and what each of its tasks found."""

    memory: list[int]
    found: dict[int, Values] = field(default_factory=dict)


class Reference:
    """The truth about `programs`, on cells that are at least as fine as `others` need them.

    `more` are buffers that `programs` does not know.
    """

    def __init__(self, programs: ProgramSet, iterations: int = 4, others: Iterable[Touch] = (),
                 more: Mapping[str, Buffer] = MappingProxyType({})) -> None:
        self.programs, self.iterations, self.more = programs, iterations, more
        self.buffers = programs.buffers | state_buffers(len(programs.programs["doom"].tasks)) | more
        self.tasks = read_tasks(programs)
        every = [task for tasks in self.tasks.values() for task in tasks]
        touched = [task.touches(programs, self.buffers) for task in every]
        self.cut = Cut(self.buffers, (touch for part in (*touched, others) for touch in part))
        self.layout = Layout(self.cut, self.buffers)
        self.numbers: dict[object, int] = {}
        self.forms = set()
        """How the elements of each operand of each opcode lie."""
        for task, parts in zip(every, touched, strict=True):
            task.patterns = self.layout.patterns(parts)
            task.number = self.numbers.setdefault(task.identity, len(self.numbers))
            self.forms |= {(task.op, slot, form(self.buffers, touch.view)) for slot, touch in enumerate(parts)}
        self.patterns = {task.number: task.patterns for task in every}
        self.served = {touch.view.buffer for task, parts in zip(every, touched, strict=True) for touch in parts
                       if task.program == "decode" and "w" in touch.access.mode}
        """Buffers that belong to the decode program."""
        self.seats = max((count for _, count, _ in self.tasks["decode"][-1].waits), default=1)
        """Most blocks that share a token of owned tasks: as many as the last one waits for."""
        self.writers: dict[int, str] = {}
        self.weights: list[dict[str, list[int]]] = []
        """The contents of every weight, by version."""
        self.found: dict[tuple[str, int], dict[int, Values]] = {}
        """What the tasks of a step, sweep batch or tic found, by number."""
        self.memory = list(self.layout.initial)
        self._train()
        self._tokens = {(): Token(list(self.layout.initial))}

    def _train(self) -> None:
        self._keep_weights(0)
        for program, iteration in iterations_of_training(self.iterations):
            version = iteration if program == "train" else steps_before(iteration)
            self.found[program, iteration] = self._run(program, iteration, version, self.memory)
            if program == "train":
                self._keep_weights(version + 1)
        for tic in range(self.iterations):
            self.found["doom", tic] = self._run("doom", tic, 0, self.memory)

    def _keep_weights(self, version: int) -> None:
        self.weights.append({name: self.memory[self.layout.span(name, version)]
                             for name, buffer in self.buffers.items() if buffer.copies > 1})

    def token(self, versions: tuple[int, ...]) -> Token:
        """The last of as many tokens, decoded with these weight versions."""
        known = self._tokens.get(versions)
        if known is None:
            known = Token(list(self.token(versions[:-1]).memory))
            for name, contents in self.weights[versions[-1]].items():
                known.memory[self.layout.span(name, versions[-1])] = contents
            known.found = self._run("decode", len(versions) - 1, versions[-1], known.memory)
            self._tokens[versions] = known
        return known

    def _run(self, program: str, iteration: int, version: int, memory: list[int]) -> dict[int, Values]:
        found = {}
        for task in self.tasks[program]:
            pattern = task.patterns[version % self.layout.rotation]
            values = found[task.number] = pattern.gather(memory)
            made = hash((task.kind, iteration, values))
            self.writers[made] = f"{task.label} of {CLOCK[program]} {iteration}"
            for cell, name in (*pattern.writes, *pattern.packets):
                memory[cell] = made ^ name
        return found


def form(buffers: dict[str, Buffer], view: View) -> tuple[str, str, bool]:
    """What a body has to know of an operand to find an element."""
    buffer = buffers[view.buffer]
    return buffer.layout, buffer.dtype, buffer.kind == "message"
