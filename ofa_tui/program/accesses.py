"""What each task of a program touches: rectangles of buffers, by the descriptors and the rows of `ops.OPS` alone.

Everything that can be wrong with one task by itself is found here: indices out of range, operands of the wrong shape,
tiles that leave their operand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.program.ops import ADAMW_DECAY, OPS, Access, Op
from ofa_tui.program.types import ProgramSet, TaskProgram, View

SHAPES: dict[str, str] = {
    "embed": "table.cols=x.cols",
    "norm": "x=y gain.cols=x.cols rstd.rows=x.rows",
    "matmul": "x.cols=w.cols y.rows=x.rows y.cols=w.rows",
    "matmul_residual": "x.cols=w.cols y.rows=x.rows y.cols=w.rows skip=y",
    "matmul_gelu": "x.cols=w.cols u.rows=x.rows u.cols=w.rows a=u",
    "attention": "lse.rows=o.rows qkv.rows=o.rows",
    "cross_entropy": "losses.rows=logits.rows",
    "cross_entropy_loss": "losses.rows=logits.rows",
    "matmul_dx": "dy.cols=w.rows dx.rows=dy.rows dx.cols=w.cols",
    "matmul_dx_gelu": "dy.cols=w.rows du.rows=dy.rows du.cols=w.cols u=du",
    "matmul_dw": "dy.rows=x.rows dw.rows=dy.cols dw.cols=x.cols",
    "norm_backward": "dy=x dx=x skip=x rstd.rows=x.rows gain.cols=x.cols dgain.cols=x.cols",
    "attention_backward": "dqkv=qkv do=o lse.rows=o.rows qkv.rows=o.rows",
    "embed_backward": "dtable.cols=dx.cols",
    "adamw": "grad=p p_next=p m=p v=p",
    "adamw_gain": "grad=p p_next=p m=p v=p dgain.cols=p.cols",
    "token_begin": "table.cols=x.cols",
    "decode_norm_matmul": "x.cols=w.cols gain=x y.cols=w.rows",
    "decode_norm_matmul_gelu": "x.cols=w.cols gain=x a.cols=w.rows",
    "decode_matmul_residual": "x.cols=w.cols y.cols=w.rows skip=y",
    "decode_attention": "k=v o.cols=k.cols",
}
"""Equal extents of an opcode's operands, by operand name; a bare name stands for both rows and columns."""

ALLOWED_FLAGS = {"adamw": ADAMW_DECAY}
SEQUENCE_OPS = ("attention", "attention_backward")
TOKEN_OPS = ("decode_attention",)
GAME_OP = "doom_tic"

ROW_REGIONS = {"tile", "rows", "heads", "row_head", "part", "transposed"}
COLUMN_REGIONS = {"tile", "columns", "cols", "heads", "row_head"}
"""Regions that depend on the rows of a tile, or on its columns."""


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
    view: np.ndarray  # i8: index into ProgramSet.views
    writes: np.ndarray  # bool
    reads: np.ndarray  # bool; with `writes`: updated in place
    rows: np.ndarray  # i8 [n, 2]: first and end row
    columns: np.ndarray  # i8 [n, 2]


def describe_region(buffer: str, rows: np.ndarray, columns: np.ndarray) -> str:
    return f"{buffer} rows {rows[0]}-{rows[1] - 1} columns {columns[0]}-{columns[1] - 1}"


def task_label(program: TaskProgram, task: int) -> str:
    if task < len(program.labels):
        return program.labels[task]
    opcode = int(program.tasks["opcode"][task])
    return f"task {task} ({OPS[opcode].name if opcode < len(OPS) else f'opcode {opcode}'})"


def list_accesses(programs: ProgramSet, program: TaskProgram) -> Accesses:
    """All rectangles of `program`. Raises ProgramError where a task by itself is malformed."""
    _check_fields(programs, program)
    parts: list[Accesses] = []
    for opcode in np.unique(program.tasks["opcode"]):
        members = np.flatnonzero(program.tasks["opcode"] == opcode)
        for slot, access in enumerate(OPS[opcode].accesses):
            parts += _rectangles(programs, program, members, slot, access)
        _check_shapes(programs, program, OPS[opcode].name, members)
        _check_unused_axes(programs, program, OPS[opcode], members)
    if not parts:
        empty = np.zeros(0, np.int64)
        return Accesses(empty, empty, empty == 1, empty == 1, np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64))
    return Accesses(*(np.concatenate([getattr(part, name) for part in parts]) for name in Accesses.__annotations__))


def _check_fields(programs: ProgramSet, program: TaskProgram) -> None:
    tasks = program.tasks

    def refuse(bad: np.ndarray, check: str, sentence: str) -> None:
        if bad.any():
            label = task_label(program, int(np.argmax(bad)))
            raise ProgramError(check, f"{program.name}: {label} {sentence}", (label,))

    refuse(tasks["opcode"] >= len(OPS), "opcode", "has an opcode that does not exist")
    refuse(tasks["n_waits"] > abi.MAX_WAITS, "wait", f"has more than {abi.MAX_WAITS} waits")
    signals = tasks["signal"]
    refuse((signals >= len(programs.counters)) & (signals != abi.NONE_U32), "counter",
           "signals a counter that does not exist")
    flags = np.array([ALLOWED_FLAGS.get(op.name, 0) for op in OPS], np.uint8)
    refuse((tasks["flags"] & ~flags[tasks["opcode"]]) != 0, "flags", "has a flag that its opcode does not know")
    used = tasks["operands"] != abi.NONE_U16
    slots = np.zeros((len(OPS), abi.MAX_OPERANDS), bool)
    needed = slots.copy()
    for index, op in enumerate(OPS):
        slots[index, : len(op.accesses)] = True
        needed[index, : len(op.accesses)] = [not access.optional for access in op.accesses]
    refuse((used & ~slots[tasks["opcode"]]).any(axis=1), "operand", "has more operands than its opcode")
    refuse((~used & needed[tasks["opcode"]]).any(axis=1), "operand", "lacks an operand")
    refuse((used & (tasks["operands"] >= len(programs.views))).any(axis=1), "operand",
           "has an operand that is not in the operand table")
    refuse((tasks["tile"] < 0).any(axis=1) | (tasks["tile"][:, 1] < 1) | (tasks["tile"][:, 3] < 1), "tile",
           "has an empty or negative tile")
    model = programs.model
    sequence = np.isin(tasks["opcode"], [i for i, op in enumerate(OPS) if op.name in SEQUENCE_OPS])
    token = np.isin(tasks["opcode"], [i for i, op in enumerate(OPS) if op.name in TOKEN_OPS])
    row0, rows, col0, cols = tasks["tile"].T
    other_sequence = (row0 % model.context != 0) | (rows != model.context)
    refuse(sequence & other_sequence, "tile", "does not own one whole sequence")
    refuse(token & ((row0 != 0) | (rows != 1)), "tile", "does not own the one row of a token")
    other_head = (col0 % model.head_dim != 0) | (cols != model.head_dim)
    refuse((sequence | token) & other_head, "tile", "does not own one whole head")


def _rectangles(
    programs: ProgramSet, program: TaskProgram, members: np.ndarray, slot: int, access: Access
) -> list[Accesses]:
    """Rectangles of one operand slot of the tasks `members`, which all have the same opcode."""
    members = members[program.tasks["operands"][members, slot] != abi.NONE_U16]
    tiles = program.tasks["tile"][members].astype(np.int64)
    views = program.tasks["operands"][members, slot].astype(np.int64)
    shapes = np.array([programs.buffers[view.buffer].shape for view in programs.views], np.int64)[views]
    if not len(members):
        return []
    row0, rows, col0, cols = tiles.T
    zero, all_rows, all_cols = np.zeros_like(row0), shapes[:, 0], shapes[:, 1]
    tile_rows, tile_columns = (row0, row0 + rows), (col0, col0 + cols)
    every_row, every_column = (zero, all_rows), (zero, all_cols)
    aligned = np.ones(len(members), bool)
    match access.region:
        case "tile":
            spans = [(tile_rows, tile_columns)]
        case "rows":
            spans = [(tile_rows, every_column)]
        case "cols":
            spans = [(tile_columns, every_column)]
        case "all":
            spans = [(every_row, every_column)]
        case "columns":
            spans = [(every_row, tile_columns)]
        case "transposed":
            spans = [(every_row, tile_rows)]
        case "heads":
            third = all_cols // 3
            aligned = (all_cols % 3 == 0) & (col0 + cols <= third)
            spans = [(tile_rows, (col0 + part * third, col0 + cols + part * third)) for part in range(3)]
        case "row_head":
            aligned = col0 % cols == 0
            spans = [(tile_rows, (col0 // cols, col0 // cols + 1))]
        case "part":
            aligned = row0 % rows == 0
            spans = [((row0 // rows, row0 // rows + 1), every_column)]
        case other:
            raise ProgramError("region", f"operand {access.name} has the unknown region {other!r}")
    parts = []
    for (first_row, end_row), (first_column, end_column) in spans:
        row_span, column_span = np.stack([first_row, end_row], 1), np.stack([first_column, end_column], 1)
        outside = ~aligned | (end_row > all_rows) | (end_column > all_cols)
        if outside.any():
            at = int(np.argmax(outside))
            label, buffer = task_label(program, int(members[at])), programs.views[views[at]].buffer
            where = describe_region(buffer, row_span[at], column_span[at])
            raise ProgramError("tile", f"{program.name}: {label} reaches outside its operand {access.name}: {where}, "
                               f"of {shapes[at, 0]} x {shapes[at, 1]} elements", (label,))
        mode = np.ones(len(members), bool)
        parts.append(Accesses(members, views, mode & ("w" in access.mode), mode & ("r" in access.mode), row_span,
                              column_span))
    return parts


def _check_shapes(programs: ProgramSet, program: TaskProgram, op: str, members: np.ndarray) -> None:
    names = [access.name for access in OPS[int(program.tasks["opcode"][members[0]])].accesses]
    combinations, first = np.unique(program.tasks["operands"][members], axis=0, return_index=True)
    for operands, member in zip(combinations, members[first], strict=True):
        views = {name: programs.views[i] for name, i in zip(names, operands, strict=False) if i != abi.NONE_U16}
        for rule in SHAPES.get(op, "").split():
            left, right = (_extent(programs, views, term) for term in rule.split("="))
            if left and right and left != right:
                label = task_label(program, int(member))
                raise ProgramError("shape", f"{program.name}: the operands of {label} do not fit together: {rule} does "
                                   f"not hold, with {left} and {right}", (label,))


def _check_unused_axes(programs: ProgramSet, program: TaskProgram, op: Op, members: np.ndarray) -> None:
    """An axis of the tile on which no region depends is whole: the body works on all of it, whatever the tile says."""
    shapes = np.ones((len(members), 2), np.int64)
    if op.output is not None:
        views = program.tasks["operands"][members, op.output]
        shapes = np.array([programs.buffers[view.buffer].shape for view in programs.views], np.int64)[views]
    regions = {access.region for access in op.accesses}
    tiles = program.tasks["tile"][members].astype(np.int64)
    for axis, (name, used) in enumerate((("rows", regions & ROW_REGIONS), ("columns", regions & COLUMN_REGIONS))):
        start, length = tiles[:, 2 * axis], tiles[:, 2 * axis + 1]
        whole = (start == 0) | (op.name == GAME_OP and name == "rows")
        bad = ~whole | (length != shapes[:, axis])
        if not used and bad.any():
            at = int(np.argmax(bad))
            label = task_label(program, int(members[at]))
            given = f"{start[at]}-{start[at] + length[at] - 1}"
            raise ProgramError("tile", f"{program.name}: {label} has {name} {given} in its tile, but {op.name} works "
                               f"on all {name}, 0-{shapes[at, axis] - 1}", (label,))


def _extent(programs: ProgramSet, views: dict[str, View], term: str) -> tuple[int, ...] | None:
    name, _, axis = term.partition(".")
    if name not in views:
        return None
    shape = programs.buffers[views[name].buffer].shape
    return {"rows": shape[:1], "cols": shape[1:], "": shape}[axis]
