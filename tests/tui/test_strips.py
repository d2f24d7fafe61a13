"""The canary: Textual still works the way pre-encoded strips need, and both paths show the same."""

from __future__ import annotations

from ansi_cells import QUARTERS, quarters, read_cells
from fake_run import Corridor, card_palette
from rich.console import Console
from textual.strip import Strip

from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.picture import draw
from ofa_tui.tui.strips import EncodedStrip, encoded_strips, row_segments, supported


def plain_strips(grid: Grid) -> list[Strip]:
    """What Textual makes of the rows."""
    return [Strip(row_segments(grid, y), grid.width) for y in range(grid.height)]


def test_textual_still_supports_encoded_strips() -> None:
    assert supported()


def test_fast_and_slow_path_show_the_same_picture() -> None:
    console = Console(color_system="truecolor", force_terminal=True)
    for quadrants in (False, True):
        grid = draw(Corridor().frame(1.0), card_palette(), 60, 20, depth=Depth.TRUECOLOR, quadrants=quadrants)
        for fast, slow in zip(encoded_strips(grid, Depth.TRUECOLOR), plain_strips(grid), strict=True):
            left, right = read_cells(fast.render(console))[0], read_cells(slow.render(console))[0]
            assert [quarters(c) for c in left] == [quarters(c) for c in right]
            assert all(c.char in QUARTERS for c in left)


def test_cut_strips_fall_back_to_segments() -> None:
    grid = draw(Corridor().frame(1.0), card_palette(), 60, 20, depth=Depth.TRUECOLOR, quadrants=False)
    strip = encoded_strips(grid, Depth.TRUECOLOR)[7]
    whole = plain_strips(grid)[7]
    assert strip.divide([60]) == [strip]
    assert [s.text for s in strip.divide([10, 25, 60])] == [s.text for s in whole.divide([10, 25, 60])]
    assert strip.crop(5, 9).text == whole.crop(5, 9).text
    assert isinstance(strip, EncodedStrip)
