"""A terminal in miniature: reads one row's bytes back into cells, independently of how they were made."""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[([0-9;]*)m|([^\x1b]+|\x1b)")


class Cell(NamedTuple):
    """`fg` and `bg` are None by default, an index into the terminal's palette, or an (r, g, b)."""

    char: str
    fg: object = None
    bg: object = None
    bold: bool = False
    reverse: bool = False


def read_cells(text: str) -> tuple[list[Cell], bool]:
    """(cells, whether the row ended in the reset state). A wide character is followed by a cell with char ""."""
    fg: object = None
    bg: object = None
    bold = reverse = False
    cells: list[Cell] = []
    for match in _TOKEN.finditer(text):
        if (run := match.group(2)) is not None:
            behind = [Cell("", fg, bg, bold, reverse)]
            wide = cell_len(run) > len(run)
            for char in run:
                cells.append(Cell(char, fg, bg, bold, reverse))
                if wide:
                    cells.extend(behind * (cell_len(char) - 1))
            continue
        codes = [int(code or 0) for code in match.group(1).split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                fg = bg = None
                bold = reverse = False
            elif code == 1:
                bold = True
            elif code == 22:
                bold = False
            elif code == 7:
                reverse = True
            elif code in (38, 48):
                kind = codes.pop(0)
                assert kind in (2, 5), f"unknown colour form in {match.group(0)!r}"
                colour: object = codes.pop(0) if kind == 5 else (codes.pop(0), codes.pop(0), codes.pop(0))
                fg, bg = (colour, bg) if code == 38 else (fg, colour)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                fg = code - 30 if code < 40 else code - 82
            elif 40 <= code <= 47 or 100 <= code <= 107:
                bg = code - 40 if code < 50 else code - 92
            else:
                raise AssertionError(f"unknown SGR parameter {code} in {match.group(0)!r}")
    return cells, fg is None and bg is None and not bold and not reverse


HALVES = {"▀": (True, False), "▄": (False, True), "█": (True, True), " ": (False, False)}
QUARTERS = {glyph: index for index, glyph in enumerate(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")}


def quarters(cell: Cell) -> tuple[object, ...]:
    """The colours a block character shows: top left, top right, bottom left, bottom right."""
    lit = QUARTERS[cell.char]
    return tuple(cell.fg if lit >> bit & 1 else cell.bg for bit in range(4))
