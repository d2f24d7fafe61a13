"""The oracle accepts what the compiler makes, in every schedule, and says what goes wrong in what it refuses."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE
from ofa_tui.program.types import ProgramSet, View
from tests.program.blocks import owned_tasks
from tests.program.editing import copied, insert, remove, reorder, set_operand, set_waits
from tests.program.interpreter import check
from tests.program.memory import Fault
from tests.program.schedules import SCHEDULES
from tests.program.shapes import any_shape, sm90_shape, smallest_programs
from tests.program.trials import subject
from tests.program.truth import Reference


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("target", ["host", "sm90"])
def test_any_interleaving_of_a_compiled_program_is_right(target, schedule):
    for layers in (1, 2):
        original = subject(target, layers)
        programs, reference = original.programs, original.reference
        for seed in range(5):
            check(programs, reference, schedules=[schedule], seed=seed)


@settings(max_examples=10, deadline=None)
@given(any_shape(largest_rows=700), st.integers(0, 999))
def test_any_shape_runs_in_any_interleaving(shape, seed):
    programs = compile_programs(*shape)
    check(programs, Reference(programs, iterations=2), schedules=SCHEDULES[::3], seed=seed)


@settings(max_examples=5, deadline=None)
@given(sm90_shape(largest_rows=200), st.integers(0, 999))
def test_any_shape_runs_in_any_interleaving_for_sm90(shape, seed):
    programs = compile_programs(*shape, target="sm90")
    check(programs, Reference(programs, iterations=2), schedules=SCHEDULES[::5], seed=seed)


def test_sequences_longer_than_a_row_block_are_joined():
    model = ModelConfig(layers=1, width=8, heads=2, feed_forward=16, context=512, vocab=32)
    programs = compile_programs(model, TrainConfig(batch=2, steps=1, learning_rate=1e-3, warmup_steps=0))
    check(programs, Reference(programs, iterations=2))


def at(programs: ProgramSet, name: str, label: str) -> int:
    return next(i for i, found in enumerate(programs.programs[name].labels) if found.startswith(label))


def change(name: str, label: str, field: str, value: object) -> Callable[[ProgramSet], None]:
    def changed(programs: ProgramSet) -> None:
        programs.programs[name].tasks[field][at(programs, name, label)] = value

    return changed


def without(name: str, label: str, fence: int) -> Callable[[ProgramSet], None]:
    def changed(programs: ProgramSet) -> None:
        programs.programs[name].tasks["flags"][at(programs, name, label)] &= 0xFF ^ fence

    return changed


def without_task(programs: ProgramSet) -> None:
    """The counts are those of before."""
    remove(programs, ("train", at(programs, "train", "layers.0.fc1 rows 0")))


def early_sample(programs: ProgramSet) -> None:
    """It waits for one of the head's tasks."""
    sample = programs.programs["decode"].tasks[-1]
    (head, _, _, _), = sample["waits"][:1].tolist()
    set_waits(sample, [(head, 1, 1, 0)])


def late_producer(programs: ProgramSet) -> None:
    tasks = programs.programs["train"].tasks
    first, last = at(programs, "train", "layers.0.proj rows 0"), at(programs, "train", "layers.0.fc1 rows 0")
    order = list(range(len(tasks)))
    order[first], order[last] = last, first
    reorder(programs, "train", order)


def exchanged_attention(programs: ProgramSet) -> None:
    """The units of a head are in each other's lanes, so that a block reads values that another one wrote."""
    tasks, first = programs.programs["decode"].tasks, at(programs, "decode", "layers.0.attention head 0 part 0")
    tasks["tile"][[first, first + 1]] = tasks["tile"][[first + 1, first]]


def twin(name: str, label: str) -> Callable[[ProgramSet], None]:
    def changed(programs: ProgramSet) -> None:
        index = at(programs, name, label)
        task = programs.programs[name].tasks[index].copy()
        task["signal"] = abi.NONE_U32
        insert(programs, (name, index + 1), task, "twin")

    return changed


def other_message(programs: ProgramSet) -> None:
    """The input of the second half of a layer is taken for that of the first."""
    place = ("decode", at(programs, "decode", "layers.0.fc1 rows 0"))
    set_operand(programs, place, 0, View("decode.x", generation=0))


def one_message_fewer(programs: ProgramSet) -> None:
    programs.buffers["decode.x"] = replace(programs.buffers["decode.x"], generations=2)


def one_copy(programs: ProgramSet) -> None:
    programs.buffers["head.stream"] = replace(programs.buffers["head.stream"], copies=1)


FAULTS: dict[str, tuple[Callable[[ProgramSet], None], tuple[str, ...]]] = {
    # what is wrong: (how to make it so, words of what the oracle says)
    "stale input": (change("train", "layers.0.norm2 rows 0", "n_waits", 0),
                    ("layers.0.norm2 rows 0", "reads layers.0.mid", "what was there at first", "layers.0.proj rows 0")),
    "input of the step before": (change("sweep", "layers.0.norm2 rows 0", "n_waits", 0),
                                 ("layers.0.norm2 rows 0", "reads layers.0.mid", "layers.0.proj rows 0")),
    "signal missing": (change("train", "loss", "signal", abi.NONE_U32), ("nobody can go on", "publish", "step.done")),
    "task missing": (without_task, ("nobody can go on", "layers.0.fc1[0]")),
    "claimed too early": (late_producer, ("nobody can go on", "1 blocks")),
    "tile outside": (change("train", "head rows 64", "tile", (100, 64, 0, 256)), ("head rows 64", "rows 100-163")),
    "tile on another": (change("train", "layers.0.norm1 rows 32", "tile", (0, 32, 0, 128)),
                        ("reads layers.0.norm1.y rows 32-63", "what was there at first")),
    "two writers": (twin("sweep", "layers.0.norm1 rows 32"), ("layers.0.norm1.y", "at once")),
    "signals of a later step": (change("train", "publish", "n_waits", 0), ("later iteration",)),
    "bulk read without a fence": (without("train", "layers.0.qkv rows 0", FENCE_BEFORE),
                                  ("layers.0.qkv rows 0", "reads layers.0.norm1.y", "what was there at first")),
    "bulk write without a fence": (without("train", "layers.0.qkv rows 0", FENCE_AFTER),
                                   ("layers.0.attention rows 0", "reads layers.0.qkv.y")),
    "token sampled too early": (early_sample, ("sample of token", "reads decode.")),
    "token begun twice": (twin("decode", "stream_begin"), ("twin of token 0", "begins as number 1")),
    "values that stay with a block": (exchanged_attention, ("v_cache", "of which only messages tell")),
    "lane that nobody looks for": (change("decode", "layers.0.qkv head 1 part 0", "lane", 9), ("lane 9",)),
    "message overwritten": (other_message, ("layers.0.fc1 rows 0",)),
    "message sent twice": (one_message_fewer, ("decode.x",)),
    "one copy": (one_copy, ("head.stream",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name):
    make, words = FAULTS[name]
    original = subject("sm90", 1)
    programs, reference = original.programs, original.reference
    mutant = copied(programs)
    make(mutant)
    with pytest.raises(Fault) as fault:
        check(mutant, reference)
    assert all(word in str(fault.value) for word in words), fault.value
    assert "\n" not in str(fault.value)


def test_owners_find_every_task_once():
    lanes = smallest_programs("sm90").programs["decode"].tasks["lane"].tolist()
    for blocks in range(1, 13):
        found = [task for rank in range(blocks) for task in owned_tasks(lanes, rank, blocks)]
        assert sorted(found) == list(range(len(lanes)))
