"""`ofa-tui program show` prints every stage of every preset."""

import pytest

from ofa_tui.cli import main
from ofa_tui.program.show import STAGES, stage_lines
from tests.program.shapes import small_programs


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_prints(stage, capsys):
    assert main(["program", "show", "--stage", stage, "--program", "decode"]) == 0
    printed = capsys.readouterr().out
    assert "decode" in printed and "None" not in printed


def test_equal_layers_are_drawn_once_and_products_counted():
    lines = list(stage_lines(small_programs(), "model", "train"))
    assert sum("layers 0 to 1, each" in line for line in lines) == 1
    rows, width, vocab = 6 * 64, 48, 160
    head = next(line for line in lines if line.split()[:2] == ["head", "matmul"])
    assert head.endswith(f"{2 * rows * width * vocab / 1e6:.3g} Mflop")


def test_unknown_preset_is_one_sentence(capsys):
    assert main(["program", "show", "--preset", "huge"]) == 2
    assert "unknown preset 'huge'" in capsys.readouterr().err
