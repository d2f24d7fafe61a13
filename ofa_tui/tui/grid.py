"""A rectangle of terminal cells as numpy arrays. Panes draw on it; strips.py turns it into terminal bytes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from rich.cells import cell_len

SPACE = 0x20
BOLD = 1


class Grid:
    """`char` u4 [h, w] code points (0 behind a double-width character), `fg`, `bg` u4 0xRRGGBB, `attr` u1 (BOLD)."""

    __slots__ = ("attr", "bg", "char", "fg", "height", "width")

    def __init__(self, width: int, height: int, fg: int, bg: int) -> None:
        self.width, self.height = max(0, width), max(0, height)
        shape = (self.height, self.width)
        self.char = np.full(shape, SPACE, np.uint32)
        self.fg = np.full(shape, fg, np.uint32)
        self.bg = np.full(shape, bg, np.uint32)
        self.attr = np.zeros(shape, np.uint8)

    def text(
        self, x: int, y: int, text: str, fg: int, bg: int | None = None, *, bold: bool = False, limit: int = -1
    ) -> int:
        """Writes `text` from (x, y), clipped to the grid and to `limit` cells. Returns the x after it."""
        if not 0 <= y < self.height or x >= self.width or not text:
            return x
        end = self.width if limit < 0 else min(self.width, x + limit)
        codes = _codes(text)
        whole = len(codes)
        if x < 0:
            codes = codes[-x:]
            x = 0
        codes = codes[: max(0, end - x)]
        stop = x + len(codes)
        if stop == x:
            return x
        row = self.char[y]
        # Half of a wide character, ours or one written before, is shown as a blank.
        cut = len(codes) < whole and cell_len(chr(int(codes[-1]) or SPACE)) == 2
        if row[x] == 0 and x:
            row[x - 1] = SPACE
        if stop < self.width and row[stop] == 0:
            row[stop] = SPACE
        row[x:stop] = codes
        if cut:
            row[stop - 1] = SPACE
        if row[x] == 0:
            row[x] = SPACE
        self.fg[y, x:stop] = fg
        if bg is not None:
            self.bg[y, x:stop] = bg
        self.attr[y, x:stop] = BOLD if bold else 0
        return stop

    def fill(self, x: int, y: int, width: int, height: int, bg: int, fg: int | None = None) -> None:
        """Blanks a rectangle in `bg`."""
        rows, cols = slice(max(0, y), max(0, y + height)), slice(max(0, x), max(0, x + width))
        self.char[rows, cols] = SPACE
        self.bg[rows, cols] = bg
        self.attr[rows, cols] = 0
        if fg is not None:
            self.fg[rows, cols] = fg

    def paste(self, other: Grid, x: int, y: int) -> None:
        """Copies `other` in, clipped."""
        height, width = min(other.height, self.height - y), min(other.width, self.width - x)
        if height <= 0 or width <= 0:
            return
        for name in ("char", "fg", "bg", "attr"):
            getattr(self, name)[y : y + height, x : x + width] = getattr(other, name)[:height, :width]

    def take_rows(self, rows: np.ndarray) -> Grid:
        """A grid of only these rows."""
        taken = Grid(0, 0, 0, 0)
        taken.width, taken.height = self.width, len(rows)
        for name in ("char", "fg", "bg", "attr"):
            setattr(taken, name, getattr(self, name)[rows])
        return taken

    def changed_cells(self, other: Grid) -> np.ndarray:
        """bool [h, w]: cells that look other than in `other`, a grid of the same size. Blanks have no foreground."""
        differs = (self.char != other.char) | (self.bg != other.bg) | (self.attr != other.attr)
        return differs | ((self.fg != other.fg) & (self.char != SPACE))

    def lines(self) -> list[str]:
        """The text alone, for tests and for people."""
        return ["".join(chr(c) for c in row if c) for row in self.char.tolist()]


def text_cells(text: str) -> int:
    """Cells that `Grid.text` takes for `text`.

    A sequence that a joiner (U+200D) or a variation selector makes one sign of counts as its parts: terminals differ in
    whether they join them, and agree on each part alone.
    """
    return len(text) if text.isascii() and text.isprintable() else len(_codes(text))


@lru_cache(maxsize=2048)
def _codes(text: str) -> np.ndarray:
    """Code points, a 0 after each double-width one; control and zero-width characters are left out."""
    if text.isascii() and text.isprintable():
        return np.frombuffer(text.encode("latin-1"), np.uint8).astype(np.uint32)
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), "<u4")
    if _narrow(codes):
        return codes
    kept: list[int] = []
    for character in text:
        width = cell_len(character) if character.isprintable() or character == "\u00a0" else 0
        if width:
            kept.append(ord(character))
            kept.extend([0] * (width - 1))
    return np.array(kept, np.uint32)


def _narrow(codes: np.ndarray) -> bool:
    """Whether all are plainly one cell wide: Latin, or our own arrows, lines, blocks, shapes and braille."""
    latin = (codes >= 0x20) & (codes < 0x300) & ((codes < 0x7F) | (codes > 0x9F)) & (codes != 0xAD)
    drawing = ((codes >= 0x2500) & (codes < 0x25FD)) | ((codes >= 0x2800) & (codes < 0x2900))
    arrows = (codes >= 0x2190) & (codes < 0x2200)
    return bool((latin | drawing | arrows).all())
