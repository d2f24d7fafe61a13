"""Screenshots: an exact rasteriser of cells."""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rich.cells import cell_len
from rich.color import ColorType

from ofa_tui import locations
from ofa_tui.tui.colour import xterm_palette
from ofa_tui.tui.encode import QUADRANTS
from ofa_tui.tui.grid import BOLD, Grid

if TYPE_CHECKING:
    from rich.color import Color
    from textual.strip import Strip

    from ofa_tui.tui.app import OfaApp

CELL_WIDTH, CELL_HEIGHT = 10, 20
FONT_SIZE = 16
BASELINE = 15
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_RGB = bytes([8, 2, 0, 0, 0])
"""8 bits a sample, red, green and blue; PNG's only packing and filtering; not interlaced."""


def _colour(colour: Color | None, default: int) -> int:
    if colour is None or colour.type is ColorType.DEFAULT:
        return default
    if colour.triplet is not None:
        red, green, blue = colour.triplet
        return red << 16 | green << 8 | blue
    return int(xterm_palette()[colour.number or 0])


def strips_to_grid(strips: list[Strip], fg: int, bg: int) -> Grid:
    """A composited screen as cells; `fg` and `bg` stand for the terminal's default colours."""
    grid = Grid(max((strip.cell_length for strip in strips), default=0), len(strips), fg, bg)
    for y, strip in enumerate(strips):
        x = 0
        for text, style, control in strip:
            if control:
                continue
            ink, back, bold = fg, bg, False
            if style is not None:
                ink, back, bold = _colour(style.color, fg), _colour(style.bgcolor, bg), bool(style.bold)
                if style.reverse:
                    ink, back = back, ink
                if style.dim:
                    ink = (ink >> 1 & 0x7F7F7F) + (back >> 1 & 0x7F7F7F)
            grid.text(x, y, text, ink, back, bold=bold)
            x += cell_len(text)
    return grid


@lru_cache(maxsize=2)
def _font(bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSansMono-Bold.ttf" if bold else "DejaVuSansMono.ttf"
    return ImageFont.truetype(str(locations.assets() / "fonts" / name), FONT_SIZE)


@lru_cache(maxsize=4096)
def glyph_mask(code: int, bold: bool) -> np.ndarray:
    """u1 [20, 10 or 20]: coverage 0..255 of a character's cell; block, box and braille characters are exact."""
    mask = shape_mask(code)
    if mask is not None:
        return mask
    character = chr(code)
    width = CELL_WIDTH * max(1, cell_len(character))
    image = Image.new("L", (width, CELL_HEIGHT), 0)
    ImageDraw.Draw(image).text((0, BASELINE), character, fill=255, font=_font(bold), anchor="ls")
    return np.array(image)


def shape_mask(code: int) -> np.ndarray | None:
    """u1 [20, 10]: coverage of a block, line or braille character; None for all others, which the font has."""
    mask = np.zeros((CELL_HEIGHT, CELL_WIDTH), np.uint8)
    if 0x2800 <= code < 0x2900:
        for bit, (row, column) in enumerate([(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1)]):
            if code >> bit & 1:
                mask[1 + 5 * row : 4 + 5 * row, 1 + 5 * column : 4 + 5 * column] = 255
        return mask
    if 0x2580 <= code < 0x25A0:
        return _block_mask(code, mask)
    return _line_mask(chr(code), mask)


def _block_mask(code: int, mask: np.ndarray) -> np.ndarray | None:
    middle, centre = CELL_HEIGHT // 2, CELL_WIDTH // 2
    if code == 0x2580:
        mask[:middle] = 255
    elif code <= 0x2588:
        mask[CELL_HEIGHT - round(CELL_HEIGHT * (code - 0x2580) / 8) :] = 255
    elif code < 0x2590:
        mask[:, : round(CELL_WIDTH * (0x2590 - code) / 8)] = 255
    elif code == 0x2590:
        mask[:, centre:] = 255
    elif code >= 0x2596:
        lit = QUADRANTS.tolist().index(code)
        for bit, (rows, columns) in enumerate(
            [
                (slice(0, middle), slice(0, centre)),
                (slice(0, middle), slice(centre, None)),
                (slice(middle, None), slice(0, centre)),
                (slice(middle, None), slice(centre, None)),
            ]
        ):
            if lit >> bit & 1:
                mask[rows, columns] = 255
    else:
        return None
    return mask


_ARMS = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru",
    "┼": "lrud", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "╴": "l", "╶": "r", "╵": "u", "╷": "d",
}  # fmt: skip


def _line_mask(character: str, mask: np.ndarray) -> np.ndarray | None:
    arms = _ARMS.get(character)
    if arms is None:
        return None
    y, x = CELL_HEIGHT // 2, CELL_WIDTH // 2 - 1
    spans = {
        "l": (slice(y, y + 1), slice(0, x + 1)),
        "r": (slice(y, y + 1), slice(x, None)),
        "u": (slice(0, y + 1), slice(x, x + 1)),
        "d": (slice(y, None), slice(x, x + 1)),
    }
    for arm in arms:
        mask[spans[arm]] = 255
    if character in "╭╮╰╯":  # round the corner off
        mask[y, x] = 0
        mask[y + (1 if character in "╭╮" else -1), x + (1 if character in "╭╰" else -1)] = 140
    return mask


def rasterise(grid: Grid) -> Image.Image:
    """The grid as an image, CELL_WIDTH x CELL_HEIGHT pixels a cell."""
    return Image.fromarray(np.concatenate([_row_pixels(grid, y) for y in range(grid.height)]))


def _row_pixels(grid: Grid, y: int) -> np.ndarray:
    """u1 [CELL_HEIGHT, grid.width * CELL_WIDTH, 3]: one row of cells."""
    back = np.repeat(_rgb(grid.bg[y]), CELL_WIDTH, axis=0).astype(np.int32)
    fore = np.repeat(_rgb(grid.fg[y]), CELL_WIDTH, axis=0).astype(np.int32)
    cover = np.zeros((CELL_HEIGHT, grid.width * CELL_WIDTH), np.int32)
    for x in np.flatnonzero((grid.char[y] != 0x20) & (grid.char[y] != 0)).tolist():
        mask = glyph_mask(int(grid.char[y, x]), bool(grid.attr[y, x] & BOLD))
        area = cover[:, x * CELL_WIDTH : x * CELL_WIDTH + mask.shape[1]]
        area[:] = mask[:, : area.shape[1]]
    pixels = back + (fore - back) * cover[:, :, None] // 255
    return pixels.astype(np.uint8)


def _rgb(colours: np.ndarray) -> np.ndarray:
    return np.stack((colours >> 16 & 255, colours >> 8 & 255, colours & 255), axis=-1).astype(np.uint8)


def screen_grid(app: OfaApp) -> Grid:
    """What the terminal shows now, as cells."""
    return strips_to_grid(app.screen._compositor.render_strips(), app.colours.text, app.colours.background)


def encode_png(grid: Grid) -> bytes:
    """The grid as a PNG file (https://www.w3.org/TR/png-3/).

    Row by row and not by Pillow: a whole picture of a large terminal takes 150 MB in such arrays and 10 MB in Pillow,
    which the allocator would keep, in each thread that ever made one.
    """
    packer = zlib.compressobj()
    packed = [packer.compress(_scanlines(_row_pixels(grid, y))) for y in range(grid.height)]
    size = struct.pack(">II", grid.width * CELL_WIDTH, grid.height * CELL_HEIGHT)
    chunks = (
        (b"IHDR", size + PNG_RGB),
        (b"IDAT", b"".join([*packed, packer.flush()])),
        (b"IEND", b""),
    )
    return PNG_SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _scanlines(pixels: np.ndarray) -> bytes:
    """PNG's lines: each begins with its filter, here none."""
    lines = pixels.reshape(len(pixels), -1)
    return np.pad(lines, ((0, 0), (1, 0))).tobytes()
