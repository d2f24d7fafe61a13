"""Which elements a task touches, and buffers cut into cells that every task touches as a whole or not at all.

What a body touches beside its operands (the serving state, the logs, the games) is listed in STATE as buffers of its
own, so that it is followed like any other data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from ofa_tui import abi
from ofa_tui.program.ops import OPS, STATISTICS_TILE, Access
from ofa_tui.program.types import Buffer, View

Rect = tuple[int, int, int, int]  # first row, end row, first column, end column
Tile = tuple[int, int, int, int]  # row0, rows, col0, cols

STATE: dict[str, Access] = {
    "token_begin": Access("serve", "rw", "all"),
    "stream_begin": Access("serve", "rw", "all"),
    "decode_attention": Access("serve", "r", "all"),
    "stream_qkv": Access("serve", "r", "all"),
    "stream_attention": Access("serve", "r", "all"),
    "sample": Access("serve", "rw", "all"),
    "loss": Access("loss log", "rw", "all"),
    "sweep_loss": Access("sweep log", "rw", "all"),
    "doom_tic": Access("games", "rw", "rows"),
}
"""Of an opcode: the state it uses. A log is one cell that everything logged so far went into."""


class Outside(Exception):
    """An access that leaves its buffer."""


@dataclass(frozen=True)
class Touch:
    """What a task does with one operand."""

    access: Access
    view: View
    rects: tuple[Rect, ...]


def state_buffers(games: int) -> dict[str, Buffer]:
    rows = {"serve": 1, "loss log": 1, "sweep log": 1, "games": max(1, games)}
    return {name: Buffer(name, (n, 1), "f4", "state") for name, n in rows.items()}


def touches(opcode: int, tile: Tile, operands: list[int], views: list[View],
            buffers: dict[str, Buffer]) -> tuple[Touch, ...]:
    """Raises Outside."""
    op = OPS[opcode]
    found = []
    for access, index in zip(op.accesses, operands, strict=False):
        if index == abi.NONE_U16:
            if not access.optional:
                raise Outside(f"has no {access.name}")
            continue
        view = views[index]
        found.append(Touch(access, view, _inside(access, view, tile, buffers)))
    if op.name in STATE:
        access = STATE[op.name]
        view = View(access.name)
        found.append(Touch(access, view, _inside(access, view, tile, buffers)))
    return tuple(found)


def _inside(access: Access, view: View, tile: Tile, buffers: dict[str, Buffer]) -> tuple[Rect, ...]:
    rows, columns = buffers[view.buffer].shape
    rects = rectangles(access.region, tile, rows, columns)
    for r0, r1, c0, c1 in rects:
        if not (0 <= r0 < r1 <= rows and 0 <= c0 < c1 <= columns):
            verb = "writes" if "w" in access.mode else "reads"
            raise Outside(f"{verb} rows {r0}-{r1 - 1} columns {c0}-{c1 - 1} of {view.buffer} [{rows}, {columns}]")
    return rects


def rectangles(region: str, tile: Tile, rows: int, columns: int) -> tuple[Rect, ...]:
    """The parts of a [rows, columns] operand that a region (see ops.py) names."""
    r, rs, c, cs = tile
    match region:
        case "tile":
            return ((r, r + rs, c, c + cs),)
        case "rows":
            return ((r, r + rs, 0, columns),)
        case "cols":
            return ((c, c + cs, 0, columns),)
        case "all":
            return ((0, rows, 0, columns),)
        case "columns":
            return ((0, rows, c, c + cs),)
        case "transposed":
            return ((0, rows, r, r + rs),)
        case "heads":
            return tuple((r, r + rs, part + c, part + c + cs) for part in (0, columns // 3, 2 * (columns // 3)))
        case "row_head":
            head = c // max(cs, 1)
            return ((r, r + rs, head, head + 1),)
        case "part":
            part = r // max(rs, 1)
            return ((part, part + 1, 0, columns),)
        case "statistics":
            pair = 2 * (c // STATISTICS_TILE)
            return ((r, r + rs, pair, pair + 2),)
    half, halves, first, size = tile
    head, run = first // max(size, 1), size // (2 * max(halves, 1))
    starts = [first + half * run + partner * (size // 2) for partner in (0, 1)]
    match region:
        case "unit_columns":
            return tuple((0, rows, start, start + run) for start in starts)
        case "unit_rows":
            parts = (0, rows // 3, 2 * (rows // 3))
            return tuple((part + start, part + start + run, 0, columns) for part in parts for start in starts)
        case "unit":
            return ((head * halves + half, head * halves + half + 1, 0, columns),)
        case "head_units":
            return ((head * halves, (head + 1) * halves, 0, columns),)
    raise ValueError(f"no region is called {region!r}")


class Cut:
    """Every buffer as a grid of cells, divided at the edges of all rectangles that some task touches."""

    def __init__(self, buffers: dict[str, Buffer], touched: Iterable[Touch]) -> None:
        edges = {name: ({0, buffer.shape[0]}, {0, buffer.shape[1]}) for name, buffer in buffers.items()}
        for touch in touched:
            rows, columns = edges[touch.view.buffer]
            for r0, r1, c0, c1 in touch.rects:
                rows.update((r0, r1))
                columns.update((c0, c1))
        self._rows = {name: _places(rows) for name, (rows, _) in edges.items()}
        self._columns = {name: _places(columns) for name, (_, columns) in edges.items()}

    def fits(self, touch: Touch) -> bool:
        """Whether the touch is made of whole cells."""
        rows, columns = self._rows[touch.view.buffer], self._columns[touch.view.buffer]
        return all(r0 in rows and r1 in rows and c0 in columns and c1 in columns for r0, r1, c0, c1 in touch.rects)

    def size(self, name: str) -> int:
        """Cells of one copy."""
        return (len(self._rows[name]) - 1) * (len(self._columns[name]) - 1)

    def cells(self, touch: Touch) -> list[int]:
        """Their numbers in the buffer, in the order of the rectangles, row by row."""
        rows, columns = self._rows[touch.view.buffer], self._columns[touch.view.buffer]
        pitch = len(columns) - 1
        return [row * pitch + column for r0, r1, c0, c1 in touch.rects for row in range(rows[r0], rows[r1])
                for column in range(columns[c0], columns[c1])]

    def rect(self, name: str, cell: int) -> Rect:
        rows, columns = sorted(self._rows[name]), sorted(self._columns[name])
        row, column = divmod(cell, len(columns) - 1)
        return rows[row], rows[row + 1], columns[column], columns[column + 1]

    def names(self, name: str) -> list[int]:
        """A number for each cell, the same in every copy and every cut that has this cell."""
        buffer = crc32(name.encode())
        return [hash((buffer, r0, r1, c0, c1)) for r0, r1 in pairwise(sorted(self._rows[name]))
                for c0, c1 in pairwise(sorted(self._columns[name]))]


def _places(edges: set[int]) -> dict[int, int]:
    return {edge: place for place, edge in enumerate(sorted(edges))}
