"""The validator against the oracle: what it accepts runs right, and broken programs that go wrong are refused."""

import pytest

from tests.program.interpreter import check
from tests.program.mutants import CLASSES
from tests.program.shapes import smallest_programs
from tests.program.trials import try_mutants

MUTANTS = 1800
CASES = [(name, target) for name, known in CLASSES.items() for target in known.targets]


@pytest.mark.parametrize("target", ["host", "sm90"])
@pytest.mark.parametrize("layers", [1, 2])
def test_unbroken_programs_run_right_in_every_interleaving(target, layers):
    for seed in range(3):
        check(smallest_programs(target, layers), seed=seed)


@pytest.mark.parametrize("name, target", CASES)
def test_no_mutant_that_goes_wrong_is_accepted(name, target):
    score = try_mutants(name, target, range(-(-MUTANTS // len(CASES))))
    assert not score.wrongly_accepted
    assert score.counts, f"the oracle shows only {score.shown} of {score.made} wrong: {score.not_shown}"
