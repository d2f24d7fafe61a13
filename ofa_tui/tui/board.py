"""The widget that places panes by ofa_tui.tui.layout, and the Textual layout it uses for that."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget

from ofa_tui.tui.layout import Box

Boxes = Callable[[int, int], dict[str, Box]]


class BoxLayout(Layout):
    """Places each child at the box that has its id; children without a box do not show."""

    name = "boxes"

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> list[WidgetPlacement]:
        boxes = self._boxes(size.width, size.height)
        return [
            WidgetPlacement(Region(*boxes[child.id]), NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child.id in boxes
        ]


class Board(Widget):
    """Holds all panes."""

    def __init__(self, *children: Widget, boxes: Boxes) -> None:
        super().__init__(*children, id="board")
        self._box_layout = BoxLayout(boxes)

    @property
    def layout(self) -> Layout:
        return self._box_layout
