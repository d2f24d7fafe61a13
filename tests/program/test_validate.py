"""Programs as they are compiled are accepted, with a report of what was proved."""


from ofa_tui.program.validate import validate
from tests.program.changes import (
    SM90,
    SMALL,
)


def test_the_unchanged_program_is_accepted():
    assert "train" in validate(SMALL).programs


def test_a_report_says_what_was_proved():
    report = validate(SM90)
    train, decode = report.programs["train"], report.programs["decode"]
    assert train.shared_bytes == 231_424 and not train.messages  # of a tile of 128 x 256, see docs/h200.md
    units, tiles_of_width, tiles_of_inner, tiles_of_vocab = 4, 4, 8, 16
    layer = (units * 2 + tiles_of_width * (units + 1) + tiles_of_inner * tiles_of_width
             + tiles_of_width * (tiles_of_inner + 1))
    assert decode.messages == 2 * layer + units * (1 + tiles_of_width) + tiles_of_vocab * tiles_of_width
    streamed = 2 * (units + 2 * tiles_of_width + tiles_of_inner) + tiles_of_vocab
    assert report.pinned == 1 + streamed
    assert decode.fences == streamed + 2 * units + 2 * units  # before the copies of attention, after those of qkv
    assert any(f"{decode.messages:,} messages" in line for line in report.lines())
