"""A grid of cells as an SVG picture: blocks, lines and braille as exact outlines, other characters as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from html import escape
from itertools import pairwise

import numpy as np

from ofa_tui.tui.colour import to_hex
from ofa_tui.tui.grid import BOLD, SPACE, Grid
from ofa_tui.tui.screenshot import BASELINE, CELL_HEIGHT, CELL_WIDTH, FONT_SIZE, shape_mask

FONTS = "'DejaVu Sans Mono', Menlo, Consolas, monospace"


def encode_svg(grid: Grid) -> bytes:
    """The grid as an SVG file, CELL_WIDTH x CELL_HEIGHT units a cell, that refers to nothing outside itself."""
    width, height = grid.width * CELL_WIDTH, grid.height * CELL_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="{FONTS}" font-size="{FONT_SIZE}">',
        '<g id="back" shape-rendering="crispEdges">',
        *_paths(_back_rectangles(grid)),
        '</g><g id="shapes" shape-rendering="crispEdges">',
        *_paths(_shape_rectangles(grid)),
        '</g><g id="text" xml:space="preserve">',
        *_texts(grid),
        "</g></svg>\n",
    ]
    return "\n".join(parts).encode()


Rectangle = tuple[int, int, int, int]
"""x, y, width, height."""


def _paths(rectangles: Iterator[tuple[int, Rectangle]]) -> Iterator[str]:
    """One path for each colour."""
    outlines: dict[int, list[str]] = {}
    for colour, (x, y, width, height) in rectangles:
        outlines.setdefault(colour, []).append(f"M{x} {y}h{width}v{height}h-{width}z")
    for colour, outline in outlines.items():
        yield f'<path fill="{to_hex(colour)}" d="{"".join(outline)}"/>'


def _back_rectangles(grid: Grid) -> Iterator[tuple[int, Rectangle]]:
    for y, row in enumerate(grid.bg):
        for start, end in _runs(row):
            yield int(row[start]), (start * CELL_WIDTH, y * CELL_HEIGHT, (end - start) * CELL_WIDTH, CELL_HEIGHT)


def _shape_rectangles(grid: Grid) -> Iterator[tuple[int, Rectangle]]:
    for y, x in np.argwhere(grid.char > SPACE).tolist():
        for left, top, width, height in _shape(int(grid.char[y, x])) or ():
            yield int(grid.fg[y, x]), (x * CELL_WIDTH + left, y * CELL_HEIGHT + top, width, height)


@lru_cache(maxsize=1024)
def _shape(code: int) -> tuple[Rectangle, ...] | None:
    """The lit part of a cell; None for a character of the font."""
    mask = shape_mask(code)
    if mask is None:
        return None
    lit = mask >= 128
    found = []
    for top, bottom in _runs(lit):
        found += [(start, top, end - start, bottom - top) for start, end in _runs(lit[top]) if lit[top, start]]
    return tuple(found)


def _runs(values: np.ndarray) -> Iterator[tuple[int, int]]:
    """(first, one past the last) of each stretch of equal values, or of equal rows."""
    changes = (values[1:] != values[:-1]).reshape(len(values) - 1, -1).any(axis=1)
    return pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), len(values)])


def _texts(grid: Grid) -> Iterator[str]:
    """Words of one colour and weight, each exactly as wide as its cells, whatever font there is."""
    for y in range(grid.height):
        x = 0
        while x < grid.width:
            end = _word_end(grid, y, x)
            if end > x:
                word = "".join(chr(code) for code in grid.char[y, x:end].tolist() if code)
                bold = ' font-weight="bold"' if grid.attr[y, x] & BOLD else ""
                yield (
                    f'<text x="{x * CELL_WIDTH}" y="{y * CELL_HEIGHT + BASELINE}" fill="{to_hex(int(grid.fg[y, x]))}"'
                    f'{bold} textLength="{(end - x) * CELL_WIDTH}" lengthAdjust="spacingAndGlyphs">{escape(word)}'
                    "</text>"
                )
            x = max(x + 1, end)


def _word_end(grid: Grid, y: int, x: int) -> int:
    """One past the last cell of the word that begins at x; x itself where none does."""
    end = x
    while end < grid.width:
        code = int(grid.char[y, end])
        behind = code == 0 and end > x
        same = behind or (grid.fg[y, end] == grid.fg[y, x] and grid.attr[y, end] == grid.attr[y, x])
        if not same or code == SPACE or (code == 0 and not behind) or (code and _shape(code) is not None):
            break
        end += 1
    return end
