"""How much a task computes and touches, from its descriptor and its row in `ops.OPS`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ofa_tui import abi
from ofa_tui.program.ops import OPS, STATISTICS_TILE, Op
from ofa_tui.program.types import ProgramSet, TaskProgram

Span = tuple[int, int, int, int]
"""First row, end row, first column, end column."""
Tile = tuple[int, int, int, int]

ATTENTION_PRODUCTS = {"attention": 2.0, "attention_backward": 5.0}
"""Products of context x head size x context elements, of which the causal half counts."""
STREAM_UNITS = "stream_qkv"


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


def region_spans(region: str, tile: Tile, shape: tuple[int, int]) -> list[Span]:
    """The parts of a matrix of `shape` that `region` (see ops.py) of a task with `tile` stands for."""
    row0, rows, col0, cols = tile
    all_rows, all_columns = shape
    match region:
        case "tile":
            return [(row0, row0 + rows, col0, col0 + cols)]
        case "rows":
            return [(row0, row0 + rows, 0, all_columns)]
        case "cols":
            return [(col0, col0 + cols, 0, all_columns)]
        case "columns":
            return [(0, all_rows, col0, col0 + cols)]
        case "transposed":
            return [(0, all_rows, row0, row0 + rows)]
        case "heads":
            third = all_columns // 3
            return [(row0, row0 + rows, part * third + col0, part * third + col0 + cols) for part in range(3)]
        case "row_head":
            return [(row0, row0 + rows, col0 // cols, col0 // cols + 1)]
        case "part":
            return [(row0 // rows, row0 // rows + 1, 0, all_columns)]
        case "statistics":
            pair = 2 * (col0 // STATISTICS_TILE)
            return [(row0, row0 + rows, pair, pair + 2)]
        case "unit_columns":
            return [(0, all_rows, first, end) for first, end in _unit_runs(tile)]
        case "unit_rows":
            third = all_rows // 3
            return [(part * third + first, part * third + end, 0, all_columns)
                    for part in range(3) for first, end in _unit_runs(tile)]
        case "unit":
            unit = col0 // cols * rows + row0
            return [(unit, unit + 1, 0, all_columns)]
        case "head_units":
            return [(col0 // cols * rows, (col0 // cols + 1) * rows, 0, all_columns)]
        case _:
            return [(0, all_rows, 0, all_columns)]


def _unit_runs(tile: Tile) -> Iterator[tuple[int, int]]:
    half, halves, first, size = tile
    length = size // (2 * halves)
    for start in (first + half * length, first + size // 2 + half * length):
        yield start, start + length


def _work(programs: ProgramSet, op: Op, operands: list[int], tile: Tile) -> Work:
    elements, shapes = {}, {}
    for access, operand in zip(op.accesses, operands, strict=False):
        if operand == abi.NONE_U16:
            continue
        shapes[access.name] = programs.buffers[programs.views[operand].buffer].shape
        spans = region_spans(access.region, tile, shapes[access.name])
        elements[access.name] = sum((end - first) * (right - left) for first, end, left, right in spans)
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
