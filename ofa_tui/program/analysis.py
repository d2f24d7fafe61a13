"""What a simulated schedule says: where the time of one steady iteration goes, and what bounds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ofa_tui.program.costs import Durations
from ofa_tui.program.joins import Joins
from ofa_tui.program.simulate import NO_TASK, Machine, Schedule

HANDOFF, CLAIMING = "hand-off", "claim"
"""What a critical path holds beside tasks."""

Chain = dict[str, float]
"""Time along a chain of tasks by family, in ns, in the order in which the chain came by them first."""


@dataclass(frozen=True)
class Window:
    """The time of one iteration: from the end of the one before to its own."""

    iteration: int
    begin: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.begin

    def clipped(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """How much of each interval lies in the window; nothing of one that ends before it begins."""
        return np.maximum(np.minimum(end, self.end) - np.maximum(begin, self.begin), 0.0)


def middle_window(schedule: Schedule) -> Window:
    iteration = schedule.iterations // 2
    return Window(iteration, schedule.iteration_end(iteration - 1), schedule.iteration_end(iteration))


@dataclass(frozen=True)
class Usage:
    """Per SM, in ns of a window; the three and idleness sum to its length."""

    busy: np.ndarray
    waiting: np.ndarray
    """Free, with a task whose inputs are not complete."""
    claiming: np.ndarray
    """Free, without a task that has been claimed and loaded."""


def sm_usage(schedule: Schedule, window: Window) -> Usage:
    def by_sm(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.bincount(schedule.block, window.clipped(begin, end), schedule.blocks)

    ready = np.minimum(schedule.could_start, schedule.start)
    return Usage(by_sm(schedule.start, schedule.end), by_sm(ready, schedule.start), by_sm(schedule.free, ready))


def bins(begin: np.ndarray, end: np.ndarray, window: Window, n_bins: int) -> np.ndarray:
    """How much of the intervals lies in each of `n_bins` equal parts of the window, in ns."""
    edges = np.linspace(window.begin, window.end, n_bins + 1)
    passed = np.array([np.maximum(np.minimum(end, edge) - begin, 0.0).sum() for edge in edges])
    return np.diff(passed)


def schedule_path(schedule: Schedule, window: Window, family: Callable[[int], str]) -> Chain:
    """What made the iteration take as long as it did, from its last task back: the inputs or the block it waited for.

    The parts sum to the window's length.
    """
    first = window.iteration * schedule.tasks
    ticket = first + int(np.argmax(schedule.end[first : first + schedule.tasks]))
    by_input = schedule.ready + schedule.start_ns > schedule.could_start
    found: list[tuple[str, float]] = []

    def spend(name: str, begin: float, end: float) -> None:
        found.append((name, max(min(end, window.end) - max(begin, window.begin), 0.0)))

    while True:
        start = float(schedule.start[ticket])
        spend(family(ticket % schedule.tasks), start, float(schedule.end[ticket]))
        before = int(schedule.cause[ticket] if by_input[ticket] else schedule.before[ticket])
        before_end = float(schedule.end[before]) if before != NO_TASK else 0.0
        spend(HANDOFF if by_input[ticket] else CLAIMING, before_end, start)
        if before_end <= window.begin or before == NO_TASK:
            return _in_order(found)
        ticket = before


def longest_chain(joins: Joins, durations: Durations, machine: Machine, iterations: int, start_ns: float,
                  family: Callable[[int], str]) -> tuple[float, Chain]:
    """The longest chain of dependencies through the middle iteration, and its parts: no number of SMs is faster."""
    solo = solo_ns(durations, machine)
    tasks, n_joins = len(joins.waits), len(joins.producers)
    latency = [machine.message_ns if message else machine.signal_ns for message in joins.messages]
    done_at = [0.0] * (n_joins * iterations)
    done_by = [NO_TASK] * len(done_at)
    ends, causes = [0.0] * (tasks * iterations), [NO_TASK] * (tasks * iterations)
    for ticket in range(len(ends)):
        iteration, task = divmod(ticket, tasks)
        start, cause = 0.0, NO_TASK
        for join, lag in joins.waits[task]:
            place = (iteration - lag) * n_joins + join
            if lag <= iteration and done_by[place] != NO_TASK and done_at[place] + latency[join] + start_ns > start:
                start, cause = done_at[place] + latency[join] + start_ns, done_by[place]
        ends[ticket], causes[ticket] = start + solo[task], cause
        for join in joins.feeds[task]:
            place = iteration * n_joins + join
            if ends[ticket] >= done_at[place]:
                done_at[place], done_by[place] = ends[ticket], ticket
    middle = iterations // 2
    bounds = [max(ends[i * tasks : (i + 1) * tasks], default=0.0) if i >= 0 else 0.0 for i in (middle - 1, middle)]
    ticket = max(range(middle * tasks, (middle + 1) * tasks), key=ends.__getitem__)
    return bounds[1] - bounds[0], _chain_parts(ticket, ends, causes, solo, middle * tasks, family)


def _chain_parts(ticket: int, ends: list[float], causes: list[int], solo: list[float], first: int,
                 family: Callable[[int], str]) -> Chain:
    found = []
    while ticket >= first:
        task, cause = ticket % len(solo), causes[ticket]
        found.append((family(task), solo[task]))
        if cause != NO_TASK:
            found.append((HANDOFF, ends[ticket] - solo[task] - ends[cause]))
        ticket = cause
    return _in_order(found)


def solo_ns(durations: Durations, machine: Machine) -> list[float]:
    """What each task takes when nobody else uses the memory."""
    rate = machine.memory_rates[0] if machine.memory_rates else 1.0
    return [body + moved / rate for body, moved in zip(durations.body_ns, durations.shared_bytes, strict=True)]


def work_bound(durations: Durations, machine: Machine) -> float:
    """All tasks of an iteration, divided evenly among the SMs, in ns."""
    return sum(solo_ns(durations, machine)) / machine.blocks


def memory_bound(durations: Durations, machine: Machine) -> float:
    """All bytes from shared memory at the most that it gives, in ns."""
    fastest = max((n * rate for n, rate in enumerate(machine.memory_rates, 1)), default=0.0)
    return sum(durations.shared_bytes) / fastest if fastest else 0.0


def _in_order(backwards: list[tuple[str, float]]) -> Chain:
    spent: Counter[str] = Counter()
    for name, ns in reversed(backwards):
        spent[name] += ns  # type: ignore[assignment]
    return dict(spent)
