"""What a terminal shows of the app, read back from the bytes that it is sent: a character and two colours a cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from ansi_cells import QUARTERS, Cell, quarters, read_cells

from ofa_tui.tui.app import OfaApp, gamma_for
from ofa_tui.tui.colour import Depth, xterm_palette
from ofa_tui.tui.grid import SPACE, Grid
from ofa_tui.tui.layout import Box
from ofa_tui.tui.picture import fit
from ofa_tui.tui.theme import for_depth

UNSEEN = -1
"""The colour of the terminal itself, and of a character that is blank."""
COMPLEMENT = {a: b for a, i in QUARTERS.items() for b, j in QUARTERS.items() if i + j == 15 and 0 < i < 15}
INK, PAPER = 0xCCCCCC, 0x000000
"""What a terminal without colours is drawn with."""


@dataclass(frozen=True)
class Seen:
    """`char` u4 [h, w] code points (0 behind a wide one); `ink`, `ground` i4 [h, w] an index into the terminal's
    palette, 0xRRGGBB in true colour, or UNSEEN; `bold`, `reverse` bool [h, w]."""

    char: np.ndarray
    ink: np.ndarray
    ground: np.ndarray
    bold: np.ndarray
    reverse: np.ndarray


def show(app: OfaApp, theme: str, depth: Depth) -> None:
    """Paints everything as an app would that was started with this theme on a terminal of this depth."""
    app.depth, app.gamma_step = depth, gamma_for(depth)
    app.colours = for_depth(app.themes[theme], depth)
    for pane in app.panes.values():
        pane.depth = depth
    app.repaint_all(everything=True)


def read_screen(app: OfaApp) -> list[list[Cell]]:
    """The cells of a whole screen. Blocks that were sent with swapped colours are turned back as they were painted."""
    painted = np.zeros((app.size.height, app.size.width), np.uint32)
    for name, box in app.boxes(*app.size).items():
        grid = app.panes[name].grid
        assert grid is not None
        painted[box.y : box.y + box.height, box.x : box.x + box.width] = grid.char
    rows = []
    for strips, chars in zip(app.screen._compositor.render_full_update().strips, painted.tolist(), strict=True):
        cells, reset = _read("".join(strip.render(app.console) for strip in strips))
        assert reset and len(cells) == app.size.width
        rows.append([_as_painted(cell, chr(char)) for cell, char in zip(cells, chars, strict=True)])
    return rows


_read = lru_cache(maxsize=512)(read_cells)
"""Without colours the rows of all themes are the same."""


def _as_painted(cell: Cell, char: str) -> Cell:
    if cell.char != char and COMPLEMENT.get(cell.char) == char:
        return Cell(char, cell.bg, cell.fg, cell.bold, cell.reverse)
    return cell


def as_arrays(rows: list[list[Cell]]) -> Seen:
    shape = len(rows), len(rows[0])
    chars, inks, grounds, bold, reverse = zip(*(cell for row in rows for cell in row), strict=True)
    char = np.array([ord(c) if c else 0 for c in chars], np.uint32).reshape(shape)
    ink, ground = (np.array(list(map(_number, colours)), np.int32).reshape(shape) for colours in (inks, grounds))
    blank = char == SPACE
    ink[blank] = UNSEEN
    return Seen(char, ink, ground, np.array(bold).reshape(shape) & ~blank, np.array(reverse).reshape(shape))


@cache
def _number(colour: object) -> int:
    if isinstance(colour, tuple):
        return int(colour[0]) << 16 | int(colour[1]) << 8 | int(colour[2])
    return colour if isinstance(colour, int) else UNSEEN


def picture_box(app: OfaApp) -> Box:
    """The cells of the screen that the game's picture takes; empty where there is none."""
    box = app.boxes(*app.size).get("doom")
    if box is None or not app.engine.info.games:
        return Box(0, 0, 0, 0)
    sides = int(app._frame("doom").sides)
    inner = Box(box.x + sides, box.y + 1, box.width - 2 * sides, box.height - 1 - sides)
    columns, rows, _ = fit(inner.width, inner.height)
    return Box(inner.x + (inner.width - columns) // 2, inner.y + (inner.height - rows) // 2, columns, rows)


def picture_looks(rows: list[list[Cell]], box: Box) -> list[tuple[object, ...]]:
    """By row of the picture, what its cells look like, however they were sent."""
    inside = [row[box.x : box.x + box.width] for row in rows[box.y : box.y + box.height]]
    return [tuple(quarters(cell) if cell.char in QUARTERS else cell.char for cell in row) for row in inside]


def to_grid(seen: Seen, depth: Depth) -> Grid:
    """As a grid, to draw it."""
    grid = Grid(seen.char.shape[1], seen.char.shape[0], INK, PAPER)
    palette = xterm_palette().astype(np.int64)

    def colours(values: np.ndarray, default: int) -> np.ndarray:
        known = values if depth is Depth.TRUECOLOR else palette[np.maximum(values, 0)]
        return np.where(values == UNSEEN, default, known).astype(np.uint32)

    ink, ground = colours(seen.ink, INK), colours(seen.ground, PAPER)
    grid.char[:], grid.attr[:] = seen.char, seen.bold
    grid.fg[:], grid.bg[:] = np.where(seen.reverse, ground, ink), np.where(seen.reverse, ink, ground)
    return grid
