"""What the tasks of a program set are called, compute and move: the facts that a timeline is read with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import family_of, task_label
from ofa_tui.program.ops import OPS, Op
from ofa_tui.program.types import ProgramSet, TaskProgram
from ofa_tui.program.work import Work, program_work

TOUCHED: dict[tuple[str, str], Callable[[int, int], float]] = {
    ("embed", "table"): lambda rows, vocab: rows / vocab,
    ("token_begin", "table"): lambda rows, vocab: 1 / vocab,
    ("stream_begin", "table"): lambda rows, vocab: 1 / vocab,
    ("embed_backward", "dx"): lambda rows, vocab: rows / vocab,
    ("embed_adamw", "dx"): lambda rows, vocab: rows / vocab,
    ("decode_attention", "k"): lambda rows, vocab: 0.25,
    ("decode_attention", "v"): lambda rows, vocab: 0.25,
    ("stream_qkv", "k"): lambda rows, vocab: 0.25,
    ("stream_qkv", "v"): lambda rows, vocab: 0.0,
    ("stream_attention", "v"): lambda rows, vocab: 0.5,
}
"""The share of an operand's elements that a task really touches, on average, where its row in OPS allows it more:
given the rows of its tile and the ids of the vocabulary. A cache is half full on average, and where it is "rw", which
counts twice, a single row is written."""


@dataclass(frozen=True)
class TaskFacts:
    """One program's tasks, in queue order."""

    labels: list[str]
    family: np.ndarray
    """i8: index into Facts.families."""
    flops: np.ndarray
    """f8: of matrix products, a multiply-add counts twice."""
    moved: np.ndarray
    """f8: bytes of all operands' elements that the task reads and writes, each once."""
    opcode: np.ndarray
    tile: np.ndarray
    """i4 [n, 4]: row0, rows, col0, cols"""


@dataclass(frozen=True)
class Facts:
    families: list[str]
    """Operations, the same in all layers, in the order of the programs."""
    programs: list[TaskFacts]
    """In the order of abi.PROGRAMS."""

    def of(self, name: str, program: np.ndarray, task: np.ndarray) -> np.ndarray:
        """A field of TaskFacts for tasks given by the numbers of their programs and their places in them."""
        columns = [getattr(facts, name) for facts in self.programs]
        first = np.cumsum([0, *(len(column) for column in columns)])
        return np.concatenate(columns)[first[program] + task]


def program_facts(programs: ProgramSet) -> Facts:
    families: dict[str, int] = {}
    facts = [_task_facts(programs, programs.programs[name], families) for name in abi.PROGRAMS]
    return Facts(list(families), facts)


def _task_facts(programs: ProgramSet, program: TaskProgram, families: dict[str, int]) -> TaskFacts:
    tasks = program.tasks
    works = program_work(programs, program)
    labels = [task_label(program, task) for task in range(len(tasks))]
    prefix = "held out: " if program.name == "sweep" else "token: " if program.name == "decode" else ""
    numbers = [families.setdefault(prefix + family_of(label), len(families)) for label in labels]
    columns = (tasks["opcode"].tolist(), tasks["operands"].tolist(), tasks["tile"][:, 1].tolist(), works)
    moved = [_moved_bytes(programs, OPS[opcode], operands, rows, work)
             for opcode, operands, rows, work in zip(*columns, strict=True)]
    return TaskFacts(labels, np.array(numbers, np.int64), np.array([work.flops for work in works]), np.array(moved),
                     tasks["opcode"].astype(np.int64), tasks["tile"])


def _moved_bytes(programs: ProgramSet, op: Op, operands: list[int], rows: int, work: Work) -> float:
    total = 0.0
    for access, operand in zip(op.accesses, operands, strict=False):
        if operand != abi.NONE_U16:
            buffer = programs.buffers[programs.views[operand].buffer]
            share = TOUCHED.get((op.name, access.name), lambda rows, of: 1.0)(rows, programs.model.vocab)
            total += share * len(access.mode) * work.elements[access.name] * abi.ELEMENTS[buffer.dtype].itemsize
    return total
