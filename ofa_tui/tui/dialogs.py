"""The screens that come on top: help, the quit question, the role of an SM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.command import CommandPalette, DiscoveryHit, Hits
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.system_commands import SystemCommandsProvider
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ofa_tui import abi
from ofa_tui.tui.actions import FAMILIES, GROUPS, Action
from ofa_tui.tui.colour import to_hex
from ofa_tui.tui.keymap import textual_key
from ofa_tui.tui.panes.status import show_key
from ofa_tui.tui.strips import forget_closed_widgets
from ofa_tui.tui.theme import Theme


class Dialog(ModalScreen[object]):
    """A box over the panes; Esc closes it with None."""

    BINDINGS = [Binding("escape", "close", show=False)]  # noqa: RUF012

    def dismiss(self, result: object = None) -> AwaitComplete:
        """Once: a key pressed twice may come when the dialog is gone already."""
        return super().dismiss(result) if self.is_current else AwaitComplete.nothing()

    def action_close(self) -> None:
        self.dismiss(None)

    def on_unmount(self) -> None:
        forget_closed_widgets()


class Commands(SystemCommandsProvider):
    """Shows all commands in the app's order, where Textual sorts them by name."""

    async def discover(self) -> Hits:
        for name, explanation, callback, shown in self.app.get_system_commands(self.screen):
            if shown:
                yield DiscoveryHit(name, callback, help=explanation)


class Palette(CommandPalette):
    """Textual's command palette."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Once, as a Dialog."""
        return super().dismiss(result) if self.is_current else AwaitComplete.nothing()

    def _action_command_list(self, action: str) -> None:
        """Pages through the list, which in a terminal of a few cells has entries, but no lines yet to go to."""
        with contextlib.suppress(KeyError):
            super()._action_command_list(action)

    def on_unmount(self) -> None:
        forget_closed_widgets()


class HelpScreen(Dialog):
    """All keys, from the action table. True where the key of the help is pressed again: for the guide."""

    BINDINGS = [Binding("q,enter", "close", show=False)]  # noqa: RUF012

    def __init__(self, actions: Iterable[Action], theme: Theme, notes: Iterable[str]) -> None:
        super().__init__()
        actions = list(actions)
        self._help = _help_text(actions, theme, list(notes))
        self._again = [key for action in actions if action.name == "help" for key in action.keys]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box") as box:
            box.border_title = "keys"
            box.border_subtitle = " · ".join([*(f"{show_key(key)} the panes" for key in self._again[:1]), "Esc closes"])
            yield Static(self._help)

    def on_key(self, event: events.Key) -> None:
        if event.key in map(textual_key, self._again):
            event.stop()
            self.dismiss(True)


def _help_text(actions: list[Action], theme: Theme, notes: list[str]) -> Group:
    """Two columns, so that a long explanation goes on below itself; notes below."""
    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column()
    by_group = {group: _help_lines([a for a in actions if a.group == group and a.keys]) for group in GROUPS}
    widest = max((len(keys) for lines in by_group.values() for keys, _ in lines), default=0)
    for group, lines in by_group.items():
        if not lines:
            continue
        table.add_row(Text(group, f"bold {to_hex(theme.bright)}"))
        for keys, explanation in lines:
            shown = Text(f"  {keys:<{widest}}  ", f"bold {to_hex(theme.key)}")
            table.add_row(shown, Text(explanation, to_hex(theme.text)))
    return Group(table, "", Text("\n".join(notes), to_hex(theme.muted)))


def _help_lines(actions: list[Action]) -> list[tuple[str, str]]:
    """(keys, what they do), one for each family and each action without one."""
    lines: dict[str, tuple[list[str], str]] = {}
    for action in actions:
        keys, _ = lines.setdefault(action.family or action.name, ([], FAMILIES.get(action.family, action.help)))
        keys.extend(show_key(key) for key in action.keys)
    return [(" ".join(keys), explanation) for keys, explanation in lines.values()]


class QuitScreen(Dialog):
    """Asks before an unfinished run is ended: True to quit."""

    BINDINGS = [  # noqa: RUF012
        Binding("y,enter,q", "answer(True)", show=False),
        Binding("n", "answer(False)", show=False),
    ]

    def __init__(self, question: str, theme: Theme) -> None:
        super().__init__()
        key, ink = f"bold {to_hex(theme.key)}", to_hex(theme.text)
        self._text = Text.assemble((question, ink), "\n\n", ("y", key), " quit    ", ("n", key), " go on")

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = "quit"
            yield Static(self._text)

    def action_answer(self, quit_it: bool) -> None:
        self.dismiss(quit_it)


class RoleScreen(Dialog):
    """The roles an SM can get: the index of one."""

    def __init__(self, sm: int, current: int, roles: Iterable[int], theme: Theme) -> None:
        super().__init__()
        self._sm, self._current, self._roles, self._theme = sm, current, list(roles), theme

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = f"role of SM {self._sm}"
            options = OptionList(
                *(
                    Option(Text(f"■ {abi.ROLES[role]}", style=to_hex(self._theme.role_text(role))), id=str(role))
                    for role in self._roles
                )
            )
            if self._current in self._roles:
                options.highlighted = self._roles.index(self._current)
            yield options

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(int(event.option.id or 0))
