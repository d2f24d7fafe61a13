"""The introduction: a box that goes from pane to pane, says what each shows and which keys belong to it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from ofa_tui.tui.actions import Action
from ofa_tui.tui.colour import to_hex
from ofa_tui.tui.dialogs import Dialog
from ofa_tui.tui.keymap import textual_key
from ofa_tui.tui.layout import Box
from ofa_tui.tui.panes.status import show_key
from ofa_tui.tui.theme import Theme

LEAST_WIDTH = 24
"""Of the text; what a narrower terminal has no room for is cut off."""
WIDTH = 46
"""Cells of the box, six of them border and padding."""


@dataclass(frozen=True)
class Stop:
    pane: str
    explanation: str
    actions: tuple[str, ...]
    of_replay: str = ""
    """The explanation in a replay, where it is another."""


STOPS = (
    Stop("doom", "A live game of Doom. A scripted player plays it, or you do.", ("manual", "hunt", "automap"),
         "The game of Doom that was played in the recorded run."),
    Stop("sms", "What works: the colour of an SM is its role, its brightness how busy it is.",
         ("train_to_serve", "train_to_doom")),
    Stop("loss", "How well the model learns. Line and band are the training loss, diamonds text that it never saw.",
         ("log_y",)),
    Stop("serve", "The model as it is now, writing. v is the version of its weights: one more with every step.",
         ("prompt", "next_stream"),
         "The model as it was then, writing. v is the version of its weights: one more with every step."),
    Stop("player", "Which keys the player holds in this tic, where it is and how it fares.", ("rewind", "forward")),
)  # fmt: skip


def place_beside(pane: Box, width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Top left corner of a box of width x height cells: beside the pane where there is room, else mid-screen."""
    y = max(0, min(pane.y + (pane.height - height) // 2, rows - height))
    x = max(0, min(pane.x + (pane.width - width) // 2, columns - width))
    for left, top in (
        (pane.x + pane.width, y), (pane.x - width, y), (x, pane.y - height), (x, pane.y + pane.height),
    ):  # fmt: skip
        if 0 <= left <= columns - width and 0 <= top <= rows - height:
            return left, top
    return max(0, (columns - width) // 2), max(0, (rows - height) // 2)


class GuideScreen(Dialog):
    """Goes through STOPS; `point(pane)` makes a pane the active one and returns where it is. True where the key of the
    help is pressed."""

    BINDINGS = [  # noqa: RUF012
        Binding("enter,space,right,down", "go(1)", show=False),
        Binding("left,up,backspace", "go(-1)", show=False),
        Binding("q", "close", show=False),
    ]

    def __init__(
        self, actions: Sequence[Action], theme: Theme, point: Callable[[str], Box | None], *, replay: bool = False
    ) -> None:
        super().__init__()
        self._actions = {action.name: action for action in actions}
        self._help_keys = self._actions["help"].keys
        self._theme, self._point, self._replay = theme, point, replay
        self._at = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static()

    def on_mount(self) -> None:
        self._show()

    def on_key(self, event: events.Key) -> None:
        if event.key in map(textual_key, self._help_keys):
            event.stop()
            self.dismiss(True)

    def on_resize(self, _event: events.Resize) -> None:
        self._show()

    def action_go(self, by: int) -> None:
        self._at = max(0, self._at + by)
        if self._at == len(STOPS):
            self.dismiss(None)
        else:
            self._show()

    def _show(self) -> None:
        box = self.query_one(Vertical)
        columns, rows = self.app.size
        width = min(WIDTH, columns)
        text = self._text(max(LEAST_WIDTH, width - 6))
        height = min(rows, len(text.plain.splitlines()) + 4)
        pane = self._point(STOPS[self._at].pane)
        left, top = place_beside(pane or Box(0, 0, columns, rows), width, height, columns, rows)
        box.border_title = f"{self._at + 1} of {len(STOPS)}"
        box.styles.width, box.styles.height, box.styles.offset = width, height, (left, top)
        box.query_one(Static).update(text)

    def _text(self, width: int) -> Text:
        stop, theme = STOPS[self._at], self._theme
        explanation = (self._replay and stop.of_replay) or stop.explanation
        text = Text(textwrap.fill(explanation, width) + "\n\n", to_hex(theme.text))
        for action in (self._actions[name] for name in stop.actions if name in self._actions):
            key = show_key(action.keys[0]) if action.keys else ":"
            text.append(f"{key} ", f"bold {to_hex(theme.key)}")
            explained = textwrap.wrap(action.help, width - len(key) - 1)
            text.append(f"\n{' ' * (len(key) + 1)}".join(explained) + "\n", to_hex(theme.text))
        ways = f"Enter {'ends' if stop is STOPS[-1] else 'goes on'} · Esc leaves"
        ways += "".join(f" · {show_key(key)} all keys" for key in self._help_keys[:1])
        text.append(f"\n{textwrap.fill(ways, width)}", to_hex(theme.muted))
        return text
