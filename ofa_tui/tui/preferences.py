"""What a person prefers, read from one TOML file: settings by name, and keys in its table [keys]."""

from __future__ import annotations

import ast
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path

from ofa_tui import locations
from ofa_tui.errors import OfaError
from ofa_tui.tui import toml_file
from ofa_tui.tui.actions import ACTIONS, Action
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.keymap import Keymap, apply_keymap, parse_keymap
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.remembered import introduced
from ofa_tui.tui.theme import load_themes

CHOICES = {
    "colours": ("auto", *(depth.value for depth in Depth)),
    "blocks": ("auto", "half", "quarter"),
    "brightness": ("auto", "plain", "bright", "brighter", "brightest"),
    "loss_axis": ("log", "linear"),
}
"""The values of the settings that are a choice, the first one the default."""


@dataclass(frozen=True)
class Preferences:
    """A person's settings; the command line overrides them."""

    theme: str = ""
    """Name of a theme; empty: "contrast" where NO_COLOR is set, else "dark"."""
    colours: str = CHOICES["colours"][0]
    """What the terminal shows: truecolor, 256, 16 or none; auto: what the environment announces."""
    blocks: str = CHOICES["blocks"][0]
    """Whether a cell of the Doom picture is two pixels (half) or four (quarter); auto: what suits the pane's width."""
    brightness: str = CHOICES["brightness"][0]
    """Of the Doom picture, plain to brightest; auto: what suits the colours."""
    loss_axis: str = CHOICES["loss_axis"][0]
    """Whether the loss axis begins as log or linear."""
    reduced_motion: bool = False
    """Repaint text once a second and the picture four times a second."""
    screenshots: str = ""
    """Folder that screenshots and demos go to; empty: the one the program was started in."""
    introduction: bool = True
    """Whether the very first run explains the panes."""
    keys: Keymap = field(default_factory=dict)
    """Keys by action, in place of those of the action table."""

    def options(self) -> UiOptions:
        """What the UI makes of them."""
        brightness = CHOICES["brightness"].index(self.brightness)
        return UiOptions(
            theme=self.theme,
            depth=None if self.colours == "auto" else Depth(self.colours),
            reduced_motion=self.reduced_motion,
            screenshots=Path(os.path.expanduser(self.screenshots)) if self.screenshots else Path.cwd(),
            quadrants=None if self.blocks == "auto" else self.blocks == "quarter",
            gamma_step=brightness - 1 if brightness else None,
            log_loss=self.loss_axis == "log",
            introduce=self.introduction and not introduced(),
            keymap=self.keys,
        )


SETTINGS = {entry.name: type(entry.default) for entry in fields(Preferences) if entry.name != "keys"}
"""Settings by name, and the type of their values."""


def read_preferences() -> Preferences:
    """The person's file, or the defaults where there is none. Raises OfaError that names it and what is wrong in it."""
    path = locations.preferences()
    try:
        return parse_preferences(toml_file.read_text(path))
    except FileNotFoundError:
        return Preferences()
    except ValueError as error:
        raise OfaError(f"{path} cannot be read: {error}; correct or remove it") from None
    except OfaError as error:
        raise OfaError(f"{path}: {error}") from None


def parse_preferences(text: str) -> Preferences:
    """Raises ValueError for what is not TOML, OfaError for names and values that there are not."""
    table = toml_file.parse(text)
    keys = table.pop("keys", {})
    for name, value in table.items():
        _check(name, value)
    if not isinstance(keys, Mapping):
        raise OfaError('keys is a table; write [keys] and below it lines like pause = "z"')
    keymap = parse_keymap(keys)
    apply_keymap(keymap)
    return Preferences(**table, keys=keymap)


def _check(name: str, value: object) -> None:
    if name not in SETTINGS:
        raise OfaError(f"there is no setting {name!r}; choose {', '.join(SETTINGS)}, or the table [keys]")
    if type(value) is not SETTINGS[name]:
        kind = {str: "a text in quotes", bool: "true or false"}[SETTINGS[name]]
        raise OfaError(f"{name} is {value!r}, but takes {kind}")
    if isinstance(value, str) and not value.isprintable():
        raise OfaError(f"{name} is {value!r}, with characters that cannot be printed; leave them out")
    if name == "theme" and value:
        themes = load_themes()
        if value not in themes:
            raise OfaError(f"there is no theme {value!r}; choose {', '.join(themes)}")
    if value not in CHOICES.get(name, (value,)):
        raise OfaError(f"{name} is {value!r}; choose {', '.join(CHOICES[name])}")


def file_to_begin_with() -> str:
    """A settings file that changes nothing: every setting and key with its default, as a comment."""
    explanations = _field_docs(Preferences)
    lines = ["# Remove the # before a line and change its value.", ""]
    lines += [f"# {name} = {_value(getattr(Preferences, name))}  # {explanations[name]}" for name in SETTINGS]
    lines += ["", "[keys]"]
    lines += [f"# {action.name} = {_value(_keys(action))}  # {action.help}" for action in ACTIONS]
    return "\n".join(lines) + "\n"


def _field_docs(kind: type) -> dict[str, str]:
    """The docstring below each field of a class."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef))
    return {
        entry.target.id: " ".join(text.value.value.split())
        for entry, text in pairwise(body)
        if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }  # fmt: skip


def _keys(action: Action) -> str | list[str]:
    return action.keys[0] if len(action.keys) == 1 else list(action.keys)


def _value(value: object) -> str:
    """Of TOML's values those that JSON writes alike."""
    return json.dumps(value, ensure_ascii=False)
