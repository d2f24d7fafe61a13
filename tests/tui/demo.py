"""`python tests/tui/demo.py [--sms N] [--no-doom] ...`: the UI over the fake engine, in this terminal."""

from __future__ import annotations

import argparse
import sys

from fake_run import FakeEngine

from ofa_tui.errors import OfaError
from ofa_tui.tui import run_ui
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.options import UiOptions


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sms", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--no-doom", action="store_true")
    parser.add_argument("--depth", choices=[d.value for d in Depth])
    parser.add_argument("--theme", default="")
    parser.add_argument("--from-second", type=float, default=20.0)
    arguments = parser.parse_args()
    engine = FakeEngine(
        arguments.sms, steps=arguments.steps, games=0 if arguments.no_doom else 1, start_at_s=arguments.from_second
    )
    engine.corridor.draw_all()
    depth = Depth(arguments.depth) if arguments.depth else None
    try:
        return run_ui(engine, UiOptions(theme=arguments.theme, depth=depth))
    except OfaError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
