"""A terminal's screen in miniature: rows placed by the cursor, read back into cells by ansi_cells."""

from __future__ import annotations

import re

from ansi_cells import QUARTERS, Cell, quarters, read_cells

from ofa_tui.tui.grid import BOLD, Grid

_PLACED = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[2J|\x1b\[\?25[hl]")


class AnsiScreen:
    """Takes cursor moves, clears and coloured text; anything else fails. Each stretch of text must end reset."""

    def __init__(self, columns: int, rows: int) -> None:
        self.rows = [[Cell(" ")] * columns for _ in range(rows)]

    def feed(self, text: str) -> None:
        at, row, column = 0, 0, 0
        for match in [*_PLACED.finditer(text), None]:
            self._write(row, column, text[at : match.start() if match else None])
            if match is None:
                return
            at = match.end()
            if match[1]:
                row, column = int(match[1]) - 1, int(match[2]) - 1
            elif match[0] == "\x1b[2J":
                self.rows = [[Cell(" ")] * len(cells) for cells in self.rows]

    def _write(self, row: int, column: int, text: str) -> None:
        cells, reset = read_cells(text)
        assert reset and "\x1b" not in "".join(cell.char for cell in cells)
        assert column + len(cells) <= len(self.rows[row]), "past the edge a terminal would wrap"
        for x, cell in enumerate(cells, column):
            shown = self.rows[row]
            # Over one half of a wide character: its other half goes too.
            if x == column and not shown[x].char and x:
                shown[x - 1] = Cell(" ")
            shown[x] = cell
        end = column + len(cells)
        if cells and end < len(self.rows[row]) and not self.rows[row][end].char:
            self.rows[row][end] = Cell(" ")

    def shows(self, grid: Grid) -> str:
        """Where it differs from the grid; empty for the same look, in true colour."""
        for y, cells in enumerate(self.rows):
            for x, cell in enumerate(cells):
                if not _same(cell, grid, y, x):
                    return f"row {y} column {x} is {cell}, should be {chr(int(grid.char[y, x]))!r}"
        return ""


def _same(cell: Cell, grid: Grid, y: int, x: int) -> bool:
    """Block characters may be inverted, and a blank shows no foreground."""
    code = int(grid.char[y, x])
    if not code:
        return cell.char == ""
    fg, bg = (_channels(int(colours[y, x])) for colours in (grid.fg, grid.bg))
    if cell.char in QUARTERS and chr(code) in QUARTERS:
        return quarters(cell) == quarters(Cell(chr(code), fg, bg))
    bold = bool(grid.attr[y, x] & BOLD)
    return (cell.char, cell.fg, cell.bg, cell.bold) == (chr(code), fg, bg, bold)


def _channels(colour: int) -> tuple[int, int, int]:
    return colour >> 16, colour >> 8 & 255, colour & 255
