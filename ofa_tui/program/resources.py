"""What a task needs of its multiprocessor: shared memory, and operands that the copy engine can move.

Shared memory in bytes, on targets that limit it; matrices count with two bytes an element, whatever they are stored in:

- products: 4 stages of 64 columns of both factors, staging for the outputs of two warpgroups, barriers
  (docs/h200.md: 231,424 bytes for 128 x 256)
- attention: keys and values of the whole sequence, and tiles of 128 rows of the queries and, backward, of the outputs
  and their gradients
- streamed decoding: a ring of 4 slots of 48 KiB (docs/h200.md), and what the task has read of its message
  in f4
- tasks without copied operands reduce rows in registers

The copy engine takes rows at multiples of 16 bytes and, of a matrix in stream order, whole blocks. A box has at most
256 x 256 elements: a product's tile and a head's columns fit one. How a body divides a region with more rows, like the
keys of a long sequence, among boxes is its own affair. Edges of a product's boxes may be cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import Accesses, ProgramError, describe_access, refuse_any, task_label
from ofa_tui.program.operands import STORAGE, contracts
from ofa_tui.program.ops import OPS
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import ProgramSet, TaskProgram

BLOCK = 16
"""Rows and columns of a block of the stream order (abi.LAYOUTS)."""
COPY_BYTES = 16
"""Where a row begins, and what a bulk copy moves, is a multiple of this."""
BARRIERS = 2048
"""Barriers, task slots, partial sums of a block."""
MOST_BOX = 256
MATRIX_BYTES = 2
STAGES, STAGE_DEPTH = 4, 64
STAGING = 2 * 2 * 8192
QUERY_ROWS = 128
RING = 4 * 48 * 1024
PRODUCT_TILE = (128, 256)
STREAM_ROWS = 32
"""Weight rows of a streamed task: two operands of mma.m16n8k16."""

PRODUCTS = ("matmul", "matmul_residual", "matmul_gelu", "matmul_statistics", "matmul_dx", "matmul_dx_gelu",
            "matmul_dw", "matmul_dw_adamw")


def _padded(length: int) -> int:
    return -(-length // 64) * 64


def _product(rows: int, columns: int, depth: int) -> int:
    return STAGES * (_padded(rows) + _padded(columns)) * STAGE_DEPTH * MATRIX_BYTES + STAGING + BARRIERS


def _attention(tiles: int) -> Callable[[int, int, int], int]:
    """`tiles`: matrices of which 128 rows are held beside the keys and values."""

    def size(rows: int, columns: int, depth: int) -> int:
        return (2 * _padded(rows) + tiles * QUERY_ROWS) * columns * MATRIX_BYTES + BARRIERS

    return size


def _stream(rows: int, columns: int, depth: int) -> int:
    return RING + 4 * depth + BARRIERS


def _stream_attention(rows: int, columns: int, depth: int) -> int:
    """Scores are read for a row of the pass at a time."""
    return RING + 4 * rows * (depth // abi.PASS_ROWS) + BARRIERS


SHARED_BYTES: dict[str, Callable[[int, int, int], int]] = {
    **dict.fromkeys(PRODUCTS, _product),
    "attention": _attention(1),
    "attention_backward": _attention(3),
    "stream_qkv": _stream,
    "stream_attention": _stream_attention,
    "stream_matmul_residual": _stream,
    "stream_norm_matmul_gelu": _stream,
    "stream_norm_matmul": _stream,
}
"""Bytes of a task, of the rows and columns of its tile and the columns of its first operand. Every opcode with copied
operands has a row; who has none needs BARRIERS."""


def check_resources(programs: ProgramSet, accesses: dict[str, Accesses]) -> dict[str, int]:
    """Bytes of shared memory that each program's largest task needs, 0 where it is not limited. Raises ProgramError."""
    target = TARGETS[programs.target]
    largest = dict.fromkeys(accesses, 0)
    if not target.shared_bytes:
        return largest
    for name, program in programs.programs.items():
        _check_tile_limits(program)
        for task, needed in _shared_bytes(programs, program):
            if needed > target.shared_bytes:
                label, tile = task_label(program, task), program.tasks["tile"][task]
                raise ProgramError(
                    "resources", f"{name}: {label} needs {needed:,} bytes of shared memory for {tile[1]} x {tile[3]} "
                    f"elements; a task of {target.name} may use {target.shared_bytes:,}", (label,))
            largest[name] = max(largest[name], needed)
        _check_copies(programs, program, accesses[name])
    return largest


def _check_tile_limits(program: TaskProgram) -> None:
    names = np.array([op.name for op in OPS])[program.tasks["opcode"]]
    rows, columns = program.tasks["tile"][:, 1], program.tasks["tile"][:, 3]
    product = np.isin(names, PRODUCTS)
    most_rows, most_columns = PRODUCT_TILE
    refuse_any(program, product & ((rows > most_rows) | (columns > most_columns)), "resources",
               f"has a tile of more than {most_rows} x {most_columns} elements, which no block can sum in registers")
    attention = np.isin(names, ("attention", "attention_backward"))
    refuse_any(program, attention & (columns > MOST_BOX), "resources",
               f"has a head of more than {MOST_BOX} columns, the most that one copy can move")
    streamed = np.array(["cols" in {access.region for access in op.accesses} and op.name.startswith("stream_")
                         for op in OPS])[program.tasks["opcode"]]
    refuse_any(program, streamed & (columns > STREAM_ROWS), "resources",
               f"has more than {STREAM_ROWS} rows of a streamed weight, which no block can sum at once")


def _shared_bytes(programs: ProgramSet, program: TaskProgram) -> Iterator[tuple[int, int]]:
    """The first task of each opcode, tile size and first operand, and what it needs."""
    tasks = program.tasks
    key = np.column_stack([tasks["opcode"], tasks["tile"][:, 1], tasks["tile"][:, 3], tasks["operands"][:, 0]])
    for task in np.unique(key, axis=0, return_index=True)[1].tolist():
        opcode, rows, columns, operand = key[task].tolist()
        op = OPS[opcode]
        size = SHARED_BYTES.get(op.name)
        if size is None and any(access.copied for access in op.accesses):
            label = task_label(program, task)
            raise ProgramError(
                "resources", f"{program.name}: {label} is a {op.name}, whose operands go through the copy engine; "
                "how much shared memory it needs is not said in SHARED_BYTES of program/resources.py", (label,))
        depth = programs.buffers[programs.views[operand].buffer].shape[1] if size else 0
        yield task, size(rows, columns, depth) if size else BARRIERS


def _check_copies(programs: ProgramSet, program: TaskProgram, accesses: Accesses) -> None:
    """Alignment of what the copy engine moves, and of what lies in stream order."""
    opcodes = program.tasks["opcode"][accesses.task]
    product = np.isin(np.array([op.name for op in OPS])[opcodes], PRODUCTS)
    element = np.ones(len(accesses.task), np.int64)
    for opcode, slot in np.unique(np.column_stack([opcodes, accesses.slot]), axis=0).tolist():
        dtype = contracts(OPS[opcode].name)[slot].cls.dtype
        element[(opcodes == opcode) & (accesses.slot == slot)] = MATRIX_BYTES if dtype == STORAGE else 4
    buffers = [programs.buffers[view.buffer] for view in programs.views]
    pitch = np.array([buffer.shape[1] for buffer in buffers], np.int64)[accesses.view]
    stream = np.array([buffer.layout == "stream" for buffer in buffers], bool)[accesses.view]
    by_rows = accesses.copied & ~stream
    _refuse_access(programs, program, accesses, by_rows & (pitch * element % COPY_BYTES != 0),
                   f"in rows that do not begin at multiples of {COPY_BYTES} bytes")
    cut = (accesses.columns * element[:, None] % COPY_BYTES != 0).any(axis=1)
    _refuse_access(programs, program, accesses, by_rows & ~product & cut,
                   f"in pieces of rows that are not multiples of {COPY_BYTES} bytes")
    blocks = np.column_stack([accesses.rows, accesses.columns]) % BLOCK
    _refuse_access(programs, program, accesses, stream & (blocks != 0).any(axis=1),
                   f"in pieces of blocks of {BLOCK} x {BLOCK} elements")


def _refuse_access(
    programs: ProgramSet, program: TaskProgram, accesses: Accesses, bad: np.ndarray, how: str
) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        label = task_label(program, int(accesses.task[at]))
        raise ProgramError("resources", f"{program.name}: {label} would move "
                           f"{describe_access(programs, program, accesses, at)} {how}", (label,))
