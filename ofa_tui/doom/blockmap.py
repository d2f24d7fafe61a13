"""The grid of 128-unit cells with the lines in each, taken from the BLOCKMAP lump or built anew.

Lump: int16 x, y of the lower left corner, uint16 columns, rows, then for each cell the offset of its list, in words;
a list is 0, then line numbers, then 0xFFFF. The leading 0 stays: the original looks at line 0 in every cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FIXED = 1 << 16
CELL = 128
END = 0xFFFF
MARGIN = 8
MOST_WORDS = 1 << 16
"""Offsets of lists are 16 bits wide: what lies further out cannot be named, so larger lumps have wrong ones."""


@dataclass(frozen=True)
class Blockmap:
    """`x`, `y` fixed; lines of cell c are lines[first[c]:first[c + 1]] (u4 [cells + 1], i4)."""

    x: int
    y: int
    columns: int
    rows: int
    first: np.ndarray
    lines: np.ndarray


def read_blockmap(lump: bytes, vertices: np.ndarray, lines: np.ndarray, most_cells: int) -> Blockmap | None:
    """The lump's grid if it is sound, else one built from the lines; None where that takes more than `most_cells`."""
    given = _parse(lump, len(lines), most_cells)
    return given or build_blockmap(vertices, lines, most_cells)


def _parse(lump: bytes, n_lines: int, most_cells: int) -> Blockmap | None:
    words = np.frombuffer(lump, "<u2", len(lump) // 2).astype(np.int64)
    if not 4 <= len(words) <= MOST_WORDS:
        return None
    x, y = np.frombuffer(lump, "<i2", 2).tolist()
    columns, rows = int(words[2]), int(words[3])
    cells = columns * rows
    if not 0 < cells <= min(len(words) - 4, most_cells):
        return None
    starts = words[4:4 + cells]
    ends = np.flatnonzero(words == END)
    where = np.searchsorted(ends, starts)
    if int(starts.min()) < 4 + cells or (where >= len(ends)).any():
        return None
    counts = ends[where] - starts
    first = np.concatenate(([0], np.cumsum(counts)))
    if int(first[-1]) > 64 * (len(words) + cells):
        return None
    lists = words[np.repeat(starts - first[:-1], counts) + np.arange(first[-1])]
    if (lists >= n_lines).any() or (counts < 1).any() or lists[first[:-1]].any():
        return None
    return Blockmap(x * FIXED, y * FIXED, columns, rows, first.astype("<u4"), lists.astype("<i4"))


def build_blockmap(vertices: np.ndarray, lines: np.ndarray, most_cells: int) -> Blockmap | None:
    """A grid around all lines, each line in every cell that it touches; None where it has more than `most_cells`
    or begins outside of the coordinates a map can have.
    """
    ends = vertices[np.stack((lines["v1"], lines["v2"]), 1)]
    x, y = ends["x"].astype(np.int64) // FIXED, ends["y"].astype(np.int64) // FIXED
    left, bottom = int(x.min()) - MARGIN, int(y.min()) - MARGIN
    columns, rows = (int(x.max()) - left) // CELL + 1, (int(y.max()) - bottom) // CELL + 1
    if columns * rows > most_cells or min(left, bottom) < -1 << 15:
        return None
    cells: list[list[int]] = [[0] for _ in range(columns * rows)]
    for number, ((x1, x2), (y1, y2)) in enumerate(zip((x - left).tolist(), (y - bottom).tolist(), strict=True)):
        column = np.arange(min(x1, x2) // CELL, max(x1, x2) // CELL + 1)
        row = np.arange(min(y1, y2) // CELL, max(y1, y2) // CELL + 1)[:, None]
        corners = [(x2 - x1) * (CELL * (row + up) - y1) - (y2 - y1) * (CELL * (column + right) - x1)
                   for up in (0, 1) for right in (0, 1)]
        touched = (np.minimum.reduce(corners) <= 0) & (np.maximum.reduce(corners) >= 0)
        for cell in (row * columns + column)[touched].tolist():
            cells[cell].append(number)
    first = np.concatenate(([0], np.cumsum([len(cell) for cell in cells])))
    return Blockmap(left * FIXED, bottom * FIXED, columns, rows, first.astype("<u4"),
                    np.array([line for cell in cells for line in cell], "<i4"))
