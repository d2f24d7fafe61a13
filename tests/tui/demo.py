"""`python tests/tui/demo.py [--sms N] [--no-doom] ...`: the UI over the fake engine, in this terminal."""

from __future__ import annotations

import argparse
import time

from fake_run import FakeEngine

from ofa_tui.cli import guarded
from ofa_tui.commands.watch import live_recorder
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.tui import run_ui
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.options import UiOptions


def fail_later(engine: FakeEngine, how: str) -> None:
    poll = engine.poll
    begin: list[float] = []

    def failing() -> Snapshot:
        begin.append(time.monotonic())
        if begin[-1] - begin[0] > 1.0:
            if how == "crash":
                raise OfaError("invented crash")
            if how == "bug":
                raise ZeroDivisionError("invented bug")
            engine.abort = "invented abort"
        return poll()

    engine.poll = failing  # type: ignore[method-assign]


def let_rest_shortly(engine: FakeEngine) -> None:
    """Lets a pause, and held games, last a second, so that the run goes on whatever keys are pressed."""
    poll = engine.poll
    resting_since: list[float] = []

    def restless() -> Snapshot:
        if not (engine.paused or engine.held):
            resting_since.clear()
        elif not resting_since:
            resting_since.append(time.monotonic())
        elif time.monotonic() - resting_since[0] > 1.0:
            engine.paused = engine.held = False
        return poll()

    engine.poll = restless  # type: ignore[method-assign]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sms", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--no-doom", action="store_true")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--telling", type=int, default=0)
    parser.add_argument("--games", type=int, default=1)
    parser.add_argument("--speed", type=float, default=1.0, help="of the engine's clock")
    parser.add_argument("--recorder", action="store_true", help="let the key r record into this folder")
    parser.add_argument("--depth", choices=[d.value for d in Depth])
    parser.add_argument("--theme", default="")
    parser.add_argument("--from-second", type=float, default=20.0)
    parser.add_argument("--fail", choices=["abort", "crash", "bug"], help="let the engine fail after a second")
    parser.add_argument("--restless", action="store_true", help="go on after a second of pause")
    parser.add_argument("--report-stop", action="store_true", help="print a line when the engine is stopped")
    arguments = parser.parse_args()
    engine = FakeEngine(
        arguments.sms,
        steps=arguments.steps,
        games=0 if arguments.no_doom else arguments.games,
        streams=arguments.streams,
        telling=arguments.telling,
        clock=lambda: time.monotonic() * arguments.speed,
        start_at_s=arguments.from_second,
    )
    if arguments.fail:
        fail_later(engine, arguments.fail)
    if arguments.restless:
        let_rest_shortly(engine)
    if arguments.report_stop:
        engine.on_stop = lambda: print("engine stopped")
    else:
        engine.corridor.draw_all()
    depth = Depth(arguments.depth) if arguments.depth else None
    recorder = live_recorder({}, engine.info) if arguments.recorder else None
    return guarded(lambda: run_ui(engine, UiOptions(theme=arguments.theme, depth=depth, recorder=recorder)))


if __name__ == "__main__":
    raise SystemExit(main())
