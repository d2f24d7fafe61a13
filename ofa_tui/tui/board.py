"""The screen that places panes by ofa_tui.tui.layout, and the Textual layout it uses for that."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import Layout, WidgetPlacement
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from ofa_tui.tui.layout import Box

Boxes = Callable[[int, int], dict[str, Box]]


class BoxLayout(Layout):
    """Places each child at the box that has its id; children without a box do not show."""

    name = "boxes"

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> list[WidgetPlacement]:
        boxes = self._boxes(size.width, size.height)
        return [
            WidgetPlacement(Region(*boxes[child.id]), NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child.id in boxes
        ]


class Board(Screen[None], inherit_bindings=False):
    """The screen itself holds the panes: one background less to draw behind every frame."""

    AUTO_FOCUS = ""

    def __init__(self, panes: list[Widget], boxes: Boxes) -> None:
        super().__init__(id="board")
        self._panes = panes
        self._box_layout = BoxLayout(boxes)
        self._background: tuple[object, Strip] | None = None

    @property
    def layout(self) -> Layout:
        return self._box_layout

    def rearrange(self) -> None:
        """Asks for the boxes again."""
        self._clear_arrangement_cache()
        self.refresh(layout=True)

    def compose(self) -> ComposeResult:
        yield from self._panes

    def render_lines(self, crop: Region) -> list[Strip]:
        """One strip for all rows: Textual cuts it at the panes' edges once and remembers."""
        key = (crop.width, self.visual_style)
        if self._background is None or self._background[0] != key:
            style = self.visual_style.rich_style
            self._background = (key, Strip([Segment(" " * crop.width, style)], crop.width))
        return [self._background[1]] * crop.height
