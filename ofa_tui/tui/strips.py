"""The one place that leans on Textual's internals: rows of a Grid as strips that are already terminal bytes.

Textual asks a widget for strips, cuts them where widgets overlap, and calls `render` on what is left. An
`EncodedStrip` answers `render` with bytes made in advance and builds its segments only when someone cuts, filters
or exports it. `supported()` checks what this needs of Textual; where it fails, panes use plain strips.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import StringIO
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual._styles_cache import StylesCache
from textual.app import App
from textual.strip import Strip

from ofa_tui.tui.colour import Depth
from ofa_tui.tui.encode import encode_rows
from ofa_tui.tui.grid import BOLD, Grid


@lru_cache(maxsize=8192)
def _style(fg: int, bg: int, attr: int) -> Style:
    return Style.from_color(
        Color.from_triplet(ColorTriplet(fg >> 16, fg >> 8 & 255, fg & 255)),
        Color.from_triplet(ColorTriplet(bg >> 16, bg >> 8 & 255, bg & 255)),
    ) + Style(bold=bool(attr & BOLD))


def row_segments(grid: Grid, y: int) -> list[Segment]:
    """Row `y` as Rich segments, one per run of equal style."""
    char, fg, bg, attr = grid.char[y], grid.fg[y], grid.bg[y], grid.attr[y]
    if not grid.width:
        return []
    differs = (fg[1:] != fg[:-1]) | (bg[1:] != bg[:-1]) | (attr[1:] != attr[:-1])
    edges = [0, *(np.flatnonzero(differs & (char[1:] != 0)) + 1).tolist(), grid.width]
    codes = char.tolist()
    return [
        Segment("".join(chr(c) for c in codes[a:b] if c), _style(int(fg[a]), int(bg[a]), int(attr[a])))
        for a, b in pairwise(edges)
    ]


class EncodedStrip(Strip):
    """A strip whose bytes are ready; its segments are made on demand from the grid it came from."""

    __slots__ = ("_encoded", "_grid", "_made", "_row")

    def __init__(self, grid: Grid, row: int, encoded: str) -> None:
        self._grid, self._row, self._encoded = grid, row, encoded
        self._made: list[Segment] | None = None
        self._cell_length = grid.width

    def __getattr__(self, name: str) -> Any:
        # Reached only for slots that are not set yet: a frame has many strips and few are ever cut or filtered,
        # so the base class's caches are made when the first of them is wanted.
        if name not in Strip.__slots__:
            raise AttributeError(name)
        super().__init__((), self._grid.width)
        return object.__getattribute__(self, name)

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        cuts = list(cuts)
        return [self] if cuts == [self._grid.width] else super().divide(cuts)

    @property
    def _segments(self) -> list[Segment]:
        if self._made is None:
            self._made = row_segments(self._grid, self._row)
        return self._made

    @_segments.setter
    def _segments(self, value: list[Segment]) -> None:
        """The base class assigns its (empty) list here; ours are made later."""

    def render(self, console: Console) -> str:
        return self._encoded


class CellsUpdate(CompositorUpdate):
    """Cells written straight to where they are on the screen, for when nothing lies above them.

    Textual's own partial update sends whole rows and visits every widget that shares a row with a change; for a
    picture that changes 35 times a second that is half the cost.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, encoded: bytes) -> None:
        """Bytes that begin with moving the cursor, as encode_cells makes them."""
        self._parts.append(encoded)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self._parts))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def render_segments(self, console: Console) -> str:
        return b"".join(self._parts).decode()


def encoded_strips(grid: Grid, depth: Depth) -> list[Strip]:
    """Every row of `grid`, encoded for a terminal of that depth."""
    return [EncodedStrip(grid, y, text) for y, text in enumerate(encode_rows(grid, depth))]


def forget_closed_widgets() -> None:
    """Lets go of what Textual rendered of widgets that are gone; for when a dialog has closed.

    It caches a method of StylesCache by its object, and with it the lines of the last 1,024 widgets: megabytes for
    each dialog over a picture. And of such a picture, which is drawn the slow way there, a kilobyte for each pair of
    colours, of the last 16,384: minutes of a game fill that with what is never seen again.
    """
    for kept in (StylesCache.get_inner_outer, Strip.render_ansi, _style):
        getattr(kept, "cache_clear", lambda: None)()


COLOUR_SYSTEMS: dict[Depth, Literal["truecolor", "256", "standard"]] = {
    Depth.TRUECOLOR: "truecolor",
    Depth.EIGHT_BIT: "256",
    Depth.FOUR_BIT: "standard",
    Depth.NONE: "standard",  # without any, Rich sends no bold and no reverse video either
}


def console_for(depth: Depth) -> Console:
    """A console like Textual's own, which guesses the depth from TERM alone."""
    return Console(
        color_system=COLOUR_SYSTEMS[depth],
        file=StringIO(),
        force_terminal=True,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        safe_box=False,
    )


@lru_cache(maxsize=1)
def supported() -> bool:
    """Whether Textual still works the way this module needs: lazily read segments, `render(console)`, exact cuts."""
    try:
        source = inspect.getsource(ChopsUpdate.render_segments) + inspect.getsource(LayoutUpdate.render_segments)
        display = inspect.getsource(App._display)
        grid = Grid(4, 1, 0xFFFFFF, 0)
        strip: Any = encoded_strips(grid, Depth.TRUECOLOR)[0]
        whole = strip.divide([4])
        cut = strip.divide([2, 4])
        return (
            "strip.render(console)" in source
            and "isinstance(renderable, CompositorUpdate)" in display
            and "renderable.render_segments(console)" in display
            and whole == [strip]
            and [s.cell_length for s in cut] == [2, 2]
            and strip.text == "    "
            and strip.crop(1, 3).cell_length == 2
        )
    except (AttributeError, TypeError, OSError, ValueError):
        return False
