"""The widget every pane is: a grid painted by a function, repainted and sent row by row where it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ofa_tui.tui.colour import Depth
from ofa_tui.tui.encode import as_shown, encode_cells
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.picture import settle
from ofa_tui.tui.strips import encoded_strips, row_segments, supported


class CellPane(Widget):
    """Draws with `paint(grid)`. No border, padding or scroll bars of Textual's: the grid is the whole widget."""

    DEFAULT_CSS = "CellPane { width: auto; height: auto; }"

    def __init__(self, name: str, paint: Callable[[Grid], None], depth: Depth, colours: Callable[[], tuple[int, int]]):
        super().__init__(id=name)
        self._paint_grid = paint
        self.depth = depth
        self._colours = colours
        self._grid: Grid | None = None
        self._changed = np.zeros((0, 0), bool)
        self._strips: list[Strip | None] = []
        self.tolerance: Callable[[], float] = lambda: 0.0
        """How far the colours of block characters may stay behind what is painted, in steps of a channel of 255."""

    @property
    def grid(self) -> Grid | None:
        """What is painted now."""
        return self._grid

    def repaint(self, *, everything: bool = False) -> list[int]:
        """Paints again; returns the rows that changed. Showing them is the caller's (`refresh_rows`, or `changes`)."""
        width, height = self.size
        if not width or not height:
            return []
        text, background = self._colours()
        grid = Grid(width, height, text, background)
        self._paint_grid(grid)
        as_shown(grid, self.depth)
        old = self._grid
        if everything or old is None or old.char.shape != grid.char.shape:
            self._changed = np.ones(grid.char.shape, bool)
            self._strips = [None] * height
        else:
            if tolerance := self.tolerance():
                settle(grid, old, tolerance)
            self._changed = grid.changed_cells(old)
        self._grid = grid
        changed: list[int] = np.flatnonzero(self._changed.any(axis=1)).tolist()
        for y in changed:
            self._strips[y] = None
        return changed

    def changes(self, x: int, y: int) -> bytes:
        """What shows the cells that the last repaint changed, the pane's top left corner being at (x, y)."""
        assert self._grid is not None
        return encode_cells(self._grid, self._changed, self.depth, x, y)

    @property
    def strips(self) -> list[Strip]:
        """The painted rows."""
        return self._encoded(0, len(self._strips))

    def _encoded(self, first: int, end: int) -> list[Strip]:
        """Those rows, encoded where nobody asked for them before."""
        missing = [y for y in range(first, end) if self._strips[y] is None]
        if missing and self._grid is not None:
            taken = self._grid.take_rows(np.array(missing))
            for y, strip in zip(missing, encoded_strips(taken, self.depth), strict=True):
                self._strips[y] = strip
        return [strip for strip in self._strips[first:end] if strip is not None]

    def refresh_rows(self, rows: list[int]) -> None:
        """Shows these rows through Textual's compositor."""
        if rows:
            self.refresh(*_regions(rows, self.size.width))

    def on_resize(self) -> None:
        self.refresh_rows(self.repaint())

    def render_line(self, y: int) -> Strip:
        """The slow path: one row as ordinary segments."""
        if self._grid is None or y >= self._grid.height:
            return Strip.blank(self.size.width)
        return Strip(row_segments(self._grid, y), self._grid.width)

    def render_lines(self, crop: Region) -> list[Strip]:
        if not supported():
            return super().render_lines(crop)
        if self._grid is None or (self._grid.width, self._grid.height) != tuple(self.size):
            self.repaint()
        strips = self._encoded(crop.y, min(crop.bottom, len(self._strips)))
        strips += [Strip([Segment(" " * self.size.width)], self.size.width)] * (crop.height - len(strips))
        if crop.x or crop.width != self.size.width:
            strips = [strip.crop(crop.x, crop.right) for strip in strips]
        return strips


def _regions(rows: list[int], width: int) -> Iterable[Region]:
    """Runs of neighbouring rows as regions."""
    start = previous = rows[0]
    for y in [*rows[1:], -2]:
        if y != previous + 1:
            yield Region(0, start, width, previous - start + 1)
            start = y
        previous = y
