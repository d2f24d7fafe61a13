"""The action table and what is made of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ofa_tui.errors import OfaError
from ofa_tui.tui.actions import ACTIONS, FAMILIES, GROUPS, apply_keymap, read_keymap, textual_key
from ofa_tui.tui.handlers import Handlers


def test_every_action_can_be_done_and_every_handler_is_listed() -> None:
    names = {action.name for action in ACTIONS}
    handlers = {name.removeprefix("do_") for name in dir(Handlers) if name.startswith("do_")}
    assert names == handlers


def test_the_table_is_sound() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))
    assert [k for k in keys if "ctrl" in k] == ["ctrl+c"], "tmux and terminals own the others"
    assert all(a.group in GROUPS and a.help and (not a.family or a.family in FAMILIES) for a in ACTIONS)
    assert all(a.keys for a in ACTIONS if a.label)


def test_textual_knows_the_keys_by_other_names() -> None:
    assert [textual_key(k) for k in ("[", "?", "space", "a", "{")] == [
        "left_square_bracket", "question_mark", "space", "a", "left_curly_bracket",
    ]  # fmt: skip


def test_keymap_file(tmp_path: Path) -> None:
    path = tmp_path / "keymap.toml"
    assert read_keymap(path) == {}
    path.write_text('[keys]\npause = "z"\nquit = ["q", "x"]\nscreenshot = []\n')
    actions = {a.name: a.keys for a in apply_keymap(read_keymap(path))}
    assert actions["pause"] == ("z",) and actions["quit"] == ("q", "x") and actions["screenshot"] == ()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[keys]\npuase = 'p'\n", "puase"),
        ("[keys]\npause = 3\n", "pause"),
        ("[keys\n", "cannot be read"),
        ("[keys]\npause = 'q'\n", "both"),
    ],
)
def test_a_bad_keymap_is_explained(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "keymap.toml"
    path.write_text(text)
    with pytest.raises(OfaError, match=word):
        apply_keymap(read_keymap(path))


def test_the_readme_lists_the_keys_of_the_table() -> None:
    """All but those that its text below the table explains."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| .* \|$", text.split("## Keys")[1].split("\n## ")[0], re.MULTILINE)
    named = [key for row in rows for key in re.findall(r"`(.+?)`", row)]
    listed = {"Tab": "tab"}
    documented = sorted(listed.get(key, key) for key in named) + (["2", "3", "4"] if "`1` … `5`" in rows else [])
    explained = {"left", "right", "up", "down", "enter", "escape", "ctrl+c"}
    assert sorted(documented) == sorted(key for action in ACTIONS for key in action.keys if key not in explained)
