"""Mistakes of every class in small programs of both targets: what the oracle shows wrong, the validator refuses.

`scripts/fuzz_validator.py` does the same with as many as one likes.
"""

import pytest

from tests.program.mutants import CLASSES
from tests.program.schedules import SCHEDULES
from tests.program.trials import try_mutants

TRIALS = [(name, target) for name, known in CLASSES.items() for target in known.targets]
MUTANTS = 1800
FIRST = 6
"""Schedules in which a mutant that is refused is run; the script runs it in all."""
ONCE_ACCEPTED = {
    ("random edits", "host"): (88, 97, 576, 857, 1442),
    ("random edits", "sm90"): (70, 541, 1291),
}
"""Seeds of mutants that the validator did not refuse before it knew the names of operands."""


@pytest.mark.parametrize(("name", "target"), TRIALS)
def test_no_mutant_that_goes_wrong_is_accepted(name, target):
    score = try_mutants(name, target, range(-(-MUTANTS // len(TRIALS))), if_refused=SCHEDULES[:FIRST])
    assert not score.wrongly_accepted
    assert not score.order_not_seen
    assert score.counts, f"only {score.shown} of {score.made} mutants go wrong"


@pytest.mark.parametrize(("name", "target"), ONCE_ACCEPTED)
def test_mutants_that_were_once_accepted_are_refused(name, target):
    seeds = ONCE_ACCEPTED[name, target]
    score = try_mutants(name, target, seeds)
    assert score.shown == len(seeds) and not score.accepted
