"""The Doom picture: shape, crop, faithfulness."""

from __future__ import annotations

import numpy as np
import pytest
from ansi_cells import QUARTERS
from fake_run import card_palette

from ofa_tui.tui.colour import Depth, channels
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.picture import HEIGHT, VIEW_HEIGHT, draw, fit, hold, settle


@pytest.mark.parametrize(
    ("pane", "picture"),
    [
        ((120, 45), (120, 45, HEIGHT)),  # the large size: exactly 4:3, bar included
        ((72, 23), (72, 23, VIEW_HEIGHT)),
        ((48, 15), (48, 15, VIEW_HEIGHT)),
        ((200, 45), (121, 45, HEIGHT)),
        ((120, 20), (65, 20, VIEW_HEIGHT)),  # too flat for the bar: it is left out
        ((20, 4), (14, 4, VIEW_HEIGHT)),
    ],
)
def test_fit(pane: tuple[int, int], picture: tuple[int, int, int]) -> None:
    assert fit(*pane) == picture


def test_fit_keeps_the_shape() -> None:
    for columns in range(4, 260, 7):
        for rows in range(2, 90, 3):
            width, height, source = fit(columns, rows)
            assert width <= columns and height <= rows
            exact = width * 3 / 8 * source / HEIGHT
            assert abs(height - exact) <= 0.5 + 0.02 * exact


def checker() -> np.ndarray:
    """Four flat quarters and a bar below."""
    pixels = np.zeros((200, 320), np.uint8)
    pixels[:84, :160], pixels[:84, 160:] = 31, 2 * 32 + 31
    pixels[84:168, :160], pixels[84:168, 160:] = 3 * 32 + 31, 4 * 32 + 31
    pixels[168:] = 5 * 32 + 31
    return pixels


@pytest.mark.parametrize("quadrants", [False, True])
def test_flat_areas_keep_their_colour_and_place(quadrants: bool) -> None:
    palette = card_palette()
    grid = draw(checker(), palette, 120, 45, depth=Depth.EIGHT_BIT, quadrants=quadrants)
    for (y, x), index in {(5, 5): 31, (5, 115): 95, (33, 5): 127, (33, 115): 159, (43, 60): 191}.items():
        assert tuple(channels(grid.bg[y, x])) == tuple(palette[index])
    cropped = draw(checker(), palette, 72, 23, depth=Depth.EIGHT_BIT, quadrants=quadrants, source=VIEW_HEIGHT)
    assert tuple(channels(cropped.bg[22, 3])) == tuple(palette[127])


def shown_error(grid_columns: int, quadrants: bool) -> float:
    """Mean distance between what the cells show and the picture, both at 4 samples a cell."""
    from fake_run import Corridor

    from ofa_tui.tui.picture import scale

    pixels, palette = Corridor().frame(0.5), card_palette()
    rows = round(grid_columns * 3 / 8)
    grid = draw(pixels, palette, grid_columns, rows, depth=Depth.TRUECOLOR, quadrants=quadrants)
    wanted = scale(pixels, palette, grid_columns * 2, rows * 2, HEIGHT, 1.0)
    lit = np.vectorize(lambda c: QUARTERS[chr(c)])(grid.char)
    shown = np.zeros_like(wanted)
    for bit, (dy, dx) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        colour = np.where((lit >> bit & 1)[..., None] > 0, channels(grid.fg), channels(grid.bg))
        shown[dy::2, dx::2] = colour
    return float(np.abs(shown - wanted).mean())


def test_quarter_blocks_show_more_than_half_blocks() -> None:
    assert shown_error(72, True) < shown_error(72, False)


def test_without_colours_brightness_becomes_characters() -> None:
    pixels = np.zeros((200, 320), np.uint8)
    pixels[:, 160:] = 31
    grid = draw(pixels, card_palette(), 40, 15, depth=Depth.NONE)
    assert grid.lines()[5][:5] == "     " and grid.lines()[5][-5:] == "@@@@@"


def test_gamma_brightens() -> None:
    pixels = np.full((200, 320), 8, np.uint8)
    dark = draw(pixels, card_palette(), 40, 15, depth=Depth.TRUECOLOR, gamma=1.0)
    bright = draw(pixels, card_palette(), 40, 15, depth=Depth.TRUECOLOR, gamma=0.52)
    assert channels(bright.bg[0, 0])[0] > channels(dark.bg[0, 0])[0] + 20


def distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Root mean square of the channels, green counting most."""
    return np.sqrt(((first.astype(float) - second) ** 2) @ np.array([0.3, 0.6, 0.1]))


def test_a_row_holds_a_colour_while_it_is_near() -> None:
    rgb = np.random.default_rng(2).integers(0, 256, (6, 50, 3)).astype(np.int32)
    rgb[:, 1::2] = np.clip(rgb[:, ::2] + 9, 0, 255)
    held = hold(rgb, 12.0)
    assert distance(held, rgb).max() <= 12.0
    kept = (held[:, 1:] == held[:, :-1]).all(axis=-1)
    assert kept[:, ::2].all()
    assert (held[:, 1:] == rgb[:, 1:]).all(axis=-1)[~kept].all(), "a new colour is the one that is wanted"


@pytest.mark.parametrize("quadrants", [False, True])
def test_cells_stay_only_where_no_quarter_is_far_off(quadrants: bool) -> None:
    from fake_run import Corridor

    def picture(seconds: float) -> Grid:
        return draw(Corridor().frame(seconds), card_palette(), 60, 20, depth=Depth.TRUECOLOR, quadrants=quadrants)

    def seen(grid: Grid) -> np.ndarray:
        """i4 [20, 60, 4, 3]"""
        lit = np.vectorize(lambda c: QUARTERS[chr(c)])(grid.char)
        colours = [np.where((lit >> bit & 1) > 0, grid.fg, grid.bg) for bit in range(4)]
        return channels(np.stack(colours, axis=-1))

    shown, wanted, settled = picture(0.5), picture(0.6), picture(0.6)
    settle(settled, shown, 20.0)
    off = distance(seen(settled), seen(wanted)).max(axis=-1)
    stayed = ~settled.changed_cells(shown) & wanted.changed_cells(shown)
    assert stayed.any() and off.max() <= 20.0
    assert not off[~stayed].any()
    would_be_off = distance(seen(shown), seen(wanted)).max(axis=-1)
    assert (would_be_off[settled.changed_cells(shown)] > 20.0).all()


def test_text_never_stays_behind() -> None:
    shown, wanted = Grid(3, 1, 0xFFFFFF, 0), Grid(3, 1, 0xFFFFFF, 0)
    shown.text(0, 0, "▀ab", 0x808080)
    wanted.text(0, 0, "▀aB", 0x828282)
    settle(wanted, shown, 20.0)
    assert wanted.lines() == ["▀aB"] and wanted.fg[0].tolist() == [0x808080, 0x828282, 0x828282]


def test_a_tolerance_makes_a_picture_smaller() -> None:
    from fake_run import Corridor

    from ofa_tui.tui.encode import encode_rows

    def size(depth: Depth, tolerance: float) -> int:
        grid = draw(Corridor().frame(0.5), card_palette(), 120, 45, depth=depth, tolerance=tolerance)
        return sum(map(len, encode_rows(grid, depth)))

    sizes = [
        size(depth, tolerance)
        for depth in (Depth.TRUECOLOR, Depth.EIGHT_BIT)
        for tolerance in (40.0, 20.0, 0.0)
    ]
    assert sizes[0] < 0.7 * sizes[1] < 0.5 * sizes[2] and sizes[3] < sizes[4] < 0.9 * sizes[5]
