"""Compiled programs pass the validator, whatever the shape. That they run right is tested in test_interpreter.py."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.errors import OfaError
from ofa_tui.presets import PRESETS, ModelConfig, TrainConfig
from ofa_tui.program import lowering
from ofa_tui.program.graph import matrix_shapes
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import ADAMW_DECAY, OPCODES, OPS
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.validate import validate
from tests.oracle import reference
from tests.program.shapes import any_shape, sm90_shape, small_programs


@settings(max_examples=25, deadline=None)
@given(any_shape(), st.integers(0, 3))
def test_every_shape_compiles_to_a_program_that_is_proved(shape, games):
    programs = compile_programs(*shape, games=games)
    report = validate(programs)
    model, train = shape
    of_op = {name: Counter(OPS[opcode].name for opcode in program.tasks["opcode"])
             for name, program in programs.programs.items()}
    heads = model.layers * train.batch * model.heads
    assert of_op["train"]["attention"] == of_op["train"]["attention_backward"] == of_op["sweep"]["attention"] == heads
    assert of_op["decode"]["decode_attention"] == model.layers * model.heads
    assert report.programs["doom"].tasks == of_op["doom"]["doom_tic"] == games


@settings(max_examples=25, deadline=None)
@given(sm90_shape(), st.sampled_from(["bf16", "f4"]))
def test_every_shape_compiles_for_sm90_too(shape, storage):
    report = validate(compile_programs(*shape, target="sm90", storage=storage))
    assert all(r.messages == 0 for name, r in report.programs.items() if name != "decode")
    assert 0 < report.programs["train"].shared_bytes <= TARGETS["sm90"].shared_bytes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["tiny", "shakespeare-char", pytest.param("model-s", marks=pytest.mark.slow)])
def test_presets_are_proved(name, target):
    validate(compile_programs(PRESETS[name].model, PRESETS[name].train, target=target))


def test_presets_have_their_parameters():
    for preset in PRESETS.values():
        stored = sum(rows * columns for rows, columns in matrix_shapes(preset.model).values())
        assert stored == preset.model.parameter_count()
        assert preset.name != "model-s" or stored == 162_417_408


def test_parameters_are_those_of_the_reference_and_matrices_decay():
    programs = small_programs()
    shapes = matrix_shapes(programs.model)
    assert shapes == reference.parameter_shapes(programs.model)
    decayed = set()
    for task in programs.programs["train"].tasks:
        if task["opcode"] == OPCODES["adamw"] and task["flags"] & ADAMW_DECAY:
            decayed.add(programs.views[task["operands"][1]].buffer)
    assert decayed == {name for name in shapes if "norm" not in name}


def test_sequences_longer_than_a_row_block_are_joined():
    model = ModelConfig(layers=1, width=8, heads=2, feed_forward=16, context=512, vocab=32)
    programs = compile_programs(model, TrainConfig(batch=2, steps=1, learning_rate=1e-3, warmup_steps=0))
    attention = programs.programs["train"].tasks[programs.programs["train"].tasks["opcode"] == OPCODES["attention"]]
    assert (attention["waits"]["n"][:, 0] == 512 // 128).all()
    validate(programs)


@pytest.mark.parametrize(
    ("change", "word"),
    [({"heads": 5}, "heads"), ({"width": 9, "heads": 3}, "even"), ({"layers": 0}, "layers"), ({"games": 99}, "games"),
     ({"target": "abacus"}, "abacus")],
)
def test_what_cannot_be_compiled_is_said(change, word):
    sizes = {"layers": 1, "width": 16, "heads": 2, "feed_forward": 8, "context": 8, "vocab": 8}
    model = ModelConfig(**{name: change.get(name, size) for name, size in sizes.items()})
    train = TrainConfig(batch=1, steps=1, learning_rate=1e-3, warmup_steps=0)
    options = {name: value for name, value in change.items() if name not in sizes}
    with pytest.raises(OfaError, match=word):
        compile_programs(model, train, **options)


def test_more_operands_than_a_descriptor_can_name_are_refused(monkeypatch):
    needed = len(small_programs().views)
    monkeypatch.setattr(lowering, "MOST_VIEWS", needed)
    small_programs()
    monkeypatch.setattr(lowering, "MOST_VIEWS", needed - 1)
    with pytest.raises(OfaError, match=f"more than {needed - 1} operands"):
        small_programs()
