"""Which tasks of a program are complete before which others start: the partial order that the counters enforce.

A wait is only accepted when its count is the number of all tasks that signal the counter. Then "the counter has
reached its target" means that all of them are complete, and the order of tasks is that of counters: task a precedes
task b if the counter that a signals is among the ancestors of b's waits. Sets of counters are small, so that the exact
relation of a program of a hundred thousand tasks fits in a few megabytes.
"""

from __future__ import annotations

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import ProgramError, task_label
from ofa_tui.program.types import ProgramSet, TaskProgram

MAX_LAG = 1


class Order:
    """The order of one program's tasks, within an iteration and from one to later ones.

    Raises ProgramError for a wait that cannot be met, is no join, or could block for ever.
    """

    def __init__(self, programs: ProgramSet, program: TaskProgram, iterations: int) -> None:
        """Ancestors up to `iterations` iterations back are found."""
        self.program = program
        self._names = programs.counters
        tasks = program.tasks
        n_counters = len(programs.counters)
        signals = tasks["signal"].astype(np.int64)
        self.signal = np.where(signals == abi.NONE_U32, -1, signals)
        signalling = np.flatnonzero(self.signal >= 0)
        self.producers = np.bincount(self.signal[signalling], minlength=n_counters)
        self.last_producer = np.full(n_counters, -1, np.int64)
        self.last_producer[self.signal[signalling]] = signalling
        slots = np.arange(abi.MAX_WAITS)
        waits = np.where((slots < tasks["n_waits"][:, None]), tasks["waits"], np.zeros((), tasks["waits"].dtype))
        keys = np.ascontiguousarray(waits).view(np.uint8).reshape(len(tasks), abi.TASK["waits"].itemsize)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        self.wait_set = inverse.reshape(-1)
        """i8 [n]: tasks with equal waits have equal numbers."""
        self._first_task = first
        self._waits = [[tuple(map(int, wait)) for wait in waits[task][: tasks["n_waits"][task]]] for task in first]
        self.edges = 0
        for number, task in enumerate(first):
            for wait in self._waits[number]:
                self._check_wait(int(task), *wait)
        self._separated: dict[int, bool] = {}
        self._ancestors = self._find_ancestors(iterations)

    def label(self, task: int) -> str:
        return task_label(self.program, task)

    def precedes(self, counters: np.ndarray, wait_sets: np.ndarray, lag: int) -> np.ndarray:
        """Whether tasks that signal `counters` are complete before those with `wait_sets`, `lag` iterations on, start.

        Arrays are broadcast against each other; counter -1 (no signal) precedes nothing.
        """
        byte = self._ancestors[lag][wait_sets, np.maximum(counters, 0) >> 3]
        return ((byte >> (counters & 7)) & 1 == 1) & (counters >= 0)

    def separates(self, lag: int) -> bool:
        """Whether every task of an iteration precedes every task of the one `lag` later: no races are possible then."""
        if lag not in self._separated:
            counters = np.unique(self.signal)
            everywhere = np.bitwise_and.reduce(self._ancestors[lag], axis=0, keepdims=True)
            ordered = (everywhere[0, counters >> 3] >> (counters & 7)) & 1
            self._separated[lag] = bool((counters >= 0).all() and (ordered == 1).all())
        return self._separated[lag]

    def _check_wait(self, task: int, first: int, count: int, n: int, lag: int) -> None:
        label, where = self.label(task), f"{self.program.name}: {self.label(task)}"
        if n < 1 or first + n > len(self._names):
            raise ProgramError("counter", f"{where} waits for counters that do not exist", (label,))
        if lag > MAX_LAG:
            raise ProgramError("wait", f"{where} waits for an iteration {lag} back; only 0 and 1 are known", (label,))
        for counter in range(first, first + n):
            name, producers = self._names[counter], int(self.producers[counter])
            if not producers:
                raise ProgramError("wait", f"{where} waits for counter {name!r}, which no task of this program signals",
                                   (label,))
            last = int(self.last_producer[counter])
            if count != producers:
                raise ProgramError(
                    "join", f"{where} waits for {count} of the {producers} tasks that signal {name!r} (the last is "
                    f"{self.label(last)}); a wait must join them all", (label, self.label(last)))
            if lag == 0 and last >= task:
                self._refuse_backward(task, last)
        self.edges += n

    def _refuse_backward(self, task: int, last: int) -> None:
        label, producer = self.label(task), self.label(last)
        if task == last:
            raise ProgramError("deadlock", f"{self.program.name}: {label} waits for itself", (label,))
        raise ProgramError(
            "deadlock", f"{self.program.name}: {label} waits for {producer}, which is claimed after it: a block that "
            "holds the first and never claims the second waits for ever", (label, producer))

    def _find_ancestors(self, iterations: int) -> list[np.ndarray]:
        """For each lag, u1 [wait sets, counters / 8]: bit c is set where counter c, `lag` iterations back, precedes."""
        signalled_by: list[set[int]] = [set() for _ in self._waits]
        for wait_set, counter in zip(self.wait_set.tolist(), self.signal.tolist(), strict=True):
            if counter >= 0:
                signalled_by[wait_set].add(counter)
        queue = np.argsort(self._first_task, kind="stable")
        of_set: list[dict[int, int]] = []  # per lag: wait set -> bit set of counters
        of_counter: list[dict[int, int]] = []
        for lag in range(iterations + 1):
            of_set.append({})
            of_counter.append({})
            for wait_set in queue:
                bits = 0
                for first, _, n, wait_lag in self._waits[wait_set]:
                    if wait_lag > lag:
                        continue
                    for counter in range(first, first + n):
                        bits |= of_counter[lag - wait_lag].get(counter, 0)
                        if wait_lag == lag:
                            bits |= 1 << counter
                of_set[lag][int(wait_set)] = bits
                for counter in signalled_by[wait_set]:
                    of_counter[lag][counter] = of_counter[lag].get(counter, 0) | bits
        size = len(self._names) // 8 + 1
        packed = (b"".join(sets[i].to_bytes(size, "little") for i in range(len(sets))) for sets in of_set)
        return [np.frombuffer(rows, np.uint8).reshape(-1, size) for rows in packed]

    def check_iterations_apart(self) -> None:
        """No counter mixes two iterations: whoever signals it has all its signals of the iteration before behind it."""
        apart = self.precedes(self.signal, self.wait_set, 1) | (self.signal < 0)
        if not apart.all():
            task = int(np.argmin(apart))
            counter = int(self.signal[task])
            label, other = self.label(task), self.label(int(self.last_producer[counter]))
            raise ProgramError(
                "mixing", f"{self.program.name}: {label} may signal {self._names[counter]!r} for the next iteration "
                f"before {other if other != label else 'it'} has signalled it for this one", (label, other))
