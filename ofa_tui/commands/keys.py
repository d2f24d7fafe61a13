"""`ofa-tui keys`: the action table with the person's own keys, and a settings file to begin with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from ofa_tui import locations
from ofa_tui.errors import OfaError
from ofa_tui.installation import command
from ofa_tui.record.files import make_folder, write_whole
from ofa_tui.tui.actions import ACTIONS, GROUPS, Action
from ofa_tui.tui.keymap import apply_keymap
from ofa_tui.tui.preferences import file_to_begin_with, read_preferences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true",
                        help=f"write a settings file to begin with: {locations.preferences()}".replace("%", "%%"))


def run(args: argparse.Namespace) -> int:
    path = locations.preferences()
    if args.write:
        if os.path.lexists(path):
            raise OfaError(f"{path} is there already; change it, or move it away first")
        advice = "name another folder with OFA_TUI_CONFIG"
        make_folder(path.parent, advice)
        write_whole(path, file_to_begin_with().encode(), advice)
        print(f"wrote {path}")
        return 0
    try:
        actions = apply_keymap(read_preferences().keys)
    except OfaError:
        print(key_table(ACTIONS), "\nthese are the usual keys", sep="\n", flush=True)
        raise
    print(key_table(actions))
    print(f"\nothers come from {path}" + ("" if path.exists() else f", which {command()} keys --write writes"))
    return 0


def key_table(actions: Sequence[Action]) -> str:
    """Keys, name and help of every action by group; of a key that was changed also the usual one."""
    usual = {action.name: action.keys for action in ACTIONS}
    rows = {action.name: (" ".join(action.keys) or "none", action.name, action.help) for action in actions}
    widest = [max(len(row[column]) for row in rows.values()) for column in range(2)]
    lines = []
    for group in GROUPS:
        lines += ["", group]
        for action in (action for action in actions if action.group == group):
            keys, name, explanation = rows[action.name]
            was = f" (usually {' '.join(usual[name]) or 'none'})" if usual[name] != action.keys else ""
            lines.append(f"  {keys:<{widest[0]}}  {name:<{widest[1]}}  {explanation}{was}")
    return "\n".join(lines[1:])
