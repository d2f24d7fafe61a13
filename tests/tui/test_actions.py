"""The action table and what is made of it."""

from __future__ import annotations

import re
from pathlib import Path

from ofa_tui.tui.actions import ACTIONS, FAMILIES, GROUPS
from ofa_tui.tui.handlers import Handlers


def test_every_action_can_be_done_and_every_handler_is_listed() -> None:
    names = {action.name for action in ACTIONS}
    handlers = {name.removeprefix("do_") for name in dir(Handlers) if name.startswith("do_")}
    assert names == handlers


def test_the_table_is_sound() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))
    assert [k for k in keys if "ctrl" in k] == ["ctrl+z", "ctrl+c"], "as everywhere; tmux owns the others"
    assert all(a.group in GROUPS and a.help and (not a.family or a.family in FAMILIES) for a in ACTIONS)
    assert all(a.keys for a in ACTIONS if a.label)


def test_the_readme_lists_the_keys_of_the_table() -> None:
    """All but those that its text below the table explains."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| .* \|$", text.split("## Keys")[1].split("\n## ")[0], re.MULTILINE)
    named = [key for row in rows for key in re.findall(r"`(.+?)`", row)]
    listed = {"Tab": "tab"}
    documented = sorted(listed.get(key, key) for key in named) + (["2", "3", "4", "5"] if "`1` … `6`" in rows else [])
    explained = {"left", "right", "up", "down", "enter", "escape", "ctrl+c"}
    assert sorted(documented) == sorted(key for action in ACTIONS for key in action.keys if key not in explained)
