"""Programs that could deadlock, race, or write an output twice or not at all are refused."""

from collections.abc import Callable

import numpy as np
import pytest

from ofa_tui import abi
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from tests.program.changes import (
    SMALL,
    Mutants,
    check_mutant,
    count_again,
    decode_reads,
    move,
    named,
    on_task,
    remove,
    remove_uncounted,
    set_field,
    set_wait,
    tile_moved,
)


def joined_twice(programs: ProgramSet, program: TaskProgram) -> None:
    """A second task for the same tile, whose signal everybody waits for."""
    at = named(program, "layers.0.qkv rows 0-")
    program.tasks = np.insert(program.tasks, at, program.tasks[at])
    program.labels.insert(at, "twin")
    count_again(program, program.tasks["signal"][at])


def shift_wait(task: np.void) -> None:
    task["waits"][0]["first"] -= 1


def wait_for_itself(programs: ProgramSet, program: TaskProgram) -> None:
    task = program.tasks[named(program, "layers.0.norm1 rows 0")]
    task["waits"][0]["first"] = task["signal"]


def wait_for_a_successor(programs: ProgramSet, program: TaskProgram) -> None:
    later = program.tasks["signal"][named(program, "layers.0.fc1 rows 0")]
    count = int((program.tasks["signal"] == later).sum())
    program.tasks["waits"][named(program, "layers.0.norm1 rows 0")][0] = (later, count, 1, 0)


def share_a_counter(programs: ProgramSet, program: TaskProgram) -> None:
    """Doom's game 0 counts on the counter of the training step's publish."""
    game = programs.programs["doom"].tasks[0]
    game["signal"] = game["waits"][0]["first"] = program.tasks["signal"][named(program, "publish")]


def read_the_version_being_written(programs: ProgramSet, program: TaskProgram) -> None:
    programs.views.append(View("head", 1))
    program.tasks["operands"][named(program, "head rows 0-")][1] = len(programs.views) - 1


def open_early(programs: ProgramSet, program: TaskProgram) -> None:
    """The step's last task no longer waits for the optimiser, so the next step may begin beside it."""
    waits = program.tasks["waits"]
    waits[named(program, "publish")][0] = waits[named(program, "layers.0.norm1.dx")][0]


def without(fence: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["flags"] &= ~np.uint8(fence)

    return change


def wait_for_a_step(programs: ProgramSet, program: TaskProgram) -> None:
    """The first decoded product waits for the embedding of a training step."""
    counter = program.tasks["signal"][named(program, "embed rows 0")]
    count = int((program.tasks["signal"] == counter).sum())
    decode = programs.programs["decode"]
    decode.tasks["waits"][named(decode, "layers.0.qkv")][0] = (counter, count, 1, 0)


MUTANTS: Mutants = {
    "dropped wait": ("train", on_task("layers.1.fc1 rows 128", set_field("n_waits", 0)), "race",
                     ("layers.1.fc1 rows 128", "layers.1.norm2 rows 128")),
    "dropped wait without data": ("train", on_task("step_begin", set_field("n_waits", 0)), "race",
                                  ("embed", "embed.adamw")),
    "wait for another row block": ("train", on_task("layers.1.fc1 rows 128", shift_wait), "race",
                                   ("layers.1.fc1 rows 128", "layers.1.norm2 rows 128")),
    "too small a count": ("train", on_task("layers.0.norm2 rows 0", set_wait("count", 0)), "join",
                          ("layers.0.norm2 rows 0", "layers.0.proj rows 0")),
    "too large a count": ("train", on_task("layers.0.norm2 rows 0", set_wait("count", 9)), "join",
                          ("layers.0.norm2 rows 0", "layers.0.proj rows 0")),
    "one row block fewer": ("train", on_task("head.dw", set_wait("n", 2)), "race", ("head.dw rows 0", "norm rows 256")),
    "wait of the iteration before": ("train", on_task("layers.0.norm2 rows 0", set_wait("lag", 1)), "race",
                                     ("layers.0.norm2 rows 0", "layers.0.proj rows 0")),
    "wait far back": ("train", on_task("embed rows 0", set_wait("lag", 2)), "wait", ("embed rows 0",)),
    "counter nobody signals": ("train", on_task("publish", set_field("signal", abi.NONE_U32)), "wait",
                               ("step_begin", "publish")),
    "counter out of range": ("train", on_task("loss", set_field("signal", 60_000)), "counter", ("loss",)),
    "wait out of range": ("train", on_task("loss", set_wait("first", 60_000)), "counter", ("loss",)),
    "waits for itself": ("train", wait_for_itself, "deadlock", ("layers.0.norm1 rows 0",)),
    "cycle": ("train", wait_for_a_successor, "deadlock", ("layers.0.norm1 rows 0", "layers.0.fc1 rows 0")),
    "missing tile": ("train", lambda s, p: remove(p, named(p, "layers.0.qkv rows 0-")), "join",
                     ("layers.0.qkv rows 0",)),
    "missing tile, counts adapted": ("train", lambda s, p: remove_uncounted(p, named(p, "layers.0.qkv rows 0-")),
                                     "gap", ("layers.0.qkv.y rows 0", "layers.0.qkv rows")),
    "tile written twice": ("train", joined_twice, "overlap", ("twin", "layers.0.qkv rows 0-127 columns 0")),
    "tile one row late": ("train", tile_moved(0, 1, "layers.1.fc1.dw rows 32"), "overlap",
                          ("layers.1.fc1.dw rows 32", "layers.1.fc1.dw rows 64")),
    "tile one column short": ("train", tile_moved(3, -1, "layers.0.qkv rows 0-"), "gap",
                              ("layers.0.qkv.y", "layers.0.qkv")),
    "tile one column late": ("train", tile_moved(2, 1, "layers.0.qkv rows 0-"), "overlap",
                             ("layers.0.qkv rows 0-127 columns 64",)),
    "claimed too early": ("train", lambda s, p: move(p, named(p, "layers.0.proj rows 0"), 3), "deadlock",
                          ("layers.0.proj rows 0", "layers.0.attention rows 64")),
    "counter of two programs": ("train", share_a_counter, "counter", ("publish", "doom", "train")),
    "decode reads an activation": ("train", decode_reads("layers.0.in", 0), "unwritten",
                                   ("token_begin", "layers.0.in")),
    "reads the version being written": ("train", read_the_version_being_written, "race",
                                        ("head rows 0", "head.adamw rows")),
    "step opens too early": ("train", open_early, "race", ("iteration",)),
    "wait for another queue": ("train", wait_for_a_step, "wait", ("decode", "layers.0.qkv", "queue of train")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_out_of_order_is_refused_by_name(name):
    check_mutant(SMALL, *MUTANTS[name])
