"""What each task of a program touches: rectangles of buffers, by the descriptors and the rows of `ops.OPS` alone.

Everything that can be wrong with one task by itself is found here: fields out of range, operands of the wrong shape,
tiles that leave their operand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.program.distinct import distinct
from ofa_tui.program.ops import ADAMW_DECAY, FENCE_AFTER, FENCE_BEFORE, OPS, Op
from ofa_tui.program.regions import REGIONS
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import ProgramSet, TaskProgram, View

ALLOWED_FLAGS = {"adamw": ADAMW_DECAY, "matmul_dw_adamw": ADAMW_DECAY, "embed_adamw": ADAMW_DECAY}
FENCES = FENCE_BEFORE | FENCE_AFTER
"""Flags of any opcode, on targets with a copy engine."""
SEQUENCE_OPS = ("attention", "attention_backward")
TOKEN_OPS = ("decode_attention",)
GAME_OP = "doom_tic"

MOST_UNITS = 2
"""Units of a head."""


class ProgramError(OfaError):
    """A task program that must not run.

    `check` names the rule, `tasks` the labels of the tasks concerned, `place` where in the queue the first of them is.
    """

    exit_code = 3

    def __init__(self, check: str, message: str, tasks: tuple[str, ...] = (), place: int = 0) -> None:
        super().__init__(message)
        self.check = check
        self.tasks = tasks
        self.place = place


@dataclass(frozen=True)
class Accesses:
    """Rectangles a program touches, one element of each array per rectangle."""

    task: np.ndarray  # i8: index in the program
    slot: np.ndarray  # i8: operand of the task's opcode
    view: np.ndarray  # i8: index into ProgramSet.views
    writes: np.ndarray  # bool
    reads: np.ndarray  # bool; with `writes`: updated in place
    copied: np.ndarray  # bool: by the copy engine, where there is one
    rows: np.ndarray  # i8 [n, 2]: first and end row
    columns: np.ndarray  # i8 [n, 2]


def describe_region(buffer: str, rows: np.ndarray, columns: np.ndarray) -> str:
    return f"{buffer} rows {rows[0]}-{rows[1] - 1} columns {columns[0]}-{columns[1] - 1}"


def describe_view(programs: ProgramSet, view: View) -> str:
    if programs.buffers[view.buffer].kind == "message":
        return f"message {view.generation} of {view.buffer}"
    return f"{view.buffer} at version +{view.rotation}" if view.rotation else view.buffer


def describe_access(programs: ProgramSet, program: TaskProgram, accesses: Accesses, at: int) -> str:
    """Region and operand of rectangle `at`."""
    view = programs.views[int(accesses.view[at])]
    operand = OPS[int(program.tasks["opcode"][accesses.task[at]])].accesses[int(accesses.slot[at])].name
    named = describe_view(programs, view)
    return f"{describe_region(named, accesses.rows[at], accesses.columns[at])} (operand {operand})"


def task_label(program: TaskProgram, task: int) -> str:
    if task < len(program.labels):
        return program.labels[task]
    opcode = int(program.tasks["opcode"][task])
    return f"task {task} ({OPS[opcode].name if opcode < len(OPS) else f'opcode {opcode}'})"


def family_of(label: str) -> str:
    """The operation in a task's label, without its layer and its place."""
    return re.sub(r"^layers\.\d+\.", "", re.split(r" (?:rows|head|columns) \d", label)[0])


def list_accesses(programs: ProgramSet, program: TaskProgram) -> Accesses:
    """All rectangles of `program`. Raises ProgramError where a task by itself is malformed."""
    _check_fields(programs, program)
    _check_heads(programs, program)
    shapes = np.array([programs.buffers[view.buffer].shape for view in programs.views], np.int64).reshape(-1, 2)
    parts: list[Accesses] = []
    for opcode in distinct(program.tasks["opcode"]):
        members = np.flatnonzero(program.tasks["opcode"] == opcode)
        for slot in range(len(OPS[opcode].accesses)):
            parts += _rectangles(programs, program, members, slot, shapes)
        _check_unused_axes(program, OPS[opcode], members, shapes)
    if not parts:
        none = np.zeros(0, np.int64)
        return Accesses(none, none, none, none == 1, none == 1, none == 1, *np.zeros((2, 0, 2), np.int64))
    return Accesses(*(np.concatenate([getattr(part, name) for part in parts]) for name in Accesses.__annotations__))


def refuse_any(program: TaskProgram, bad: np.ndarray, check: str, sentence: str) -> None:
    """Raises ProgramError about the first task for which `bad` [tasks] holds."""
    if bad.any():
        label = task_label(program, int(np.argmax(bad)))
        raise ProgramError(check, f"{program.name}: {label} {sentence}", (label,))


def _check_fields(programs: ProgramSet, program: TaskProgram) -> None:
    tasks = program.tasks
    refuse_any(program, tasks["opcode"] >= len(OPS), "opcode", "has an opcode that does not exist")
    refuse_any(program, tasks["n_waits"] > abi.MAX_WAITS, "wait", f"has more than {abi.MAX_WAITS} waits")
    signals = tasks["signal"]
    refuse_any(program, (signals >= len(programs.counters)) & (signals != abi.NONE_U32), "counter",
               "signals a counter that does not exist")
    everywhere = FENCES if TARGETS[programs.target].copy_engine else 0
    flags = np.array([ALLOWED_FLAGS.get(op.name, 0) | everywhere for op in OPS], np.uint8)
    refuse_any(program, (tasks["flags"] & ~flags[tasks["opcode"]]) != 0, "flags",
               "has a flag that its opcode does not know")
    used = tasks["operands"] != abi.NONE_U16
    slots = np.zeros((len(OPS), abi.MAX_OPERANDS), bool)
    needed = slots.copy()
    for index, op in enumerate(OPS):
        slots[index, : len(op.accesses)] = True
        needed[index, : len(op.accesses)] = [not access.optional for access in op.accesses]
    refuse_any(program, (used & ~slots[tasks["opcode"]]).any(axis=1), "operand", "has more operands than its opcode")
    refuse_any(program, (~used & needed[tasks["opcode"]]).any(axis=1), "operand", "lacks an operand")
    refuse_any(program, (used & (tasks["operands"] >= len(programs.views))).any(axis=1), "operand",
               "has an operand that is not in the operand table")
    refuse_any(program, (tasks["tile"] < 0).any(axis=1) | (tasks["tile"][:, 1] < 1) | (tasks["tile"][:, 3] < 1), "tile",
               "has an empty or negative tile")


def _check_heads(programs: ProgramSet, program: TaskProgram) -> None:
    """Tasks of attention own whole sequences, heads, units."""
    model, opcodes = programs.model, program.tasks["opcode"]

    def among(names: tuple[str, ...]) -> np.ndarray:
        return np.isin(opcodes, [index for index, op in enumerate(OPS) if op.name in names])

    unit_ops = tuple(op.name for op in OPS if any(REGIONS[access.region].unit for access in op.accesses))
    sequence, token, unit = among(SEQUENCE_OPS), among(TOKEN_OPS), among(unit_ops)
    row0, rows, col0, cols = program.tasks["tile"].T.astype(np.int64)
    other_sequence = (row0 % model.context != 0) | (rows != model.context)
    refuse_any(program, sequence & other_sequence, "tile", "does not own one whole sequence")
    refuse_any(program, token & ((row0 != 0) | (rows != abi.PASS_ROWS)), "tile", "does not own the rows of a pass")
    other_head = (col0 % model.head_dim != 0) | (cols != model.head_dim)
    refuse_any(program, (sequence | token | unit) & other_head, "tile", "does not own one whole head")
    no_unit = (row0 >= rows) | (rows > MOST_UNITS) | (model.head_dim % (2 * np.maximum(rows, 1)) != 0)
    refuse_any(program, unit & no_unit, "tile", "is no unit of its head")


def _rectangles(
    programs: ProgramSet, program: TaskProgram, members: np.ndarray, slot: int, shape_of: np.ndarray
) -> list[Accesses]:
    """Rectangles of one operand slot of the tasks `members`, which all have the same opcode."""
    access = OPS[int(program.tasks["opcode"][members[0]])].accesses[slot]
    members = members[program.tasks["operands"][members, slot] != abi.NONE_U16]
    if not len(members):
        return []
    views = program.tasks["operands"][members, slot].astype(np.int64)
    shapes = shape_of[views]
    row0, rows, col0, cols = program.tasks["tile"][members].astype(np.int64).T
    tiles, region = (row0, rows, col0, cols), REGIONS[access.region]
    fits = region.fits(tiles, (shapes[:, 0], shapes[:, 1]))
    everywhere = np.ones(len(members), bool)
    parts = []
    for first_row, end_row, first_column, end_column in region.rectangles(tiles, (shapes[:, 0], shapes[:, 1])):
        part = Accesses(
            members, np.full(len(members), slot), views, everywhere & ("w" in access.mode),
            everywhere & ("r" in access.mode), everywhere & access.copied, np.stack([first_row, end_row], 1),
            np.stack([first_column, end_column], 1))
        parts.append(part)
        outside = (end_row > shapes[:, 0]) | (end_column > shapes[:, 1])
        bad = outside | np.logical_not(fits)
        if bad.any():
            at = int(np.argmax(bad))
            label, (all_rows, all_columns) = task_label(program, int(members[at])), shapes[at]
            fault = "reaches outside its operand" if outside[at] else f"has a tile that is no whole {access.region} of"
            where = f"{describe_access(programs, program, part, at)}, of {all_rows} x {all_columns} elements"
            raise ProgramError("tile", f"{program.name}: {label} {fault}: {where}", (label,))
    return parts


def _check_unused_axes(program: TaskProgram, op: Op, members: np.ndarray, shape_of: np.ndarray) -> None:
    """An axis of the tile on which no region depends is whole: the body works on all of it, whatever the tile says."""
    shapes = np.ones((len(members), 2), np.int64)
    if op.output is not None:
        shapes = shape_of[program.tasks["operands"][members, op.output]]
    used = {axis for access in op.accesses for axis in REGIONS[access.region].tile_axes}
    tiles = program.tasks["tile"][members].astype(np.int64)
    for axis, name in enumerate(("rows", "columns")):
        start, length = tiles[:, 2 * axis], tiles[:, 2 * axis + 1]
        whole = (start == 0) | (op.name == GAME_OP and name == "rows")
        bad = ~whole | (length != shapes[:, axis])
        if name not in used and bad.any():
            at = int(np.argmax(bad))
            label = task_label(program, int(members[at]))
            given = f"{start[at]}-{start[at] + length[at] - 1}"
            raise ProgramError("tile", f"{program.name}: {label} has {name} {given} in its tile, but {op.name} works "
                               f"on all {name}, 0-{shapes[at, axis] - 1}", (label,))
