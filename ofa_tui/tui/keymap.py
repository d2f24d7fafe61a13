"""Keys: how people write them, how Textual does, and the action table with a person's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from ofa_tui.errors import OfaError
from ofa_tui.installation import command
from ofa_tui.tui import manual
from ofa_tui.tui.actions import ACTIONS, Action

Keymap = Mapping[str, tuple[str, ...]]
"""Action name → its keys."""

_NAMES = {
    " ": "space", "[": "left_square_bracket", "]": "right_square_bracket", "{": "left_curly_bracket",
    "}": "right_curly_bracket", "/": "slash", "?": "question_mark", ":": "colon", ",": "comma", ".": "full_stop",
    ";": "semicolon", "+": "plus", "-": "minus", "=": "equals_sign", "*": "asterisk", "!": "exclamation_mark",
    "#": "number_sign", "<": "less_than_sign", ">": "greater_than_sign", "(": "left_parenthesis",
    ")": "right_parenthesis", "'": "apostrophe", '"': "quotation_mark", "\\": "backslash", "`": "grave_accent",
    "~": "tilde", "^": "circumflex_accent", "_": "underscore", "|": "vertical_line", "&": "ampersand",
    "@": "at", "$": "dollar_sign", "%": "percent_sign",
}  # fmt: skip

_MOVES = "home|end|pageup|pagedown|left|right|up|down"
_NAMED = (
    rf"space|tab|enter|escape|backspace|delete|insert|{_MOVES}|f[1-9]|f1[0-2]|shift\+tab|(shift|ctrl)\+({_MOVES})"
    r"|ctrl\+[a-gk-ln-z]|alt\+[a-z0-9]"
)
"""Keys of more than one character that plain terminals send; ctrl+h, i, j and m reach us as other keys."""


def textual_key(key: str) -> str:
    """Textual's name of a key written as people write it."""
    return _NAMES.get(key, key)


def is_key(text: str) -> bool:
    """Whether a terminal sends such a key: one character, a key with a name, or a letter with ctrl or alt."""
    if len(text) == 1:
        return text.isalnum() or (text in _NAMES and text != " ")
    return re.fullmatch(_NAMED, text) is not None


def parse_keymap(table: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """The keys of a TOML table: `name = "key"`, `name = ["key", ...]`, `name = []`. Raises OfaError for all else."""
    known = [action.name for action in ACTIONS]
    keymap: dict[str, tuple[str, ...]] = {}
    for name, keys in table.items():
        if name not in known:
            near = "".join(f"did you mean {other}? " for other in get_close_matches(name, known, 1))
            raise OfaError(f"there is no action {name!r}; {near}{command()} keys lists all of them")
        listed = [keys] if isinstance(keys, str) else keys
        if not isinstance(listed, list) or not all(isinstance(key, str) for key in listed):
            raise OfaError(f'{name} takes a key or a list of keys, like {name} = "k"')
        for key in listed:
            if not is_key(key):
                raise OfaError(
                    f"{name} cannot have the key {key!r}; write one character, or a name like space, tab, f5, ctrl+k"
                )
        keymap[name] = tuple(dict.fromkeys(listed))
    return keymap


def apply_keymap(keymap: Keymap) -> tuple[Action, ...]:
    """The table with a person's own keys. Raises OfaError where a key could not do what it says."""
    changed = [action for action in ACTIONS if keymap.get(action.name, action.keys) != action.keys]
    families = {action.family for action in changed}
    actions = tuple(
        replace(
            action,
            keys=keymap.get(action.name, action.keys),
            footer_keys="" if action.family in families else action.footer_keys,
        )
        for action in ACTIONS
    )
    owner: dict[str, str] = {}
    for action in actions:
        for key in action.keys:
            if key in owner:
                raise OfaError(f"{key!r} is both {owner[key]} and {action.name}; give one of them another key")
            _check_place(action, key)
            owner[key] = action.name
    if not {"quit", "quit_now"} & set(owner.values()):
        raise OfaError("neither quit nor quit_now has a key; give one of them one")
    return actions


def _check_place(action: Action, key: str) -> None:
    """Some actions are heard while other keys mean something else."""
    if action.playing and textual_key(key) in (*manual.KEYS, manual.LATCH_KEY, "escape"):
        raise OfaError(f"{action.name} works while a person plays, and {key!r} is a control then; choose another key")
    if action.name == "quit_now" and not re.match(r"(ctrl|alt)\+|f\d", key):
        raise OfaError(f"quit_now is heard while a prompt is written; give it a key like ctrl+c, not {key!r}")
