"""A program on N blocks, event by event: who runs which task when, and what each start waited for.

Blocks claim tickets in queue order, or run the tasks of their lane; each works off its claims in order. With a
look-ahead of k a block claims again when the loader of the task it runs has nothing more to load, so that it then holds
k tasks that have not begun: 1 is the rule of the Hopper kernel's products. With 0 it claims when it is free: the rule
of the CPU's kernel. A task begins when its block is free and its inputs, which may be loaded as soon as it is claimed
and they are complete, have arrived.

Tasks that live on shared memory get equal parts of what the memory gives to so many tasks at once.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np

from ofa_tui.errors import OfaError
from ofa_tui.program.costs import Costs, Durations
from ofa_tui.program.joins import Joins

NO_TASK = -1
LONG_AGO = -1e18
CLAIM, BEGIN, END, MEMORY = range(4)


@dataclass(frozen=True)
class Machine:
    """Latencies in ns; `memory_rates[n - 1]` is what each of n tasks that use shared memory gets, in bytes a ns."""

    blocks: int
    look_ahead: int = 1
    signal_ns: float = 0.0
    message_ns: float = 0.0
    start_ns: float = 0.0
    claim_ns: float = 0.0
    memory_rates: tuple[float, ...] = ()


def machine_of(costs: Costs, blocks: int, look_ahead: int) -> Machine:
    handoff = costs.handoff
    rates = tuple(costs.memory.per_task(running) for running in range(1, blocks + 1))
    return Machine(blocks, look_ahead, handoff.signal_ns, handoff.message_ns, handoff.start_ns, handoff.claim_ns, rates)


@dataclass(frozen=True)
class Schedule:
    """What happened, one element a ticket: iteration * tasks + task. Times in ns."""

    tasks: int
    iterations: int
    blocks: int
    start_ns: float
    block: np.ndarray     # i8
    claimed: np.ndarray   # f8: when the task was known to its block
    free: np.ndarray      # f8: when its block was done with the task before
    ready: np.ndarray     # f8: when its inputs were seen to be complete; LONG_AGO without inputs
    start: np.ndarray     # f8
    end: np.ndarray       # f8
    cause: np.ndarray     # i8: ticket that completed the last of its inputs, or NO_TASK
    before: np.ndarray    # i8: ticket its block ran before, or NO_TASK

    @property
    def could_start(self) -> np.ndarray:
        """f8: when the task would have begun had its inputs been there: its block free, the task claimed."""
        return np.maximum(self.free, self.claimed + self.start_ns)

    def iteration_end(self, iteration: int) -> float:
        """When the last task of the iteration and of all before it was done; 0 for the one before the first."""
        return float(self.end[: self.tasks * (iteration + 1)].max(initial=0.0))

    @property
    def makespan_ns(self) -> float:
        return float(self.end.max(initial=0.0))


def simulate(joins: Joins, durations: Durations, machine: Machine, iterations: int,
             lanes: list[int] | None = None) -> Schedule:
    """`iterations` of a program on `machine`; with `lanes` its tasks are owned, else claimed by tickets.

    Raises OfaError if it stops, naming the tasks that would wait for ever.
    """
    if machine.blocks < 1 or machine.look_ahead < 0 or iterations < 1:
        raise OfaError(f"{iterations} iterations on {machine.blocks} SMs with a look-ahead of {machine.look_ahead} "
                       "cannot be simulated; at least one iteration and one SM are needed")
    run = _Run(joins, durations, machine, iterations, lanes)
    run.to_the_end()
    return run.schedule()


class _Claims:
    """Which ticket a block gets next: that of the one queue, or of its lane."""

    def __init__(self, tickets: int, tasks: int, blocks: int, lanes: list[int] | None) -> None:
        self._tickets, self._tasks, self._next = tickets, tasks, 0
        self._own: list[list[int]] | None = None
        if lanes is not None:
            self._own = [[task for task, lane in enumerate(lanes) if lane % blocks == block] for block in range(blocks)]
        self._taken = [0] * blocks

    def take(self, block: int) -> int:
        """NO_TASK when there are no more."""
        if self._own is None:
            ticket, self._next = self._next, self._next + 1
        elif not (own := self._own[block]):
            return NO_TASK
        else:
            iteration, place = divmod(self._taken[block], len(own))
            self._taken[block] += 1
            ticket = iteration * self._tasks + own[place]
        return ticket if ticket < self._tickets else NO_TASK


class _SharedMemory:
    """Tasks that move bytes at equal rates: `position` is how far one that began at the start would have come."""

    def __init__(self, rates: tuple[float, ...]) -> None:
        self._rates = rates
        self._position = self._at = 0.0
        self._goals: list[tuple[float, int]] = []
        self.version = 0

    def join(self, now: float, block: int, n_bytes: float) -> None:
        self._move_to(now)
        heapq.heappush(self._goals, (self._position + n_bytes, block))

    def leave(self, now: float) -> int:
        """The block that is through first, which is now."""
        self._move_to(now)
        goal, block = heapq.heappop(self._goals)
        self._position = goal
        return block

    def next_end(self) -> float | None:
        if not self._goals:
            return None
        return self._at + (self._goals[0][0] - self._position) / self._rate()

    def _move_to(self, now: float) -> None:
        if self._goals:
            self._position += (now - self._at) * self._rate()
        self._at = now
        self.version += 1

    def _rate(self) -> float:
        return self._rates[min(len(self._goals), len(self._rates)) - 1]


class _Run:
    def __init__(self, joins: Joins, durations: Durations, machine: Machine, iterations: int,
                 lanes: list[int] | None) -> None:
        self._tasks, self._blocks, self._iterations = len(joins.waits), machine.blocks, iterations
        self._waits, self._feeds, self._n_joins = joins.waits, joins.feeds, len(joins.producers)
        self._latency = [machine.message_ns if message else machine.signal_ns for message in joins.messages]
        self._durations = durations
        self._look_ahead = machine.look_ahead
        # An owned task is known beforehand, and what it needs apart from its inputs is on its way.
        self._claim_ns = machine.claim_ns if lanes is None else 0.0
        self._start_ns = machine.start_ns if lanes is None else 0.0
        self._claims = _Claims(self._tasks * iterations, self._tasks, machine.blocks, lanes)
        self._memory = _SharedMemory(machine.memory_rates or (1.0,))

        tickets = self._tasks * iterations
        self._block = [0] * tickets
        self._claimed, self._free_at, self._start, self._end = ([0.0] * tickets for _ in range(4))
        self._ready = [LONG_AGO] * tickets
        self._cause, self._before = [NO_TASK] * tickets, [NO_TASK] * tickets
        self._pending = [0] * tickets

        self._left = joins.producers * iterations
        self._done_at = [LONG_AGO] * len(self._left)
        self._done_by = [NO_TASK] * len(self._left)
        self._waiting: dict[int, list[int]] = {}
        self._held: list[deque[int]] = [deque() for _ in range(machine.blocks)]
        self._running = [NO_TASK] * machine.blocks
        self._last = [NO_TASK] * machine.blocks
        self._free = [0.0] * machine.blocks
        self._out_of_tasks = [False] * machine.blocks
        self._events: list[tuple[float, int, int, int]] = []
        self._order = 0

    def to_the_end(self) -> None:
        for block in range(self._blocks):
            self._claim(0.0, block)
        handlers = {CLAIM: self._claim, BEGIN: self._begin, END: self._finish, MEMORY: self._memory_through}
        while self._events:
            now, _, kind, subject = heapq.heappop(self._events)
            handlers[kind](now, subject)
        stuck = [held[0] for held in self._held if held]
        if stuck:
            raise OfaError(f"the program stops: {len(stuck)} SMs hold tasks that wait for ever, the first one is task "
                           f"{min(stuck) % self._tasks} of iteration {min(stuck) // self._tasks}")

    def schedule(self) -> Schedule:
        times = (np.array(times) for times in (self._claimed, self._free_at, self._ready, self._start, self._end))
        claimed, free, ready, start, end = times
        return Schedule(self._tasks, self._iterations, self._blocks, self._start_ns, np.array(self._block, np.int64),
                        claimed, free, ready, start, end, np.array(self._cause, np.int64),
                        np.array(self._before, np.int64))

    def _at(self, time: float, kind: int, subject: int) -> None:
        self._order += 1
        heapq.heappush(self._events, (time, self._order, kind, subject))

    def _claim(self, now: float, block: int) -> None:
        if self._out_of_tasks[block]:
            return
        ticket = self._claims.take(block)
        if ticket == NO_TASK:
            self._out_of_tasks[block] = True
            return
        self._block[ticket] = block
        self._claimed[ticket] = now + self._claim_ns
        self._held[block].append(ticket)
        iteration, task = divmod(ticket, self._tasks)
        pending = 0
        for join, lag in self._waits[task]:
            if lag > iteration:
                continue
            place = (iteration - lag) * self._n_joins + join
            if self._left[place]:
                self._waiting.setdefault(place, []).append(ticket)
                pending += 1
            elif self._done_at[place] + self._latency[join] > self._ready[ticket]:
                self._ready[ticket] = self._done_at[place] + self._latency[join]
                self._cause[ticket] = self._done_by[place]
        self._pending[ticket] = pending
        self._begin_next(block)

    def _begin_next(self, block: int) -> None:
        """Begins the first task that `block` holds if the block is idle and all its inputs are complete."""
        held = self._held[block]
        if self._running[block] != NO_TASK or not held or self._pending[held[0]]:
            return
        ticket = held.popleft()
        self._running[block] = ticket
        self._before[ticket], self._last[block] = self._last[block], ticket
        self._free_at[ticket] = free = self._free[block]
        loaded = max(self._claimed[ticket], self._ready[ticket]) + self._start_ns
        start = max(free, loaded)
        self._start[ticket] = start
        task = ticket % self._tasks
        if self._durations.shared_bytes[task] or len(held) < self._look_ahead - 1:
            self._at(start, BEGIN, block)
        if not self._durations.shared_bytes[task]:
            self._finish_later(start, block, task)

    def _begin(self, now: float, block: int) -> None:
        while len(self._held[block]) < self._look_ahead - 1 and not self._out_of_tasks[block]:
            self._claim(now, block)
        task = self._running[block] % self._tasks
        if self._durations.shared_bytes[task]:
            self._memory.join(now, block, self._durations.shared_bytes[task])
            self._watch_memory()

    def _watch_memory(self) -> None:
        end = self._memory.next_end()
        if end is not None:
            self._at(end, MEMORY, self._memory.version)

    def _memory_through(self, now: float, version: int) -> None:
        """The version tells whether others have joined or left since this moment was foreseen."""
        if version != self._memory.version:
            return
        block = self._memory.leave(now)
        self._finish_later(now, block, self._running[block] % self._tasks)
        self._watch_memory()

    def _finish_later(self, now: float, block: int, task: int) -> None:
        end = now + self._durations.body_ns[task]
        if self._look_ahead:
            self._at(end - self._durations.ahead_ns[task], CLAIM, block)
        self._at(end, END, block)

    def _finish(self, now: float, block: int) -> None:
        ticket = self._running[block]
        self._running[block] = NO_TASK
        self._free[block] = self._end[ticket] = now
        iteration, task = divmod(ticket, self._tasks)
        for join in self._feeds[task]:
            place = iteration * self._n_joins + join
            self._left[place] -= 1
            if not self._left[place]:
                self._complete(now, place, ticket)
        if not self._look_ahead:
            self._claim(now, block)
        self._begin_next(block)

    def _complete(self, now: float, place: int, ticket: int) -> None:
        self._done_at[place], self._done_by[place] = now, ticket
        seen = now + self._latency[place % self._n_joins]
        for waiting in self._waiting.pop(place, ()):
            if seen > self._ready[waiting]:
                self._ready[waiting], self._cause[waiting] = seen, ticket
            self._pending[waiting] -= 1
            self._begin_next(self._block[waiting])
