"""How much a task computes and touches, from its descriptor and its row in `ops.OPS`."""

from __future__ import annotations

from dataclasses import dataclass

from ofa_tui import abi
from ofa_tui.program.operands import contracts
from ofa_tui.program.ops import OPS, Op
from ofa_tui.program.regions import REGIONS, Tile
from ofa_tui.program.types import ProgramSet, TaskProgram

ATTENTION_PRODUCTS = {"attention": 2.0, "attention_backward": 5.0}
"""Products of context x head size x context elements, of which the causal half counts."""
STREAM_UNITS = "stream_qkv"
DECODING = ("decode", "stream", "sample")
"""Files of operations whose work is that of a pass of one row."""


@dataclass(frozen=True)
class Work:
    flops: float
    """Multiply-adds of matrix products, twice; attention counts its causal half."""
    product: tuple[int, int, int] | None
    """Rows, columns and depth of the task's one matrix product."""
    elements: dict[str, int]
    """Elements touched of each operand, by its name in OPS."""


def program_work(programs: ProgramSet, program: TaskProgram) -> list[Work]:
    """One Work a task, in queue order; tasks alike share it."""
    known: dict[tuple[object, ...], Work] = {}
    works = []
    tasks = program.tasks
    columns = (tasks["opcode"].tolist(), tasks["operands"].tolist(), tasks["tile"].tolist())
    for opcode, operands, (row0, rows, col0, cols) in zip(*columns, strict=True):
        key = (opcode, *operands, rows, cols, row0 if OPS[opcode].name.startswith("stream") else 0)
        if key not in known:
            known[key] = _work(programs, OPS[opcode], operands, (row0, rows, col0, cols))
        works.append(known[key])
    return works


def _work(programs: ProgramSet, op: Op, operands: list[int], tile: Tile) -> Work:
    if op.file in DECODING and not any(REGIONS[access.region].unit for access in op.accesses):
        tile = (tile[0], 1, *tile[2:])
    elements, shapes = {}, {}
    for access, contract, operand in zip(op.accesses, contracts(op.name), operands, strict=False):
        if operand == abi.NONE_U16:
            continue
        rows, columns = (extent // abi.PASS_ROWS if "rows" in term.split("*") else extent for term, extent in zip(
            contract.extents, programs.buffers[programs.views[operand].buffer].shape, strict=True))
        shapes[access.name] = rows, columns
        rectangles = REGIONS[access.region].rectangles(tile, shapes[access.name])
        elements[access.name] = sum((end - first) * (right - left) for first, end, left, right in rectangles)
    product = _product(op, shapes, tile)
    if op.name in ATTENTION_PRODUCTS:
        _, rows, _, cols = tile
        return Work(ATTENTION_PRODUCTS[op.name] * rows * rows * cols, None, elements)
    return Work(2.0 * product[0] * product[1] * product[2] if product else 0.0, product, elements)


def _product(op: Op, shapes: dict[str, tuple[int, int]], tile: Tile) -> tuple[int, int, int] | None:
    """The first operand's rows times a weight, or transposed times the second; other tasks have no matrix product."""
    if not op.accesses or not ("matmul" in op.name or op.name == STREAM_UNITS):
        return None
    first = op.accesses[0]
    depth = shapes[first.name][0 if first.region == "transposed" else 1]
    _, rows, _, cols = tile
    return (1, 3 * cols // rows, depth) if op.name == STREAM_UNITS else (rows, cols, depth)
