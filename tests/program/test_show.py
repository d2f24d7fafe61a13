"""`ofa-tui program show` prints every stage of every preset."""

import pytest

from ofa_tui.cli import main
from ofa_tui.program.accesses import ProgramError
from ofa_tui.program.show import STAGES, stage_lines
from ofa_tui.program.targets import TARGETS
from tests.program.shapes import small_programs


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_prints(stage, target, capsys):
    assert main(["program", "show", "--stage", stage, "--program", "decode", "--target", target]) == 0
    printed = capsys.readouterr().out
    assert "decode" in printed and "None" not in printed


@pytest.mark.parametrize(
    ("stage", "words"),
    [("tasks", ("skip=decode.x#2", "lane 3, fence before copies", "owned")), ("buffers", ("9 messages an iteration",)),
     ("counters", ("message decode.scores#3",)), ("proof", ("messages", "fences", "bytes of shared memory", "pin:"))],
)
def test_what_only_the_gpu_program_has_is_printed(stage, words, capsys):
    assert main(["program", "show", "--stage", stage, "--program", "decode", "--target", "sm90"]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


def test_tasks_are_printed_in_full(capsys):
    """Both tasks of a refusal can be looked at: by label or number, what they touch, and whom they wait for."""
    asked = ["layers.0.proj rows 0-7 columns 32-63", "sample"]
    arguments = [part for task in asked for part in ("--task", task)]
    assert main(["program", "show", "--target", "sm90", "--stage", "task", *arguments]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if not line.startswith(" ")] == [
        f"decode: task {number} of 170, {label}" for number, label in zip((10, 169), asked, strict=True)]
    lines = {line.strip() for line in printed}
    assert {
        "lane 1", "fence before copies",
        "reads skip: message 0 of decode.x rows 0-7 columns 32-63, of 8 x 128 packet (message, rows)",
        "writes y: message 1 of decode.x rows 0-7 columns 32-63, of 8 x 128 packet (message, rows)",
        "reads w: layers.0.proj.stream rows 32-63 columns 0-127, of 128 x 128 bf16 (weight, stream, copied)",
        "polls message 0 of decode.x: stream_begin",
        "signals decode: sample, waited for by stream_begin",
    } <= lines
    rows = "8 tasks from sample_row rows 0-0 columns 0-0 to sample_row rows 7-7 columns 0-0"
    assert f"waits for decode: sample_row at 8: {rows}" in lines
    first = "polls message 0 of decode.attention: layers.0.attention head 0 part 0"
    assert any(line.startswith(first) for line in lines)
    assert main(["program", "show", "--target", "sm90", "--stage", "task", "--program", "decode", "--task", "10"]) == 0
    assert capsys.readouterr().out.splitlines() == printed[: len(printed) - [*reversed(printed)].index(
        "decode: task 169 of 170, sample") - 1]


def test_a_refusal_prints_its_tasks():
    programs = small_programs()
    train = programs.programs["train"]
    train.tasks["n_waits"][train.labels.index("layers.1.fc1 rows 128-255 columns 0-63")] = 0
    lines = []
    with pytest.raises(ProgramError, match=r"fc1 rows 128-255 columns 0-63 reads layers\.1\.norm2\.y rows"):
        for line in stage_lines(programs, "proof", "train"):
            lines.append(line)
    named = [line for line in lines if line.startswith("train: task")]
    assert len(named) == 2 and named[0].endswith("layers.1.fc1 rows 128-255 columns 0-63")
    assert named[1].endswith("layers.1.norm2 rows 128-255 columns 0-47")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--stage", "task"], "--task"), (["--task", "sample"], "--stage task"),
     (["--stage", "task", "--task", "nothing"], "no task is called 'nothing'")],
)
def test_tasks_asked_for_in_the_wrong_way(arguments, words, capsys):
    assert main(["program", "show", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_equal_layers_are_drawn_once_and_products_counted():
    lines = list(stage_lines(small_programs(), "model", "train"))
    assert sum("layers 0 to 1, each" in line for line in lines) == 1
    rows, width, vocab = 6 * 64, 48, 160
    head = next(line for line in lines if line.split()[:2] == ["head", "matmul"])
    assert head.endswith(f"{2 * rows * width * vocab / 1e6:.3g} Mflop")


def test_unknown_preset_is_one_sentence(capsys):
    assert main(["program", "show", "--preset", "huge"]) == 2
    assert "unknown preset 'huge'" in capsys.readouterr().err
