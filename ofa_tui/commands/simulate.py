"""`ofa-tui program simulate`: a program on N SMs by the kernel's rules and a table of costs."""

from __future__ import annotations

import argparse
import dataclasses

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.presets import PRESETS, Preset, preset
from ofa_tui.program.costs import DEFAULT_FILES, Costs, load_costs, spread_out
from ofa_tui.program.draw import write_trace
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.report import report_lines
from ofa_tui.program.scenario import make_scenario
from ofa_tui.program.simulate import machine_of
from ofa_tui.program.targets import TARGETS
from ofa_tui.settings import named_path

SM90_SMS = {"train": 96, "sweep": 96, "decode": 28, "doom": 8}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="model-s", help=f"one of {', '.join(PRESETS)} (default: model-s)")
    parser.add_argument("--target", choices=TARGETS, default="sm90", help="what it is compiled for (default: sm90)")
    parser.add_argument("--program", choices=abi.PROGRAMS, default="train", help="default: train")
    parser.add_argument("--sms", type=int, metavar="N", help="SMs that run it (default: the target's usual split)")
    parser.add_argument("--steps", type=int, default=3, metavar="N",
                        help="iterations to simulate; the middle one is reported (default: 3)")
    parser.add_argument("--look-ahead", type=int, default=1, metavar="N",
                        help="tasks an SM claims before it can begin them (default: 1)")
    parser.add_argument("--only", choices=["matrix"], help="drop all tasks but matrix products and bridge their waits")
    parser.add_argument("--ghz", type=float, metavar="GHZ", help="clock (default: by the cost file)")
    parser.add_argument("--spread", type=float, default=0, metavar="PERCENT",
                        help="let each task take up to so much longer or shorter, at random (default: 0)")
    parser.add_argument("--costs", metavar="FILE", help="cost file, or the name of one in assets/costs")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="change costs, such as handoff.signal_ns=900 or 'tasks.matmul*.fixed_clk=2100'")
    parser.add_argument("--trace", type=named_path, metavar="FILE", help="write a trace for Chrome or Perfetto")


def run(args: argparse.Namespace) -> int:
    chosen = preset(args.preset)
    sms = args.sms if args.sms is not None else _usual_sms(chosen, args.target, args.program)
    _check("--sms", sms, 1, abi.MAX_SMS)
    _check("--steps", args.steps, 1, 30)
    _check("--look-ahead", args.look_ahead, 0, 100)
    _check("--spread", args.spread, 0, 100)
    costs = load_costs(args.costs or DEFAULT_FILES[args.target], args.set)
    ghz = args.ghz if args.ghz is not None else _usual_ghz(costs, args.program, sms)
    _check("--ghz", ghz, 0.01, 100)
    programs = compile_programs(chosen.model, chosen.train, target=args.target)
    scenario = make_scenario(programs, args.program, costs, ghz, machine_of(costs, sms, args.look_ahead),
                             products_only=args.only == "matrix")
    if args.spread:
        scenario = dataclasses.replace(scenario, durations=spread_out(scenario.durations, args.spread / 100))
    schedule = scenario.run(args.steps)
    print(f"{args.program} of {args.preset} for {args.target}{', products only' if args.only else ''}: "
          f"{schedule.tasks:,} tasks on {sms} SMs, look-ahead {args.look_ahead}, {ghz:.2f} GHz, costs {costs.name}")
    for line in report_lines(scenario, schedule):
        print(line)
    if args.trace:
        slices = write_trace(args.trace, schedule, scenario.labels, scenario.families)
        print(f"\n{slices:,} slices in {args.trace}; open it at ui.perfetto.dev or chrome://tracing")
    return 0


def _check(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise OfaError(f"{option} {value:g} cannot be; choose {least:g} to {most:g}")


def _usual_sms(chosen: Preset, target: str, program: str) -> int:
    if target == "sm90":
        return SM90_SMS[program]
    train, serve, doom = chosen.sms
    return {"decode": serve, "doom": doom}.get(program, train)


def _usual_ghz(costs: Costs, program: str, sms: int) -> float:
    return costs.clock.decode_ghz if program == "decode" and costs.clock.decode_ghz else costs.clock.at(sms)
