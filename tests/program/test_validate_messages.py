"""Messages that are lost or overwritten, lanes that nobody finds and missing fences are refused."""

from collections.abc import Callable

import numpy as np
import pytest

from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from tests.program.changes import (
    SM90,
    Mutants,
    check_mutant,
    named,
    on_task,
    on_tasks,
    remove,
    set_buffer,
    set_field,
    set_view,
    tile_moved,
)


def without(fence: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["flags"] &= ~np.uint8(fence)

    return change


def one_more_generation(programs: ProgramSet, program: TaskProgram) -> None:
    """Layer 1 waits for a message of decode.x that nobody writes."""
    set_buffer("decode.x", generations=6)(programs, program)
    set_view("layers.1.qkv", 0, View("decode.x", generation=5))(programs, program)


def exchange_units(programs: ProgramSet, program: TaskProgram) -> None:
    """Two units of attention are on each other's lanes, away from the blocks that wrote their values."""
    one, two = (named(program, f"layers.0.attention head 0 part {part}") for part in range(2))
    program.tasks["tile"][[one, two]] = program.tasks["tile"][[two, one]]


def open_beside_the_last_token(programs: ProgramSet, program: TaskProgram) -> None:
    """stream_begin waits for nothing, and the tasks after it for `sample` in its stead."""
    sampled = program.tasks["waits"][0, 0].copy()
    program.tasks["n_waits"][0] = 0
    for task, label in zip(program.tasks, program.labels, strict=True):
        if label.startswith("layers.0.qkv"):
            task["n_waits"], task["waits"][0] = 1, sampled


MUTANTS: Mutants = {
    "message nobody writes": ("decode", one_more_generation, "deadlock",
                              ("layers.1.qkv head 0 part 0", "message 5 of decode.x", "operand x")),
    "message of a later layer": ("decode", set_view("layers.0.qkv head 1", 0, View("decode.x", generation=2)),
                                 "deadlock", ("layers.0.qkv head 1 part 0", "layers.0.fc2")),
    "own message": ("decode", set_view("layers.0.fc2", 2, View("decode.x", generation=2)), "deadlock",
                    ("layers.0.fc2 rows 0-7 columns 0-31", "itself")),
    "message overwritten before it is read": ("decode", set_view("layers.0.fc1", 0, View("decode.x")), "reuse",
                                              ("layers.0.fc1", "layers.0.proj", "message 0 of decode.x")),
    "message overwritten by the next token": ("decode", open_beside_the_last_token, "reuse",
                                              ("layers.1.fc2", "stream_begin", "next iteration")),
    "message nobody reads": ("decode", set_view("head rows", 0, View("decode.x", generation=2)), "unread",
                             ("layers.1.fc2", "message 4 of decode.x")),
    "message written twice": ("decode", tile_moved(2, -32, "layers.1.fc1 rows 0-7 columns 64"), "overlap",
                              ("layers.1.fc1 rows 0-7 columns 32", "layers.1.fc1 rows 0-7 columns 64")),
    "message with a hole": ("decode", lambda s, p: remove(p, named(p, "layers.1.fc1 rows 0-7 columns 64")), "deadlock",
                            ("layers.1.fc2", "message 1 of decode.gelu")),
    "messages that share a tag": ("decode", set_buffer("decode.x", generations=4), "table", ("decode.x", "tag")),
    "generations of a plain buffer": ("decode", set_buffer("decode.logits", generations=2), "table",
                                      ("decode.logits",)),
    "generation of a plain operand": ("decode", set_view("sample", 0, View("decode.logits", generation=1)), "table",
                                      ("decode.logits", "no message")),
    "message that is no packet": ("decode", set_buffer("decode.x", dtype="f4"), "table", ("decode.x", "f4")),
    "token overtakes the last sample": ("decode", on_task("sample", set_field("n_waits", 0)), "race",
                                        ("sample", "head")),
    "unit on another lane": ("decode", exchange_units, "lane", ("layers.0.attention", "layers.0.qkv", "v_cache")),
    "lane nobody finds": ("decode", on_task("head rows 0-7 columns 64", set_field("lane", 5)), "lane",
                          ("head rows 0-7 columns 64",)),
    "blocks without a last task": ("decode", on_tasks("head rows", set_field("lane", 0)), "lane",
                                   ("sample", "head rows")),
}
FENCES: Mutants = {
    "no fence before reading a product": ("train", on_task("layers.1.qkv rows 0", without(FENCE_BEFORE)), "fence",
                                          ("layers.1.qkv rows 0", "layers.1.norm1 rows", "operand x")),
    "no fence after writing a product": ("train", on_task("layers.1.qkv rows 128", without(FENCE_AFTER)), "fence",
                                         ("layers.1.qkv rows 128", "layers.1.attention rows 128", "operand y")),
    "no fence before reading a cache": ("decode", on_task("layers.1.attention", without(FENCE_BEFORE)), "fence",
                                        ("layers.1.attention", "layers.1.qkv", "operand v")),
    "no fence before reading a new version": ("decode", on_task("head rows", without(FENCE_BEFORE)), "fence",
                                              ("head rows", "head.dw rows", "train", "head.stream")),
    "no fence after writing a new version": ("train", on_task("layers.0.fc1.dw", without(FENCE_AFTER)), "fence",
                                             ("layers.0.fc1.dw", "operand")),
    "sweep without a fence": ("sweep", on_task("head rows", without(FENCE_BEFORE)), "fence", ("sweep", "head rows")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_messages_and_lanes_are_refused_by_name(name):
    check_mutant(SM90, *MUTANTS[name])


@pytest.mark.parametrize("name", FENCES)
def test_missing_fences_are_refused_by_name(name):
    check_mutant(SM90, *FENCES[name])
