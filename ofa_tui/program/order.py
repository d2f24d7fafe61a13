"""Which tasks of a program are complete before which others start: the partial order of counters and messages.

A wait is only accepted when its count is the number of all tasks that signal the counter. Then "the counter has
reached its target" means that all of them are complete. A message is complete for whoever has read all of it. So the
order of tasks is one of events, which are counters and tasks that write messages: task a precedes task b if an event of
a is among the ancestors of b. Tasks with equal waits that read the same messages have the same ancestors, and sets of
events are small, so that the exact relation of a program of a hundred thousand tasks fits in a few megabytes.
"""

from __future__ import annotations

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import Accesses, ProgramError, task_label
from ofa_tui.program.messages import find_message_edges
from ofa_tui.program.types import ProgramSet, TaskProgram

MAX_LAG = 1


class Order:
    """The order of one program's tasks, within an iteration and from one to later ones.

    Raises ProgramError for a wait that cannot be met, is no join, or could block for ever.
    """

    def __init__(self, programs: ProgramSet, program: TaskProgram, accesses: Accesses, iterations: int) -> None:
        """Ancestors up to `iterations` iterations back are found."""
        self.program = program
        self._programs = programs
        tasks = program.tasks
        signals = tasks["signal"].astype(np.int64)
        signalling = np.flatnonzero(signals != abi.NONE_U32)
        n_counters = len(programs.counters)
        self._producers = np.bincount(signals[signalling], minlength=n_counters)
        self._last_producer = np.full(n_counters, -1, np.int64)
        self._last_producer[signals[signalling]] = signalling
        self._counters, numbers = np.unique(signals[signalling], return_inverse=True)
        self.signal = np.full(len(tasks), -1, np.int64)
        self.signal[signalling] = numbers
        """Per task the event that is its counter, or -1."""
        messages = find_message_edges(programs, program, accesses)
        self._seen = messages.seen
        self.message = np.full(len(tasks), -1, np.int64)
        self.message[messages.writers] = len(self._counters) + np.arange(len(messages.writers))
        """Per task the event that is its message, or -1."""
        waits, wait_set = self._distinct_waits()
        pairs = wait_set * len(messages.seen) + messages.read_set
        numbers, self._first_task, group = np.unique(pairs, return_index=True, return_inverse=True)
        self.group = group.reshape(-1)
        """i8 [tasks]: tasks with equal waits that read the same messages have equal numbers."""
        self._waits = [waits[number // len(messages.seen)] for number in numbers.tolist()]
        self._read_set = messages.read_set[self._first_task]
        self.edges = 0
        self.messages = sum(len(messages.seen[number]) for number in messages.read_set.tolist())
        for number, task in enumerate(self._first_task.tolist()):
            for wait in self._waits[number]:
                self._check_wait(task, *wait)
            seen = self._seen[self._read_set[number]]
            if seen and seen[-1][0] >= task:
                self._refuse_backward(task, seen[-1][0])
        self._separated: dict[int, bool] = {}
        self._ancestors = self._find_ancestors(iterations, self._seen)
        self._by_counters = self._ancestors[0]
        if self.messages:
            self._by_counters = self._find_ancestors(0, [[] for _ in self._seen])[0]

    def label(self, task: int) -> str:
        return task_label(self.program, task)

    def precedes(self, before: int | np.ndarray, after: int | np.ndarray, lag: int) -> np.ndarray:
        """Whether tasks `before` are complete before tasks `after`, `lag` iterations on, start: bool, broadcast."""
        ancestors, groups = self._ancestors[lag], self.group[after]
        return _known(ancestors, self.signal[before], groups) | _known(ancestors, self.message[before], groups)

    def hands_over(self, before: np.ndarray, after: int) -> np.ndarray:
        """Whether `after`, which tasks `before` precede in the iteration, sees what they have stored: bool [before].

        A counter passes on all that was stored before its signal, a message nothing but itself; and a lane has one
        block, which sees its own stores.
        """
        same_block = np.zeros(len(before), bool)
        if self.program.claims == abi.CLAIM_OWNED:
            same_block = self.program.tasks["lane"][before] == self.program.tasks["lane"][after]
        return same_block | _known(self._by_counters, self.signal[before], self.group[after])

    def separates(self, lag: int) -> bool:
        """Whether every task of an iteration precedes every task of the one `lag` later: no races are possible then."""
        if lag not in self._separated:
            everywhere = np.bitwise_and.reduce(self._ancestors[lag], axis=0)[None]
            known = _known(everywhere, self.signal, 0) | _known(everywhere, self.message, 0)
            self._separated[lag] = bool(known.all())
        return self._separated[lag]

    def check_iterations_apart(self) -> None:
        """No counter mixes two iterations: whoever signals it has all its signals of the iteration before behind it."""
        apart = _known(self._ancestors[1], self.signal, self.group) | (self.signal < 0)
        if not apart.all():
            task = int(np.argmin(apart))
            counter = int(self._counters[self.signal[task]])
            label, other = self.label(task), self.label(int(self._last_producer[counter]))
            raise ProgramError(
                "mixing", f"{self.program.name}: {label} may signal {self._programs.counters[counter]!r} for the next "
                f"iteration before {other if other != label else 'it'} has signalled it for this one", (label, other))

    def _distinct_waits(self) -> tuple[list[list[tuple[int, int, int, int]]], np.ndarray]:
        """Lists of waits that differ, and i8 [tasks]: which of them each task has."""
        tasks = self.program.tasks
        waits = np.where(np.arange(abi.MAX_WAITS) < tasks["n_waits"][:, None], tasks["waits"],
                         np.zeros((), tasks["waits"].dtype))
        keys = np.ascontiguousarray(waits).view(np.dtype((np.void, abi.TASK["waits"].itemsize))).reshape(-1)
        lengths = tasks["n_waits"].astype(np.int64)
        pairs = np.unique(keys, return_inverse=True)[1].reshape(-1) * (abi.MAX_WAITS + 1) + lengths
        _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        lists = [waits[task][: lengths[task]].tolist() for task in first]
        return lists, inverse.reshape(-1)

    def _check_wait(self, task: int, first: int, count: int, n: int, lag: int) -> None:
        label, where = self.label(task), f"{self.program.name}: {self.label(task)}"
        if n < 1 or first + n > len(self._programs.counters):
            raise ProgramError("counter", f"{where} waits for counters that do not exist", (label,))
        if lag > MAX_LAG:
            raise ProgramError("wait", f"{where} waits for an iteration {lag} back; only 0 and 1 are known", (label,))
        for counter in range(first, first + n):
            name, producers = self._programs.counters[counter], int(self._producers[counter])
            if not producers:
                self._refuse_foreign(label, counter)
            last = int(self._last_producer[counter])
            if count != producers:
                raise ProgramError(
                    "join", f"{where} waits for {count} of the {producers} tasks that signal {name!r} (the last is "
                    f"{self.label(last)}); a wait must join them all", (label, self.label(last)))
            if lag == 0 and last >= task:
                self._refuse_backward(task, last)
        self.edges += n

    def _refuse_foreign(self, label: str, counter: int) -> None:
        name = self._programs.counters[counter]
        owners = [other for other, program in self._programs.programs.items()
                  if (program.tasks["signal"] == counter).any()]
        whose = "which no task signals"
        if owners:
            whose = f"which is signalled in the queue of {owners[0]}; a task waits for tasks of its own queue only"
        raise ProgramError("wait", f"{self.program.name}: {label} waits for counter {name!r}, {whose}", (label,))

    def _refuse_backward(self, task: int, last: int) -> None:
        label, producer = self.label(task), self.label(last)
        if task == last:
            raise ProgramError("deadlock", f"{self.program.name}: {label} waits for itself", (label,))
        raise ProgramError(
            "deadlock", f"{self.program.name}: {label} waits for {producer}, which is claimed after it: a block that "
            "holds the first and never claims the second waits for ever", (label, producer))

    def _find_ancestors(self, iterations: int, seen: list[list[tuple[int, bool]]]) -> list[np.ndarray]:
        """For each lag, u1 [groups, events / 8]: bit e is set where event e, `lag` iterations back, precedes.

        `seen`: per read set, the tasks whose packets are waited for, and whether all of them are.
        """
        event = {int(counter): number for number, counter in enumerate(self._counters)}
        signalled_by: list[set[int]] = [set() for _ in self._waits]
        for group, signal in zip(self.group.tolist(), self.signal.tolist(), strict=True):
            if signal >= 0:
                signalled_by[group].add(signal)
        queue = np.argsort(self._first_task, kind="stable").tolist()
        of_group: list[list[int]] = []  # per lag: group -> bit set of events
        # Per lag: counter -> bit set of what precedes any of those that signal it; a wait joins them all.
        of_event: list[list[int]] = []
        for lag in range(iterations + 1):
            of_group.append([0] * len(self._waits))
            of_event.append([0] * len(self._counters))
            for group in queue:
                bits = 0
                for first, _, n, wait_lag in self._waits[group]:
                    for counter in range(first, first + n) if wait_lag <= lag else ():
                        bits |= of_event[lag - wait_lag][event[counter]]
                        if wait_lag == lag:
                            bits |= 1 << event[counter]
                for writer, whole in seen[self._read_set[group]]:
                    if whole:
                        bits |= of_group[lag][self.group[writer]]
                        if lag == 0:
                            bits |= 1 << int(self.message[writer])
                of_group[lag][group] = bits
                for signal in signalled_by[group]:
                    of_event[lag][signal] |= bits
        size = (len(self._counters) + int((self.message >= 0).sum())) // 8 + 1
        packed = (b"".join(bits.to_bytes(size, "little") for bits in groups) for groups in of_group)
        return [np.frombuffer(rows, np.uint8).reshape(-1, size) for rows in packed]


def _known(ancestors: np.ndarray, events: np.ndarray, groups: int | np.ndarray) -> np.ndarray:
    """Whether `events` are among the ancestors u1 [groups, events / 8] of `groups`; event -1 never is."""
    number = np.maximum(events, 0)
    return ((ancestors[groups, number >> 3] >> (number & 7)) & 1 == 1) & (events >= 0)
