"""Tensor maps: how the copy engine finds the tiles of a product's operands (cuda/tile/product.cuh).

A view has MAP_USES maps for each of its copies, of which those are filled in that some product uses.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass

import numpy as np

from ofa_tui.engine.cuda_library import DriverLibrary
from ofa_tui.program.distinct import distinct
from ofa_tui.program.ops import OPS
from ofa_tui.program.types import ProgramSet

MAP_BYTES = 128
MAP_A, MAP_B, MAP_A_BY_K, MAP_B_BY_K, MAP_OUT, MAP_LINES = range(6)
MAP_USES = 6
TILE_ROWS, TILE_COLUMNS, TILE_DEPTH, CHUNK_COLUMNS, LINE_COLUMNS = 128, 256, 64, 64, 32
"""Of a product's tile; the same numbers stand in cuda/tile/pipeline.cuh."""
LINE = 64
"""bf16 values in the 128 bytes that the swizzle works on."""

_FORWARD, _BACKWARD = {0: MAP_A, 1: MAP_B}, {0: MAP_A, 1: MAP_B_BY_K}
USES: dict[str, dict[int, int]] = {
    "matmul": _FORWARD | {2: MAP_OUT},
    "matmul_residual": _FORWARD | {2: MAP_LINES, 3: MAP_LINES},
    "matmul_gelu": _FORWARD | {2: MAP_OUT, 3: MAP_OUT},
    "matmul_statistics": _FORWARD | {2: MAP_OUT},
    "matmul_dx": _BACKWARD | {2: MAP_OUT},
    "matmul_dx_gelu": _BACKWARD | {2: MAP_OUT, 3: MAP_OUT},
    "matmul_dw_adamw": {0: MAP_A_BY_K, 1: MAP_B_BY_K, 2: MAP_LINES, 3: MAP_LINES, 4: MAP_LINES, 5: MAP_OUT},
}
"""Of each product, which operand is moved how."""

FLOAT32, BFLOAT16, NO_INTERLEAVE, SWIZZLE_128B, PROMOTE_128B, ZEROS_OUTSIDE = 7, 9, 0, 3, 2, 0
"""Values of the driver's CUtensorMap enumerations."""


@dataclass(frozen=True)
class MapShape:
    """Extents in elements, innermost first; strides in bytes, from the second dimension on."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    dtype: str = "bf16"


def shape_of(use: int, rows: int, cols: int) -> MapShape:
    """How a row-major matrix [rows, cols] is moved: bf16, or f4 where lines of it are changed in the ring.

    By k: the rows are those of k, and a box has a line of 64 columns for each of them, group of columns by group.
    """
    if use == MAP_LINES:
        return MapShape((cols, rows), (4 * cols,), (LINE_COLUMNS, LINE), "f4")
    pitch = 2 * cols
    if use in (MAP_A_BY_K, MAP_B_BY_K):
        groups = (TILE_ROWS if use == MAP_A_BY_K else TILE_COLUMNS) // LINE
        return MapShape((LINE, rows, math.ceil(cols / LINE)), (pitch, 2 * LINE), (LINE, TILE_DEPTH, groups))
    box = {MAP_A: (TILE_DEPTH, TILE_ROWS), MAP_B: (TILE_DEPTH, TILE_COLUMNS), MAP_OUT: (CHUNK_COLUMNS, LINE)}[use]
    return MapShape((cols, rows), (pitch,), box)


def uses_of_views(programs: ProgramSet) -> dict[int, set[int]]:
    """Of each view that products move, which uses they make of it. Empty where factors are not bf16."""
    found: dict[int, set[int]] = {}
    for program in programs.programs.values():
        for opcode in distinct(program.tasks["opcode"]):
            slots = USES.get(OPS[opcode].name, {}) if opcode < len(OPS) else {}
            operands = program.tasks["operands"][program.tasks["opcode"] == opcode]
            if not slots or programs.buffers[programs.views[operands[0, 0]].buffer].dtype != "bf16":
                continue
            for slot, use in slots.items():
                for view in distinct(operands[:, slot]):
                    found.setdefault(int(view), set()).add(use)
    return found


def first_maps(programs: ProgramSet) -> tuple[dict[int, int], int]:
    """Index of the first map of each view that has any, and how many maps there are."""
    places: dict[int, int] = {}
    count = 0
    for view in sorted(uses_of_views(programs)):
        places[view] = count
        count += MAP_USES * programs.buffers[programs.views[view].buffer].copies
    return places, count


def encode(library: DriverLibrary, address: int, shape: MapShape) -> np.ndarray:
    """u1 [MAP_BYTES]: the tensor map of a matrix at a GPU's address. Raises DriverError."""
    rank = len(shape.extents)
    raw = np.zeros(2 * MAP_BYTES, np.uint8)
    shift = -raw.ctypes.data % 64  # the driver wants it aligned
    encoded = raw[shift : shift + MAP_BYTES]
    library.call(
        "cuTensorMapEncodeTiled", ctypes.c_void_p(encoded.ctypes.data),
        ctypes.c_int(FLOAT32 if shape.dtype == "f4" else BFLOAT16), ctypes.c_uint32(rank),
        ctypes.c_void_p(address), (ctypes.c_uint64 * rank)(*shape.extents),
        (ctypes.c_uint64 * (rank - 1))(*shape.strides), (ctypes.c_uint32 * rank)(*shape.box),
        (ctypes.c_uint32 * rank)(*[1] * rank), ctypes.c_int(NO_INTERLEAVE), ctypes.c_int(SWIZZLE_128B),
        ctypes.c_int(PROMOTE_128B), ctypes.c_int(ZEROS_OUTSIDE),
    )
    return encoded


def fill(maps: np.ndarray, operands: np.ndarray, programs: ProgramSet, library: DriverLibrary) -> None:
    """Writes the maps u1 [n, MAP_BYTES] of views whose `operands` have their addresses on the GPU."""
    for view, uses in uses_of_views(programs).items():
        operand = operands[view]
        for use in uses:
            shape = shape_of(use, int(operand["rows"]), int(operand["cols"]))
            for copy in range(int(operand["copies"])):
                address = int(operand["base"]) + copy * int(operand["copy_bytes"])
                maps[int(operand["tensor_map"]) + use * int(operand["copies"]) + copy] = encode(library, address, shape)
