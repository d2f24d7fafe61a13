"""Mistakes of every class in small programs of both targets: what the oracle shows wrong, the validator refuses.

`scripts/fuzz_validator.py` does the same with as many as one likes.
"""

import pytest

from tests.program.mutants import CLASSES
from tests.program.trials import try_mutants

TRIALS = [(name, target) for name, known in CLASSES.items() for target in known.targets]
MUTANTS = 1800


@pytest.mark.parametrize(("name", "target"), TRIALS)
def test_no_mutant_that_goes_wrong_is_accepted(name, target):
    score = try_mutants(name, target, range(-(-MUTANTS // len(TRIALS))))
    assert not score.wrongly_accepted
    assert score.counts, f"only {score.shown} of {score.made} mutants go wrong"
