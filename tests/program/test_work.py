"""How much tasks compute."""

import pytest

from ofa_tui.program.graph import is_gain
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.work import program_work
from tests.program.shapes import smallest_programs


@pytest.mark.parametrize("target", TARGETS)
def test_the_three_products_of_a_weight_take_the_same(target):
    """Forward, gradient of the input, gradient of the weight: however they are cut and whatever else their tasks do."""
    programs = smallest_programs(target)
    train, positions = programs.programs["train"], programs.train.batch * programs.model.context
    works = program_work(programs, train)
    for weight in programs.parameters:
        if is_gain(weight) or weight == "embed":
            continue
        rows, columns = programs.buffers[weight].shape
        for product in (weight, f"{weight}.dx", f"{weight}.dw"):
            tasks = [work for work, label in zip(works, train.labels, strict=True) if label.startswith(f"{product} ")]
            assert sum(work.flops for work in tasks) == 2 * positions * rows * columns, product
            assert all(work.product for work in tasks)
