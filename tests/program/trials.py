"""Mutants put to the validator and to the oracle, and the score of each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

from ofa_tui.program.types import ProgramSet
from ofa_tui.program.validate import ProgramError, validate
from tests.program.interpreter import check
from tests.program.memory import Fault
from tests.program.mutants import CLASSES, Mutant, make_mutant
from tests.program.shapes import smallest_programs
from tests.program.truth import Reference

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
    not_shown: list[str] = field(default_factory=list)
    """Refused by the validator though nothing was found."""
    checks: Counter[str] = field(default_factory=Counter)
    """The checks that refused them."""

    @property
    def counts(self) -> bool:
        """Whether so many are wrong that the class means something, if it should."""
        return not CLASSES[self.name].harmful or self.shown >= SHOWN_AT_LEAST * self.made


def try_mutants(name: str, target: str, seeds: Iterable[int], progress: Callable[[], None] = lambda: None) -> Score:
    """The score of the mutants of class `name` that `seeds` stand for."""
    score = Score(name, target)
    programs, reference = subject(target, CLASSES[name].layers)
    for seed in seeds:
        mutant = make_mutant(name, programs, seed)
        refusal, fault = refused(mutant), gone_wrong(mutant, reference, seed)
        score.made += 1
        score.shown += fault is not None
        score.accepted += refusal is None
        if refusal is not None:
            score.checks[refusal.check] += 1
        if refusal is None and fault is not None:
            kind = " (right in any order, but another program)" if right_in_itself(mutant, seed) else ""
            score.wrongly_accepted.append(f"seed {seed}, {mutant.what}: {fault}{kind}")
        if refusal is not None and fault is None:
            score.not_shown.append(f"seed {seed}, {mutant.what}: {refusal}")
        progress()
    return score


@cache
def subject(target: str, layers: int) -> tuple[ProgramSet, Reference]:
    programs = smallest_programs(target, layers)
    return programs, Reference(programs)


def refused(mutant: Mutant) -> ProgramError | None:
    try:
        validate(mutant.programs)
    except ProgramError as error:
        return error
    return None


def right_in_itself(mutant: Mutant, seed: int) -> bool:
    """Whether every interleaving does what the mutant's own tasks do one after the other."""
    try:
        check(mutant.programs, Reference(mutant.programs), seed=seed)
    except Fault:
        return False
    return True


def gone_wrong(mutant: Mutant, reference: Reference, seed: int) -> Fault | None:
    try:
        check(mutant.programs, reference, hurried=mutant.hurried, delayed=mutant.delayed, seed=seed)
    except Fault as fault:
        return fault
    return None
