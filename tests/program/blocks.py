"""Blocks, and how they come by tasks: by tickets, or as owners (see `cuda/sched/queue.h` and `seats.h`)."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache

from tests.program.memory import CLOCK, Fault, Pattern, Task, Values
from tests.program.schedules import MANY, Schedule

Entry = tuple[Task, int, float]  # task, iteration, place in the queue counted in iterations


class Block:
    __slots__ = ("claimed", "landing", "next_turn", "number", "role")

    def __init__(self, role: Role, number: int) -> None:
        self.role, self.number = role, number
        self.claimed: deque[Move] = deque()
        self.landing: list[tuple[int, int]] = []
        """Cells and their contents that are still on their way."""
        self.next_turn = 0
        """Of owned tasks: the first iteration whose tasks it has not taken."""


class Move:
    """A task of an iteration in a block's hands."""

    __slots__ = ("before", "block", "delayed", "hurried", "iteration", "landing", "opens_token", "overwritten",
                 "pattern", "place", "role", "started", "task", "values", "version", "written")

    pattern: Pattern
    values: Values
    """What it found."""
    before: Values
    """The same without what it overwrites."""

    def __init__(self, task: Task, iteration: int, place: float, block: Block) -> None:
        self.task, self.iteration, self.place, self.block = task, iteration, place, block
        self.role, self.opens_token = block.role.name, task.opens_token
        self.hurried = self.delayed = self.started = self.written = False
        self.version = 0
        self.overwritten: list[tuple[int, int]] = []
        self.landing: list[tuple[int, int]] = []

    def __str__(self) -> str:
        return f"{self.task.label} of {CLOCK[self.task.program]} {self.iteration}"


class Role:
    """A queue whose tasks are taken by ticket."""

    owned = False

    def __init__(self, name: str, turns: Sequence[tuple[str, int]], tasks: dict[str, list[Task]],
                 schedule: Schedule, rng: random.Random) -> None:
        self.name = name
        self.turns: list[list[Entry]] = [
            [(task, iteration, turn + i / len(tasks[program])) for i, task in enumerate(tasks[program])]
            for turn, (program, iteration) in enumerate(turns)]
        self.left = sum(len(turn) for turn in self.turns)
        self._queue = iter([entry for turn in self.turns for entry in turn])
        self._look_ahead = schedule.look_ahead
        self.blocks = [Block(self, number) for number in range(schedule.blocks or self.left)]
        if schedule.blocks != MANY:
            rng.shuffle(self.blocks)

    def claim(self, block: Block) -> list[Move]:
        """As many tasks as the block may hold."""
        taken = []
        while len(block.claimed) <= self._look_ahead and (entry := next(self._queue, None)):
            taken.append(Move(*entry, block))
            block.claimed.append(taken[-1])
        return taken


class OwnedRole(Role):
    """A queue whose tasks have owners. Who owns what changes from one iteration to the next; it is known for an
    iteration once the one before is open."""

    owned = True

    def __init__(self, name: str, turns: Sequence[tuple[str, int]], tasks: dict[str, list[Task]],
                 schedule: Schedule, rng: random.Random, most: int) -> None:
        """`most`: blocks that may take part."""
        super().__init__(name, turns, tasks, schedule, rng)
        lanes = [task.lane for task, _, _ in self.turns[0]]
        seats = min(schedule.blocks or most, most)
        self.blocks = [Block(self, number) for number in range(seats)]
        self._members = [seats if schedule.blocks == MANY else rng.randint(1, seats) for _ in turns]
        self._ranks = [rng.sample(range(seats), seats) for _ in turns]
        """Of every block; members have the lowest."""
        self._owned_by: Callable[[int, int], list[int]] = cache(lambda rank, n: owned_tasks(lanes, rank, n))
        self.opened = 0

    def claim(self, block: Block) -> list[Move]:
        taken = []
        while block.next_turn <= min(self.opened, len(self.turns) - 1):
            turn = block.next_turn
            members, rank = self._members[turn], self._ranks[turn][block.number]
            mine = self._owned_by(rank, members) if rank < members else ()
            taken += [Move(*self.turns[turn][index], block) for index in mine]
            block.next_turn += 1
        block.claimed += taken
        return taken


def owned_tasks(lanes: Sequence[int], rank: int, blocks: int) -> list[int]:
    """The tasks that block `rank` of `blocks` comes by when it looks for the next one again and again. It expects that
    lanes come in runs that count up from 0. Raises Fault."""
    found = []
    start = 0
    while start < len(lanes):
        distance = (rank - lanes[start]) % blocks
        at = min(start + distance, len(lanes) - 1)
        if lanes[at] == lanes[start] + distance:
            found.append(at)
            start = at + 1
            continue
        while at - lanes[at] > start:
            at -= lanes[at] + 1
        if at < lanes[at]:
            raise Fault(f"who looks for the tasks of lane {rank} looks before the queue, because of lane {lanes[at]}")
        start = at + 1
    return found
