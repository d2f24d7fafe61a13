"""The widget every pane is: a grid painted by a function, repainted and sent row by row where it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.strips import encoded_strips, plain_strips, row_segments, supported


class CellPane(Widget):
    """Draws with `paint(grid)`. No border, padding or scroll bars of Textual's: the grid is the whole widget."""

    DEFAULT_CSS = "CellPane { width: auto; height: auto; }"

    def __init__(self, name: str, paint: Callable[[Grid], None], depth: Depth, colours: Callable[[], tuple[int, int]]):
        super().__init__(id=name)
        self._paint_grid = paint
        self.depth = depth
        self._colours = colours
        self._grid: Grid | None = None
        self._strips: list[Strip] = []

    @property
    def grid(self) -> Grid | None:
        """What is painted now."""
        return self._grid

    @property
    def strips(self) -> list[Strip]:
        """The painted rows."""
        return self._strips

    def repaint(self, *, everything: bool = False) -> list[int]:
        """Paints again; returns the rows that changed. Showing them is the caller's (`refresh_rows`, or directly)."""
        width, height = self.size
        if not width or not height:
            return []
        text, background = self._colours()
        grid = Grid(width, height, text, background)
        self._paint_grid(grid)
        old = self._grid
        make = encoded_strips if supported() else lambda g, _depth: plain_strips(g)
        if everything or old is None or old.char.shape != grid.char.shape:
            self._grid, self._strips = grid, make(grid, self.depth)
            return list(range(height))
        rows = grid.changed_rows(old)
        if len(rows):
            strips = make(grid.take_rows(rows), self.depth)
            for y, strip in zip(rows.tolist(), strips, strict=True):
                self._strips[y] = strip
            self._grid = grid
        changed: list[int] = rows.tolist()
        return changed

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
        blank = Strip([Segment(" " * self.size.width)], self.size.width)
        strips = [self._strips[y] if y < len(self._strips) else blank for y in range(crop.y, crop.bottom)]
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
