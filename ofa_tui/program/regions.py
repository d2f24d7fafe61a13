"""The regions of `ops.py`: which rectangles of an operand a task touches, worked out from its tile.

The arithmetic is that of one task in integers, or of many at once in arrays: a number here is an int, or an i8 array
with an element for each task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

STATISTICS_TILE = 256
"""Columns of logits that one pair of statistics stands for."""

Number = Any
Tile = tuple[Number, Number, Number, Number]
"""row0, rows, col0, cols; of a unit: half, halves, first column of the head, head size."""
Shape = tuple[Number, Number]
Span = tuple[Number, Number]
"""First and end."""
Rectangle = tuple[Number, Number, Number, Number]
"""First row, end row, first column, end column."""
Spans = Callable[[Tile, Number], list[Span]]
"""Of a tile and the operand's extent: what the region takes of one axis of the operand."""


def _all(tile: Tile, extent: Number) -> list[Span]:
    return [(0 * extent, extent)]


def _tile_rows(tile: Tile, extent: Number) -> list[Span]:
    row0, rows, _, _ = tile
    return [(row0, row0 + rows)]


def _tile_columns(tile: Tile, extent: Number) -> list[Span]:
    _, _, col0, cols = tile
    return [(col0, col0 + cols)]


def _head(tile: Tile, extent: Number) -> list[Span]:
    _, _, col0, cols = tile
    return [(col0 // cols, col0 // cols + 1)]


def _row_block(tile: Tile, extent: Number) -> list[Span]:
    row0, rows, _, _ = tile
    return [(row0 // rows, row0 // rows + 1)]


def _pair(tile: Tile, extent: Number) -> list[Span]:
    _, _, col0, _ = tile
    first = 2 * (col0 // STATISTICS_TILE)
    return [(first, first + 2)]


def _unit_runs(tile: Tile, extent: Number) -> list[Span]:
    half, halves, first, size = tile
    if np.all(halves == 1):
        return [(first, first + size)]
    run = size // (2 * halves)
    return [(start, start + run) for start in (first + half * run, first + size // 2 + half * run)]


def _unit(tile: Tile, extent: Number) -> list[Span]:
    half, halves, first, size = tile
    unit = first // size * halves + half
    return [(unit, unit + 1)]


def _head_units(tile: Tile, extent: Number) -> list[Span]:
    _, halves, first, size = tile
    head = first // size
    return [(head * halves, (head + 1) * halves)]


def _of_each_third(spans: Spans) -> Spans:
    """Of q, k and v, which lie one after the other."""

    def shifted(tile: Tile, extent: Number) -> list[Span]:
        third = extent // 3
        return [(part * third + first, part * third + end) for part in range(3) for first, end in spans(tile, extent)]

    return shifted


def _always(tile: Tile, shape: Shape) -> Number:
    return True


def _in_third(axis: int) -> Callable[[Tile, Shape], Number]:
    def fits(tile: Tile, shape: Shape) -> Number:
        _, _, col0, cols = tile
        return (shape[axis] % 3 == 0) & (col0 + cols <= shape[axis] // 3)

    return fits


def _whole_head(tile: Tile, shape: Shape) -> Number:
    _, _, col0, cols = tile
    return col0 % cols == 0


def _whole_block(tile: Tile, shape: Shape) -> Number:
    row0, rows, _, _ = tile
    return row0 % rows == 0


def _whole_pair(tile: Tile, shape: Shape) -> Number:
    _, _, col0, cols = tile
    return (col0 % STATISTICS_TILE == 0) & (cols <= STATISTICS_TILE)


@dataclass(frozen=True)
class Region:
    rows: Spans
    columns: Spans
    tile_axes: tuple[str, ...] = ()
    """Axes of the tile on which the region depends."""
    divides: bool = False
    """Its extent is that of the tile, so that an operand written there can be divided into tiles."""
    unit: bool = False
    """The tile is that of a unit."""
    fits: Callable[[Tile, Shape], Number] = _always
    """Whether the region is a whole one: (tile, shape of the operand) -> bool, or one for each task."""

    def rectangles(self, tile: Tile, shape: Shape) -> list[Rectangle]:
        """The parts of an operand of `shape` that make up the region of a task with `tile`."""
        return [(*rows, *columns) for rows in self.rows(tile, shape[0]) for columns in self.columns(tile, shape[1])]


_ROWS, _COLUMNS, _BOTH = ("rows",), ("columns",), ("rows", "columns")

REGIONS: dict[str, Region] = {
    "tile": Region(_tile_rows, _tile_columns, _BOTH, divides=True),
    "rows": Region(_tile_rows, _all, _ROWS, divides=True),
    "cols": Region(_tile_columns, _all, _COLUMNS),
    "all": Region(_all, _all, divides=True),
    "columns": Region(_all, _tile_columns, _COLUMNS, divides=True),
    "transposed": Region(_all, _tile_rows, _ROWS),
    "heads": Region(_tile_rows, _of_each_third(_tile_columns), _BOTH, divides=True, fits=_in_third(1)),
    "row_head": Region(_tile_rows, _head, _BOTH, fits=_whole_head),
    "part": Region(_row_block, _all, _ROWS, fits=_whole_block),
    "statistics": Region(_tile_rows, _pair, _BOTH, fits=_whole_pair),
    "unit_columns": Region(_all, _unit_runs, _BOTH, divides=True, unit=True),
    "unit_rows": Region(_of_each_third(_unit_runs), _all, _BOTH, unit=True, fits=_in_third(0)),
    "unit": Region(_unit, _all, _BOTH, unit=True),
    "head_units": Region(_head_units, _all, _BOTH, unit=True),
}
