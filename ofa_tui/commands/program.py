"""`ofa-tui program`: what a preset compiles to, in print and simulated."""

from __future__ import annotations

import argparse
import importlib

ACTIONS: dict[str, tuple[str, str]] = {
    "show": ("ofa_tui.program.show", "print a stage of the compilation"),
    "simulate": ("ofa_tui.commands.simulate", "predict how long it takes on a number of SMs, and what bounds it"),
}
"""name → (module with add_arguments(parser) and run(args) -> int, help)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    for name, (module, text) in ACTIONS.items():
        importlib.import_module(module).add_arguments(actions.add_parser(name, help=text, description=text))


def run(args: argparse.Namespace) -> int:
    return importlib.import_module(ACTIONS[args.action][0]).run(args)
