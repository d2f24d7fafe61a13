"""Mutants put to the validator and to the oracle, and the score of each class."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from unittest import mock

from ofa_tui.program import validate as validator
from ofa_tui.program.types import ProgramSet, TaskProgram
from ofa_tui.program.validate import ProgramError, ProvedProgram, check_program, validate
from tests.program.interpreter import check
from tests.program.memory import Fault
from tests.program.mutants import CLASSES, Mutant, make_mutant
from tests.program.schedules import SCHEDULES, Schedule
from tests.program.shapes import smallest_programs
from tests.program.truth import Reference

MEANING = "operation"
"""The check that comes last, and knows only names."""
OBJECTS_BETWEEN_COLLECTIONS = 300_000
SHOWN_AT_LEAST = 0.9
"""Of a class's mutants that the oracle has to show wrong, else the class does not count."""


@dataclass
class Score:
    """What became of the mutants of one class and target."""

    name: str
    target: str
    made: int = 0
    shown: int = 0
    """The oracle found an interleaving in which they go wrong."""
    accepted: int = 0
    wrongly_accepted: list[str] = field(default_factory=list)
    """Accepted by the validator though shown wrong, by wrong order or by another meaning: none is excused."""
    order_not_seen: list[str] = field(default_factory=list)
    """Refused by nothing but the names of its operands, though some interleaving differs from its own tasks one after
    the other: the checks of order must see that by themselves."""
    not_shown: list[str] = field(default_factory=list)
    """Refused by the validator though nothing was found."""
    checks: Counter[str] = field(default_factory=Counter)
    """The checks that refused them."""

    @property
    def counts(self) -> bool:
        """Whether so many are wrong that the class means something, if it should."""
        return not CLASSES[self.name].harmful or self.shown >= SHOWN_AT_LEAST * self.made


@contextmanager
def garbage_collected_rarely() -> Iterator[None]:
    """A run makes so many objects that looking for garbage as often as usual takes a third of all time."""
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@garbage_collected_rarely()
def try_mutants(name: str, target: str, seeds: Iterable[int], progress: Callable[[], None] = lambda: None,
                if_refused: Sequence[Schedule] = SCHEDULES) -> Score:
    """The score of the mutants of class `name` that `seeds` stand for.

    A mutant that the validator accepts is run in every schedule, one that it refuses in those of `if_refused`: there
    the oracle only says whether the class means something, and whether names alone were wrong.
    """
    score = Score(name, target)
    original = subject(target, CLASSES[name].layers)
    for seed in seeds:
        mutant = make_mutant(name, original.programs, seed)
        refusal = refused(mutant, original)
        fault = gone_wrong(mutant, original.reference, seed, if_refused if refusal else SCHEDULES)
        score.made += 1
        score.shown += fault is not None
        score.accepted += refusal is None
        if refusal is not None:
            score.checks[refusal.check] += 1
        if refusal is None and fault is not None:
            kind = " (right in any order, but another program)" if right_in_itself(mutant, seed, SCHEDULES) else ""
            score.wrongly_accepted.append(f"seed {seed}, {mutant.what}: {fault}{kind}")
        if refusal is not None and refusal.check == MEANING and not right_in_itself(mutant, seed, if_refused):
            score.order_not_seen.append(f"seed {seed}, {mutant.what}: {refusal}")
        if refusal is not None and fault is None:
            score.not_shown.append(f"seed {seed}, {mutant.what}: {refusal}")
        progress()
    return score


@dataclass(frozen=True)
class Subject:
    """What mutants are made of, with what need not be worked out again for each."""

    programs: ProgramSet
    reference: Reference
    proved: dict[str, ProvedProgram]


@cache
def subject(target: str, layers: int) -> Subject:
    programs = smallest_programs(target, layers)
    proved = {name: check_program(programs, program) for name, program in programs.programs.items()}
    return Subject(programs, Reference(programs), proved)


def refused(mutant: Mutant, original: Subject) -> ProgramError | None:
    """What `validate` says. Programs that are as in the original have been proved with it."""

    def check(programs: ProgramSet, program: TaskProgram) -> ProvedProgram:
        before = original.programs.programs[program.name]
        unchanged = what_counts(programs, program) == what_counts(original.programs, before)
        return original.proved[program.name] if unchanged else check_program(programs, program)

    with mock.patch.object(validator, "check_program", check):
        try:
            validate(mutant.programs)
        except ProgramError as error:
            return error
    return None


def what_counts(programs: ProgramSet, program: TaskProgram) -> tuple[object, ...]:
    """All that the proof of one program by itself looks at."""
    return (program.tasks.tobytes(), program.claims, programs.views, programs.buffers, len(programs.counters),
            programs.model, programs.train, programs.target, programs.storage, programs.games)


def right_in_itself(mutant: Mutant, seed: int, schedules: Sequence[Schedule]) -> bool:
    """Whether every interleaving does what the mutant's own tasks do one after the other."""
    try:
        check(mutant.programs, Reference(mutant.programs), seed=seed, schedules=schedules)
    except Fault:
        return False
    return True


def gone_wrong(mutant: Mutant, reference: Reference, seed: int, schedules: Sequence[Schedule]) -> Fault | None:
    try:
        check(mutant.programs, reference, schedules=schedules, hurried=mutant.hurried, delayed=mutant.delayed,
              seed=seed)
    except Fault as fault:
        return fault
    return None
