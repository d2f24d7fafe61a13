"""A simulated schedule in print: how long a step takes, what bounds it, and who spends the time."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterator

import numpy as np

from ofa_tui.program.analysis import (
    Chain,
    Window,
    longest_chain,
    memory_bound,
    middle_window,
    schedule_path,
    sm_usage,
    work_bound,
)
from ofa_tui.program.costs import BASES
from ofa_tui.program.draw import sm_lines, time_lines
from ofa_tui.program.scenario import Scenario
from ofa_tui.program.simulate import Schedule

COLUMNS = 72
WIDTH = 110
Scale = Callable[[float], str]


def report_lines(scenario: Scenario, schedule: Schedule) -> Iterator[str]:
    """The middle iteration: its time, its bounds, its SMs, its families."""
    window = middle_window(schedule)
    scale = _scale(window.length)
    yield f"step {scale(window.length)}, iteration {window.iteration + 1} of {schedule.iterations}"
    yield ""
    yield from _bound_lines(scenario, schedule, window, scale)
    yield ""
    yield from _usage_lines(schedule, window)
    yield ""
    yield f"time line of the step, {scale(window.length / COLUMNS)} a column; a full one is all SMs"
    yield from time_lines(schedule, window, scenario.families, COLUMNS)
    yield ""
    yield from _family_lines(scenario, schedule, window, scale)


def _scale(length_ns: float) -> Scale:
    """A formatter of times for an iteration of this length."""
    if length_ns >= 5e5:
        return lambda ns: f"{ns / 1e6:.3f} ms"
    return lambda ns: f"{ns / 1e3:.1f} us"


def _bound_lines(scenario: Scenario, schedule: Schedule, window: Window, scale: Scale) -> Iterator[str]:
    machine, durations, family = scenario.machine, scenario.durations, scenario.families.__getitem__
    unhindered = dataclasses.replace(
        scenario, joins=dataclasses.replace(scenario.joins, waits=[()] * len(scenario.joins.waits)))
    chain_ns, chain = longest_chain(scenario.joins, durations, machine, schedule.iterations, schedule.start_ns, family)
    bounds = {
        "all tasks, divided evenly": work_bound(durations, machine),
        "the same queue without waits": unhindered.run(schedule.iterations).makespan_ns / schedule.iterations,
        "the longest chain of waits": chain_ns,
        "shared memory": memory_bound(durations, machine),
    }
    yield "what bounds it"
    for name, ns in bounds.items():
        yield f"  {name:<30}{scale(ns):>10}{100 * ns / window.length:7.1f} % of the step"
    yield from _chain_lines("the longest chain", chain, scale)
    yield from _chain_lines("back from the last task, what each waited for", schedule_path(schedule, window, family),
                            scale)


def _chain_lines(title: str, chain: Chain, scale: Scale) -> list[str]:
    """The parts that are seen at the scale's precision, longest first."""
    parts = sorted(chain.items(), key=lambda item: -item[1])
    seen = [f"{name} {scale(ns)}" for name, ns in parts if scale(ns) != scale(0)]
    return textwrap.wrap(f"{title}: {', '.join(seen)}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def _usage_lines(schedule: Schedule, window: Window) -> Iterator[str]:
    usage = sm_usage(schedule, window)
    yield f"{'share of the step, by SM':<30}{'least':>9}{'median':>9}{'most':>9}"
    for name, ns in (("busy", usage.busy), ("waiting for inputs", usage.waiting), ("claiming", usage.claiming)):
        figures = (f"{100 * share:8.2f}%" for share in np.quantile(ns / window.length, [0, 0.5, 1]))
        yield f"  {name:<28}{''.join(figures)}"
    yield from sm_lines(usage, window)


def _family_lines(scenario: Scenario, schedule: Schedule, window: Window, scale: Scale) -> Iterator[str]:
    """A row for each family; the time of its tasks and of the waits before them is spread over all SMs."""
    tickets = slice(window.iteration * schedule.tasks, (window.iteration + 1) * schedule.tasks)
    busy = schedule.end[tickets] - schedule.start[tickets]
    could = np.maximum(schedule.could_start, window.begin)
    waited = np.maximum(schedule.start - could, 0.0)[tickets]
    families, bases = np.array(scenario.families), np.array(scenario.bases)
    flops, moved = np.array([work.flops for work in scenario.works]), np.array(scenario.moved)
    yield (f"  {'operation':<20}{'tasks':>7}{'each':>11}{'all / SMs':>12}{'share':>8}{'on all SMs':>15}"
           f"{'waits / SMs':>13}  cost")
    for family in dict.fromkeys(scenario.families):
        members = families == family
        count, total = int(members.sum()), float(busy[members].sum())
        spread, waits = (scale(ns / schedule.blocks) for ns in (total, float(waited[members].sum())))
        share = 100 * total / schedule.blocks / window.length
        rate = _rate(float(flops[members].sum()), float(moved[members].sum()), total / schedule.blocks)
        yield (f"  {family:<20}{count:>7,}{total / count / 1e3:>8.1f} us{spread:>12}{share:>7.1f}%{rate:>15}"
               f"{waits:>13}  {bases[np.argmax(members)]}")
    shares = (f"{basis} {100 * float(busy[bases == basis].sum()) / float(busy.sum()):.0f} %" for basis in BASES)
    yield f"time by where its cost comes from: {', '.join(shares)}"


def _rate(flops: float, moved: float, ns: float) -> str:
    if ns and flops:
        return f"{flops / ns / 1e3:.0f} TFLOP/s" if flops >= 1e3 * ns else f"{flops / ns:.0f} GFLOP/s"
    return f"{moved / ns:.0f} GB/s" if ns and moved else ""
