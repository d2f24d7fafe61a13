"""Cells to terminal bytes, vectorised: every row of a grid becomes one SGR-coloured string.

Each cell owns a fixed number of byte slots (attribute, foreground, background, character); slots that are not
needed hold 0 and are squeezed out of all cells at once. A colour is sent only where it differs from the one the
terminal has: a blank cell leaves the foreground alone, and half and quarter blocks are inverted (colours swapped,
the complementary glyph) where that saves a colour.
SGR: ECMA-48 section 8.3.117; the 38/48 forms are ISO 8613-6's as xterm reads them.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from ofa_tui.tui.colour import Depth, luminance, quantise, xterm_palette
from ofa_tui.tui.grid import BOLD, SPACE, Grid

_RESET = b"\x1b[0m"
QUADRANTS = np.array([ord(c) for c in " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"], np.uint32)
"""Glyph for each set of lit quarters: bit 0 top left, 1 top right, 2 bottom left, 3 bottom right."""


@lru_cache(maxsize=1)
def _inverses() -> tuple[np.ndarray, np.ndarray]:
    """Sorted block glyphs that have a complement, and that complement."""
    pairs = {int(QUADRANTS[i]): int(QUADRANTS[15 - i]) for i in range(1, 15)}
    glyphs = np.array(sorted(pairs), np.uint32)
    return glyphs, np.array([pairs[int(g)] for g in glyphs], np.uint32)


def save_colours(char: np.ndarray, fg: np.ndarray, bg: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(char, fg, bg), each [h, w], that show the same picture with fewer colour changes along each row.

    Whether a swap pays depends only on whether the cell before is swapped too, so the best choice for all cells
    of a row is a running parity of the local answers.
    """
    glyphs, complements = _inverses()
    place = np.searchsorted(glyphs, char).clip(0, len(glyphs) - 1)
    invertible = glyphs[place] == char
    if not invertible.any():
        return char, fg, bg
    keep = (fg[:, 1:] != fg[:, :-1]).astype(np.int8) + (bg[:, 1:] != bg[:, :-1])
    swap = (fg[:, 1:] != bg[:, :-1]).astype(np.int8) + (bg[:, 1:] != fg[:, :-1])
    flip = np.zeros(char.shape, bool)
    # A run of invertible cells starts unswapped after a cell that cannot swap.
    flip[:, 1:] = (swap < keep) & invertible[:, 1:] & invertible[:, :-1]
    parity = np.cumsum(flip, axis=1)
    barrier = np.maximum.accumulate(np.where(invertible, 0, parity + 1), axis=1)
    swapped = ((parity - np.maximum(barrier - 1, 0)) & 1).astype(bool) & invertible
    return (
        np.where(swapped, complements[place], char),
        np.where(swapped, bg, fg),
        np.where(swapped, fg, bg),
    )


def _forward_fill(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Each row's values where known, else the last known one before it (the first column where there is none)."""
    columns = np.where(known, np.arange(values.shape[1]), 0)
    return np.take_along_axis(values, np.maximum.accumulate(columns, axis=1), axis=1)


@lru_cache(maxsize=1)
def _decimals() -> np.ndarray:
    """u1 [1000, 3]: ASCII decimals, left-aligned, padded with 0."""
    table = np.zeros((1000, 3), np.uint8)
    for value in range(1000):
        digits = str(value).encode()
        table[value, : len(digits)] = list(digits)
    return table


@lru_cache(maxsize=4)
def _indexed_sgr(background: bool, depth: Depth) -> np.ndarray:
    """u1 [256, 9]: the SGR parameters that choose each indexed colour."""
    table = np.zeros((256, 9), np.uint8)
    for index in range(256):
        if depth is Depth.FOUR_BIT:
            code = str((90 if index > 7 else 30) + index % 8 + (10 if background else 0))
        else:
            code = f"{48 if background else 38};5;{index}"
        table[index, : len(code)] = list(code.encode())
    return table


def _colour_slots(colours: np.ndarray, background: bool, depth: Depth) -> np.ndarray:
    """u1 [n, k]: SGR parameters for n colours (packed for true colour, else indices)."""
    if depth is not Depth.TRUECOLOR:
        return _indexed_sgr(background, depth)[colours]
    decimals = _decimals()
    slots = np.empty((colours.size, 16), np.uint8)
    slots[:, :5] = list(b"48;2;" if background else b"38;2;")
    slots[:, 5:8] = decimals[colours >> 16 & 255]
    slots[:, 8] = slots[:, 12] = ord(";")
    slots[:, 9:12] = decimals[colours >> 8 & 255]
    slots[:, 13:16] = decimals[colours & 255]
    return slots


def _utf8_slots(codes: np.ndarray) -> np.ndarray:
    """u1 [n, 4]: UTF-8 of each code point, padded with 0 (RFC 3629)."""
    slots = np.zeros((codes.size, 4), np.uint8)
    one, two, three = codes < 0x80, codes < 0x800, codes < 0x10000
    tail = 0x80 | (codes & 0x3F)
    second = 0x80 | (codes >> 6 & 0x3F)
    lead = np.where(three, 0xE0 | codes >> 12, 0xF0 | codes >> 18)
    slots[:, 0] = np.where(one, codes, np.where(two, 0xC0 | codes >> 6, lead))
    slots[:, 1] = np.where(one, 0, np.where(two, tail, np.where(three, second, 0x80 | (codes >> 12 & 0x3F))))
    slots[:, 2] = np.where(two, 0, np.where(three, tail, second))
    slots[:, 3] = np.where(three, 0, tail)
    return slots


def as_shown(grid: Grid, depth: Depth) -> None:
    """Puts the terminal's colours in place of those asked for, so that equal looks are equal cells."""
    if depth in (Depth.EIGHT_BIT, Depth.FOUR_BIT):
        palette = xterm_palette()
        grid.fg[:], grid.bg[:] = palette[quantise(grid.fg, depth)], palette[quantise(grid.bg, depth)]


def encode_rows(grid: Grid, depth: Depth) -> list[str]:
    """One string of SGR sequences and characters per row; each starts from and ends with the reset state."""
    height, width = grid.height, grid.width
    if not height or not width:
        return [""] * height
    char, fg, bg, bold = grid.char, grid.fg, grid.bg, (grid.attr & BOLD).astype(bool)
    behind = char == 0
    if behind.any():  # the second half of a wide character is drawn with the first
        fg, bg, bold = (_forward_fill(values, ~behind) for values in (fg, bg, bold))
    slots = _cell_slots(char, fg, bg, bold, depth)
    return [(row + _RESET).decode() for row in _squeeze(slots.reshape(height, -1))]


def encode_cells(grid: Grid, where: np.ndarray, depth: Depth, x: int, y: int) -> bytes:
    """What puts those cells of a grid on the screen whose top left cell is at column x, row y (from 0) of it.

    where bool [h, w]; no column or row of the screen is beyond 999. Starts from and ends with the reset state, and
    leaves the cursor anywhere.
    """
    where = where.copy()
    behind = grid.char == 0
    where[:, :-1] |= where[:, 1:] & behind[:, 1:]
    rows, columns = np.nonzero(where & ~behind)
    if not rows.size:
        return b""
    wide = np.zeros(where.shape, bool)
    wide[:, :-1] = behind[:, 1:]
    end = columns + 1 + wide[rows, columns]
    gap = np.full(rows.size, -1)
    gap[1:] = np.where(rows[1:] == rows[:-1], columns[1:] - end[:-1], -1)
    char, fg, bg, attr = (values[rows, columns][None] for values in (grid.char, grid.fg, grid.bg, grid.attr))
    slots = _cell_slots(char, fg, bg, (attr & BOLD).astype(bool), depth)
    moves = _move_slots(rows + y, columns + x, gap)
    return _squeeze(np.hstack((moves, slots)).reshape(1, -1))[0] + _RESET


def _move_slots(rows: np.ndarray, columns: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """u1 [n, 10]: how the cursor comes to each cell, CUF over a gap in a row, CUP where it is -1 (ECMA-48 8.3)."""
    slots = np.zeros((rows.size, 10), np.uint8)
    decimals = _decimals()
    moves = np.flatnonzero(gap)
    slots[moves, :2] = list(b"\x1b[")
    forward = np.flatnonzero(gap > 0)
    slots[forward, 2:5] = decimals[gap[forward]]
    slots[forward, 9] = ord("C")
    jump = np.flatnonzero(gap < 0)
    slots[jump, 2:5] = decimals[rows[jump] + 1]
    slots[jump, 5] = ord(";")
    slots[jump, 6:9] = decimals[columns[jump] + 1]
    slots[jump, 9] = ord("H")
    return slots


def _cell_slots(char: np.ndarray, fg: np.ndarray, bg: np.ndarray, bold: np.ndarray, depth: Depth) -> np.ndarray:
    """u1 [h * w, k]: each cell's bytes, with 0 between them; arguments [h, w], each row from the reset state on."""
    if depth is Depth.NONE:
        return _plain_slots(char, bold, luminance(bg) > luminance(fg) + 24)
    if depth is not Depth.TRUECOLOR:
        fg, bg = quantise(fg, depth), quantise(bg, depth)
    char, fg, bg = save_colours(char, fg, bg)
    visible = (char != SPACE) & (char != 0)
    fg, bold = _forward_fill(fg, visible), _forward_fill(bold, visible)
    fg_change, bg_change, bold_change = (np.ones(char.shape, bool) for _ in range(3))
    for change, values in ((fg_change, fg), (bg_change, bg), (bold_change, bold)):
        change[:, 1:] = values[:, 1:] != values[:, :-1]
    bold_change[:, 0] = bold[:, 0]
    return _colour_cells(char, fg, bg, bold, (fg_change, bg_change, bold_change), depth)


def _colour_cells(
    char: np.ndarray,
    fg: np.ndarray,
    bg: np.ndarray,
    bold: np.ndarray,
    changes: tuple[np.ndarray, np.ndarray, np.ndarray],
    depth: Depth,
) -> np.ndarray:
    fg_change, bg_change, bold_change = (c.ravel() for c in changes)
    count = char.size
    colour_width = 16 if depth is Depth.TRUECOLOR else 9
    # ESC [ | 22 | ; | fg | ; | bg | m | utf-8
    at_fg = 5
    at_bg = at_fg + colour_width + 1
    at_end = at_bg + colour_width
    slots = np.zeros((count, at_end + 1 + 4), np.uint8)
    any_change = fg_change | bg_change | bold_change
    slots[:, 0] = np.where(any_change, 0x1B, 0)
    slots[:, 1] = np.where(any_change, ord("["), 0)
    flat_bold = bold.ravel()
    if bold_change.any():
        slots[:, 2] = np.where(bold_change, np.where(flat_bold, ord("1"), ord("2")), 0)
        slots[:, 3] = np.where(bold_change & ~flat_bold, ord("2"), 0)
        slots[:, 4] = np.where(bold_change & (fg_change | bg_change), ord(";"), 0)
    where = np.flatnonzero(fg_change)
    slots[where, at_fg : at_fg + colour_width] = _colour_slots(fg.ravel()[where], False, depth)
    slots[:, at_bg - 1] = np.where(fg_change & bg_change, ord(";"), 0)
    where = np.flatnonzero(bg_change)
    slots[where, at_bg:at_end] = _colour_slots(bg.ravel()[where], True, depth)
    slots[:, at_end] = np.where(any_change, ord("m"), 0)
    slots[:, at_end + 1 :] = _utf8_slots(char.ravel())
    return slots


def _plain_slots(char: np.ndarray, bold: np.ndarray, reverse: np.ndarray) -> np.ndarray:
    """No colours: bold, and reverse video where the background is the brighter one."""
    state = bold.astype(np.uint8) | reverse.astype(np.uint8) << 1
    before = np.zeros_like(state)
    before[:, 1:] = state[:, :-1]
    codes = np.zeros((4, 8), np.uint8)
    for value, code in enumerate((b"\x1b[0m", b"\x1b[0;1m", b"\x1b[0;7m", b"\x1b[0;1;7m")):
        codes[value, : len(code)] = list(code)
    slots = np.zeros((char.size, 12), np.uint8)
    changed = (state != before).ravel()
    slots[changed, :8] = codes[state.ravel()[changed]]
    slots[:, 8:] = _utf8_slots(char.ravel())
    return slots


def _squeeze(rows: np.ndarray) -> list[bytes]:
    """Each row's bytes that are not 0."""
    used = rows != 0
    data = rows[used].tobytes()
    ends = np.cumsum(used.sum(axis=1)).tolist()
    return [data[a:b] for a, b in pairwise([0, *ends])]
