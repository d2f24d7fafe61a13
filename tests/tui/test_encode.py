"""What the terminal shows after our bytes is what the grid says, at every colour depth."""

from __future__ import annotations

import numpy as np
import pytest
from ansi_cells import QUARTERS, Cell, quarters, read_cells, write_cells
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.tui.colour import Depth, channels, quantise, xterm_palette
from ofa_tui.tui.encode import as_shown, encode_cells, encode_rows
from ofa_tui.tui.grid import BOLD, Grid

GLYPHS = [*QUARTERS, "a", "é", "─", "⣿", "◆", "日", "😀"]
COLOURS = [0x000000, 0xFFFFFF, 0x4FA8FF, 0xFF5A4F, 0x102030]


@st.composite
def grids(draw: st.DrawFn, size: tuple[int, int] | None = None) -> Grid:
    width, height = size or (draw(st.integers(1, 12)), draw(st.integers(1, 4)))
    grid = Grid(width, height, 0xFFFFFF, 0)
    for y in range(height):
        x = 0
        while x < width:
            glyph = draw(st.sampled_from(GLYPHS))
            fg, bg = draw(st.sampled_from(COLOURS)), draw(st.sampled_from(COLOURS))
            x = max(x + 1, grid.text(x, y, glyph, fg, bg, bold=draw(st.booleans())))
    return grid


def expected_colour(colour: int, depth: Depth) -> object:
    if depth is Depth.TRUECOLOR:
        return (colour >> 16, colour >> 8 & 255, colour & 255)
    return int(quantise(np.array(colour, np.uint32), depth))


def same_look(cell: Cell, char: str, fg: object, bg: object, bold: bool) -> bool:
    """Block characters may be inverted, and a blank shows no foreground."""
    if cell.char in QUARTERS and char in QUARTERS:
        return quarters(cell) == quarters(Cell(char, fg, bg))
    return (cell.char, cell.fg, cell.bg, cell.bold) == (char, fg, bg, bold)


def assert_shows(cells: list[Cell], grid: Grid, y: int, depth: Depth) -> None:
    assert len(cells) == grid.width
    for x, cell in enumerate(cells):
        code = int(grid.char[y, x])
        if not code:
            assert cell.char == ""
            continue
        fg, bg = (expected_colour(int(c[y, x]), depth) for c in (grid.fg, grid.bg))
        assert same_look(cell, chr(code), fg, bg, bool(grid.attr[y, x] & BOLD)), (x, y, cell)


@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.FOUR_BIT])
@given(grid=grids())
@settings(max_examples=120, deadline=None)
def test_bytes_show_the_grid(depth: Depth, grid: Grid) -> None:
    for y, text in enumerate(encode_rows(grid, depth)):
        cells, reset = read_cells(text)
        assert reset
        assert_shows(cells, grid, y, depth)


@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.FOUR_BIT])
@given(
    data=st.data(),
    size=st.tuples(st.integers(1, 12), st.integers(1, 4)),
    corner=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
@settings(max_examples=120, deadline=None)
def test_changed_cells_alone_show_the_new_grid(
    depth: Depth, data: st.DataObject, size: tuple[int, int], corner: tuple[int, int]
) -> None:
    old, new = data.draw(grids(size)), data.draw(grids(size))
    x, y = corner
    frame = Cell("#")
    screen = [[frame] * (size[0] + 2 * x) for _ in range(size[1] + 2 * y)]
    for grid, where in ((old, np.ones((size[1], size[0]), bool)), (new, new.changed_cells(old))):
        assert write_cells(encode_cells(grid, where, depth, x, y).decode(), screen)
        for row in range(size[1]):
            assert_shows(screen[y + row][x : x + size[0]], grid, row, depth)
    around = [cell for number, row in enumerate(screen) for cell in
              (row if not y <= number < y + size[1] else row[:x] + row[x + size[0] :])]
    assert set(around) <= {frame}
    assert encode_cells(new, np.zeros((size[1], size[0]), bool), depth, x, y) == b""


@pytest.mark.parametrize("depth", [Depth.EIGHT_BIT, Depth.FOUR_BIT])
def test_colours_as_shown_are_sent_as_the_same(depth: Depth) -> None:
    """Every colour of the terminal stands for itself, so that what is compared is what is seen."""
    rng = np.random.default_rng(1)
    grid = Grid(64, 64, 0, 0)
    grid.fg[:], grid.bg[:] = rng.integers(0, 1 << 24, (2, 64, 64))
    wanted = quantise(grid.fg, depth)
    as_shown(grid, depth)
    assert (quantise(grid.fg, depth) == wanted).all()
    again = grid.fg.copy()
    as_shown(grid, depth)
    assert (grid.fg == again).all()


@given(grid=grids())
@settings(max_examples=60, deadline=None)
def test_without_colours_only_bold_and_reverse_are_sent(grid: Grid) -> None:
    for y, text in enumerate(encode_rows(grid, Depth.NONE)):
        cells, reset = read_cells(text)
        assert reset
        assert [c.char for c in cells] == [chr(c) if c else "" for c in grid.char[y]]
        assert all(c.fg is None and c.bg is None for c in cells)


def test_inverting_blocks_saves_colours() -> None:
    """A checkerboard of two colours needs each colour once."""
    grid = Grid(40, 1, 0, 0)
    grid.char[:] = ord("▀")
    grid.fg[0, ::2] = grid.bg[0, 1::2] = 0xFF0000
    (text,) = encode_rows(grid, Depth.TRUECOLOR)
    assert text.count("38;2") == text.count("48;2") == 1


def test_quantise_finds_the_nearest_terminal_colour() -> None:
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 1 << 24, 2000).astype(np.uint32)
    palette = channels(xterm_palette()).astype(int)
    wanted = channels(colours)
    for depth, first in ((Depth.EIGHT_BIT, 16),):
        chosen = palette[quantise(colours, depth)]
        error = ((chosen - wanted) ** 2).sum(axis=1)
        best = ((palette[None, first:] - wanted[:, None]) ** 2).sum(axis=2).min(axis=1)
        # The table has six bits a channel and picks a grey by its mean: rarely and slightly off the best.
        assert np.sqrt(error).mean() <= np.sqrt(best).mean() + 1.0
        assert (np.sqrt(error) - np.sqrt(best)).max() < 16
