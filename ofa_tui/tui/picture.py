"""A Doom frame (palette indices, 320x200) as terminal cells: half blocks, quarter blocks or characters.

Original pixels are 1.2 times as high as wide, so 320x200 fills a 4:3 rectangle; a terminal cell is taken as 1:2.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from functools import lru_cache

import numpy as np

from ofa_tui.tui.colour import Depth, channels, luminance
from ofa_tui.tui.encode import QUADRANTS
from ofa_tui.tui.grid import Grid

WIDTH, HEIGHT = 320, 200
VIEW_HEIGHT = 168
"""Rows above the status bar."""
FULL_COLUMNS = 100
"""Fewer columns than this show the view alone: the bar's digits would be unreadable."""
HALF_BLOCK_COLUMNS = 120
"""From this width on half blocks are fine enough; below, quarter blocks double the columns."""


class Blocks(Enum):
    """The block characters that a terminal has."""

    NONE = ""
    HALVES = "▀"
    QUARTERS = "▀▘"


GAMMAS = (1.0, 0.8, 0.65, 0.52)
"""Exponents the gamma key steps through; frames are drawn for a bright tube in a dark room."""

ALONG_ROWS = 0.6
"""Share of a tolerance that goes into rows: streaks show sooner than what stays behind."""

_LUMINANCE = np.array([77, 150, 29], np.int32)
_WEIGHTS = np.array([3, 6, 1], np.int32)
_RAMP = np.array([ord(c) for c in " .:-=+*#%@"], np.uint32)


def blocks_of(codec: str) -> Blocks:
    """Those of a character set."""
    for blocks in (Blocks.QUARTERS, Blocks.HALVES):
        with suppress(UnicodeEncodeError):
            blocks.value.encode(codec)
            return blocks
    return Blocks.NONE


def fit(columns: int, rows: int) -> tuple[int, int, int]:
    """Largest picture with the frame's shape in a pane: (columns, rows) in cells, and rows of the frame it shows."""
    for source in (HEIGHT, VIEW_HEIGHT):
        shape = 3 / 8 * source / HEIGHT
        width = max(1, min(columns, int((rows + 0.5) / shape)))
        height = max(1, min(rows, round(width * shape)))
        if width >= FULL_COLUMNS:
            break
    return width, height, source


@lru_cache(maxsize=4)
def _samples(width: int, height: int, rows: int) -> list[np.ndarray]:
    """For each sample of a box filter, the flat source index of every output pixel: i4 [height * width]."""
    across, down = min(4, -(-WIDTH // width)), min(4, -(-rows // height))
    out = []
    for j in range(down):
        y = ((np.arange(height) + (j + 0.5) / down) * rows / height).astype(np.int32)
        for i in range(across):
            x = ((np.arange(width) + (i + 0.5) / across) * WIDTH / width).astype(np.int32)
            out.append((y[:, None] * WIDTH + x).ravel())
    return out


def _packed_palette(palette: np.ndarray, gamma: float) -> np.ndarray:
    """u8 [256]: the palette with `gamma` applied, 20 bits per channel so that samples can be added."""
    values = np.rint(255 * (palette / 255.0) ** gamma).astype(np.uint64)
    return values[:, 0] << np.uint64(40) | values[:, 1] << np.uint64(20) | values[:, 2]


def scale(
    pixels: np.ndarray, palette: np.ndarray, width: int, height: int, rows: int, gamma: float, thin: bool = False
) -> np.ndarray:
    """i4 [height, width, 3]: the first `rows` rows of the frame, box-filtered to width x height.

    With `thin` each takes, above the status bar, the brightest colour that falls on it, so that lines of one pixel stay
    as bright as they are.
    """
    samples = _samples(width, height, rows)
    if thin:
        total, count = _packed_palette(palette, gamma)[_brightest(pixels.ravel(), palette, samples)], 1
    else:
        packed = _packed_palette(palette, gamma)[pixels.ravel()]
        total, count = packed[samples[0]], len(samples)
        for index in samples[1:]:
            total += packed[index]
    mask = np.uint64(0xFFFFF)
    out = np.empty((height * width, 3), np.int32)
    for channel, shift in enumerate((40, 20, 0)):
        out[:, channel] = (total >> np.uint64(shift) & mask).astype(np.int32)
    out += count // 2
    out //= count
    picture = out.reshape(height, width, 3)
    if thin and rows > VIEW_HEIGHT:
        bar = height * VIEW_HEIGHT // rows
        picture[bar:] = scale(pixels, palette, width, height, rows, gamma)[bar:]
    return picture


def _brightest(pixels: np.ndarray, palette: np.ndarray, samples: list[np.ndarray]) -> np.ndarray:
    """u1: of each output pixel's samples the palette index of the brightest."""
    light = palette.astype(np.int32) @ _LUMINANCE
    best = pixels[samples[0]]
    for index in samples[1:]:
        other = pixels[index]
        best = np.where(light[other] > light[best], other, best)
    return best


def _pack(rgb: np.ndarray, step: int) -> np.ndarray:
    """u4 packed colours, each channel rounded to a multiple of `step` (fewer colour changes to send)."""
    values = rgb
    if step > 1:
        values = np.minimum((values + step // 2) // step * step, 255)
    values = values.astype(np.uint32)
    return values[..., 0] << 16 | values[..., 1] << 8 | values[..., 2]


def draw(
    pixels: np.ndarray,
    palette: np.ndarray,
    columns: int,
    rows: int,
    *,
    depth: Depth,
    gamma: float = 1.0,
    quadrants: bool | None = None,
    source: int = HEIGHT,
    thin: bool = False,
    tolerance: float = 0.0,
    blocks: Blocks = Blocks.QUARTERS,
) -> Grid:
    """The frame as a grid of exactly columns x rows cells (choose them with `fit`).

    pixels u1 [200, 320], palette u1 [256, 3]; the first `source` rows are shown. `quadrants` defaults to what suits
    the width. `thin` keeps thin lines bright, as a map needs it. With a `tolerance`, in steps of a channel of 255,
    colours along a row stay what they are while they are not much farther off: fewer to send.
    Without `blocks` a cell has one colour.
    """
    if quadrants is None:
        quadrants = columns < HALF_BLOCK_COLUMNS
    grid = Grid(columns, rows, 0, 0)
    if not columns or not rows:
        return grid
    if depth is Depth.NONE:
        grey = luminance(_pack(scale(pixels, palette, columns, rows, source, gamma, thin), 1))
        grid.char[:] = _RAMP[grey * len(_RAMP) >> 8]
        grid.fg[:] = 0xFFFFFF
        return grid
    step = 4 if depth is Depth.TRUECOLOR else 1
    if not quadrants or blocks is not Blocks.QUARTERS:
        lines = 1 if blocks is Blocks.NONE else 2
        rgb = scale(pixels, palette, columns, rows * lines, source, gamma, thin)
        if depth is Depth.FOUR_BIT:
            rgb = _dither(rgb)
        elif tolerance:
            rgb = hold(rgb, tolerance * ALONG_ROWS)
        colours = np.repeat(_pack(rgb, step), 2 // lines, axis=0)
        grid.fg[:], grid.bg[:] = colours[0::2], colours[1::2]
        grid.char[:] = np.where(grid.fg == grid.bg, 0x20, ord("▀"))
        return grid
    rgb = scale(pixels, palette, columns * 2, rows * 2, source, gamma, thin)
    if depth is Depth.FOUR_BIT:
        rgb = _dither(rgb)
    quarters = rgb.reshape(rows, 2, columns, 2, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, 4, 3)
    lit, fore, back = _two_colours(quarters)
    fore, back = fore.reshape(rows, columns, 3), back.reshape(rows, columns, 3)
    if tolerance and depth is not Depth.FOUR_BIT:
        fore, back = (hold(colours, tolerance * ALONG_ROWS) for colours in (fore, back))
    grid.fg[:], grid.bg[:] = _pack(fore, step), _pack(back, step)
    same = grid.fg == grid.bg
    grid.char[:] = np.where(same, 0x20, QUADRANTS[lit].reshape(rows, columns))
    return grid


def _far(first: np.ndarray, second: np.ndarray, tolerance: float) -> np.ndarray:
    """bool [...]: where two colours, i4 [..., 3], differ by more than `tolerance`, weighted as the eye does."""
    difference = first - second
    return (difference * difference) @ _WEIGHTS > tolerance * tolerance * int(_WEIGHTS.sum())


def hold(rgb: np.ndarray, tolerance: float) -> np.ndarray:
    """i4 [h, w, 3]: along each row the colour before, while what is wanted is no farther off than `tolerance`."""
    out = np.empty_like(rgb)
    out[:, 0] = current = rgb[:, 0]
    for x in range(1, rgb.shape[1]):
        current = np.where(_far(rgb[:, x], current, tolerance)[:, None], rgb[:, x], current)
        out[:, x] = current
    return out


def settle(grid: Grid, shown: Grid, tolerance: float) -> None:
    """Leaves cells of block characters in `grid` as they are in `shown` where no quarter would change by more."""
    glyphs = np.sort(QUADRANTS)
    lit = np.argsort(QUADRANTS)
    places = [np.searchsorted(glyphs, g.char).clip(0, 15) for g in (grid, shown)]
    blocks = (glyphs[places[0]] == grid.char) & (glyphs[places[1]] == shown.char)
    y, x = np.nonzero(blocks & grid.changed_cells(shown))
    far = np.zeros(y.size, bool)
    sides = [(lit[place[y, x]], channels(g.fg[y, x]), channels(g.bg[y, x]))
             for place, g in zip(places, (grid, shown), strict=True)]
    for bit in range(4):
        new, old = (np.where((mask >> bit & 1)[:, None] > 0, fore, back) for mask, fore, back in sides)
        far |= _far(new, old, tolerance)
    y, x = y[~far], x[~far]
    for name in ("char", "fg", "bg", "attr"):
        getattr(grid, name)[y, x] = getattr(shown, name)[y, x]


def _two_colours(quarters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Best two-colour approximation of four pixels: (mask of lit quarters, colour of the lit, of the others).

    quarters i4 [n, 4, 3]. The pixels are split at their mean brightness, which for four pixels is within a few
    per cent of the best split of all fourteen and much cheaper.
    """
    grey = quarters @ _LUMINANCE
    lit = grey * 4 > grey.sum(axis=1, keepdims=True)
    count = lit.sum(axis=1)
    # Little contrast is not worth two colours: it would only be sent, not seen.
    flat = (grey.max(axis=1) - grey.min(axis=1)) < 6 * 256
    lit[flat] = False
    count[flat] = 0
    total = quarters.sum(axis=1)
    bright = (quarters * lit[:, :, None]).sum(axis=1)
    back = (total - bright) // (4 - count)[:, None]
    fore = np.where(count[:, None] > 0, bright // np.maximum(count, 1)[:, None], back)
    return lit @ np.array([1, 2, 4, 8]), fore, back


@lru_cache(maxsize=1)
def _bayer() -> np.ndarray:
    """i4 [4, 4]: the ordered-dither thresholds, -60..60, about half the distance of two of the sixteen colours."""
    two = np.array([[0, 2], [3, 1]])
    four = np.block([[4 * two, 4 * two + 2], [4 * two + 3, 4 * two + 1]])
    return ((four * 2 + 1) * 4 - 64).astype(np.int32)


def _dither(rgb: np.ndarray) -> np.ndarray:
    height, width = rgb.shape[:2]
    pattern = np.tile(_bayer(), (-(-height // 4), -(-width // 4)))[:height, :width]
    return np.clip(rgb + pattern[:, :, None], 0, 255)
