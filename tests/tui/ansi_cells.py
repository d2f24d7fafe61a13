"""A terminal in miniature: reads one row's bytes back into cells, independently of how they were made."""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[([0-9;]*)m|([^\x1b]+|\x1b)")
_MOVES = re.compile(
    r"\x1b\[(?:(?P<sgr>[0-9;]*)m|(?P<row>\d+);(?P<column>\d+)H|(?P<right>\d*)C)|(?P<char>[^\x1b])|(?P<bad>\x1b)", re.S
)


class Cell(NamedTuple):
    """`fg` and `bg` are None by default, an index into the terminal's palette, or an (r, g, b)."""

    char: str
    fg: object = None
    bg: object = None
    bold: bool = False
    reverse: bool = False


class Pen:
    """The rendition that characters are written in."""

    def __init__(self) -> None:
        self.fg: object = None
        self.bg: object = None
        self.bold = self.reverse = False

    def cell(self, char: str) -> Cell:
        return Cell(char, self.fg, self.bg, self.bold, self.reverse)

    @property
    def is_reset(self) -> bool:
        return self.cell("") == Cell("")

    def set(self, parameters: str) -> None:
        codes = [int(code or 0) for code in parameters.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.fg = self.bg = None
                self.bold = self.reverse = False
            elif code in (1, 22):
                self.bold = code == 1
            elif code == 7:
                self.reverse = True
            elif code in (38, 48):
                kind = codes.pop(0)
                assert kind in (2, 5), f"unknown colour form in {parameters!r}"
                self._colour(code == 38, codes.pop(0) if kind == 5 else tuple(codes.pop(0) for _ in range(3)))
            elif 30 <= code <= 47 and code % 10 < 8:
                self._colour(code < 40, code % 10)
            elif 90 <= code <= 107 and code % 10 < 8:
                self._colour(code < 100, code % 10 + 8)
            else:
                raise AssertionError(f"unknown SGR parameter {code} in {parameters!r}")

    def _colour(self, foreground: bool, colour: object) -> None:
        if foreground:
            self.fg = colour
        else:
            self.bg = colour


def read_cells(text: str) -> tuple[list[Cell], bool]:
    """(cells, whether the row ended in the reset state). A wide character is followed by a cell with char ""."""
    pen = Pen()
    cells: list[Cell] = []
    for match in _TOKEN.finditer(text):
        if (run := match.group(2)) is None:
            pen.set(match.group(1))
            continue
        behind = [pen.cell("")]
        wide = cell_len(run) > len(run)
        for char in run:
            cells.append(pen.cell(char))
            if wide:
                cells.extend(behind * (cell_len(char) - 1))
    return cells, pen.is_reset


def write_cells(text: str, screen: list[list[Cell]]) -> bool:
    """Writes on a screen what comes with cursor movements; whether it ended in the reset state.

    A wide character that loses a half leaves a blank, as in xterm.
    """
    pen, x, y = Pen(), -1, -1
    for match in _MOVES.finditer(text):
        assert not match["bad"], f"unknown sequence {text[match.start() : match.start() + 12]!r}"
        if match["row"]:
            x, y = int(match["column"]) - 1, int(match["row"]) - 1
        elif match["right"] is not None:
            x += int(match["right"] or 1)
        elif match["sgr"] is not None:
            pen.set(match["sgr"])
        else:
            row, width = screen[y], cell_len(match["char"])
            if row[x].char == "":
                row[x - 1] = Cell(" ")
            if x + width < len(row) and row[x + width].char == "":
                row[x + width] = Cell(" ")
            row[x : x + width] = [pen.cell(match["char"]), pen.cell("")][:width]
            x += width
    return pen.is_reset


HALVES = {"▀": (True, False), "▄": (False, True), "█": (True, True), " ": (False, False)}
QUARTERS = {glyph: index for index, glyph in enumerate(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")}


def quarters(cell: Cell) -> tuple[object, ...]:
    """The colours a block character shows: top left, top right, bottom left, bottom right."""
    lit = QUARTERS[cell.char]
    return tuple(cell.fg if lit >> bit & 1 else cell.bg for bit in range(4))
