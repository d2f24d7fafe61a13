"""Programs of another model are refused: no operand, flag, operation or game may be another or missing."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ofa_tui import abi
from ofa_tui.program.meaning import check_meaning
from ofa_tui.program.ops import ADAMW_DECAY, OPCODES, OPS
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from ofa_tui.program.validate import ProgramError
from tests.program.changes import (
    SM90,
    SMALL,
    Change,
    Mutants,
    check_mutant,
    named,
    on_task,
    on_tasks,
    remove,
    set_buffer,
    set_field,
    set_view,
)
from tests.program.editing import copied

TARGETS = {"host": SMALL, "sm90": SM90}


def exchange_moments(programs: ProgramSet, program: TaskProgram) -> None:
    set_view("layers.0.fc1.dw", 3, View("layers.0.fc1.v"))(programs, program)
    set_view("layers.0.fc1.dw", 4, View("layers.0.fc1.m"))(programs, program)


def declare(**fields: object) -> Change:
    """The program set says something else of itself."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        for name, value in fields.items():
            setattr(programs, name, value)

    return change


def drop_parameter(programs: ProgramSet, program: TaskProgram) -> None:
    programs.parameters.remove("layers.1.norm2")


def exchange_parameters(programs: ProgramSet, program: TaskProgram) -> None:
    """In the order of first values, which are random numbers."""
    programs.parameters[2:4] = reversed(programs.parameters[2:4])


MUTANTS: Mutants = {
    "loss of something else": ("train", set_view("loss", 0, View("norm.rstd")), "operation",
                               ("train", "operand losses of loss is norm.rstd", "must be losses")),
    "sweep loss of something else": ("sweep", set_view("sweep_loss", 0, View("norm.rstd")), "operation",
                                     ("sweep", "operand losses", "norm.rstd")),
    "gradient of another input": ("train", set_view("layers.0.proj.dw", 1, View("layers.0.norm1.y")), "operation",
                                  ("operand x of layers.0.proj.dw", "must be layers.0.attention")),
    "one tile of another product": ("train", set_view("layers.1.fc1.dx rows 0", 0, View("layers.1.fc1.y")), "operation",
                                    ("layers.1.fc1.dx rows 0", "operand dy", "layers.1.fc1.y.d")),
    "matrix without decay": ("train", on_tasks("layers.1.fc2.adamw", set_field("flags", 0)), "operation",
                             ("layers.1.fc2.adamw", "without weight decay")),
    "loss without gradient": ("train", on_tasks("cross_entropy", set_field("opcode", OPCODES["cross_entropy_loss"])),
                              "operation", ("cross_entropy_loss where the model has a cross_entropy",)),
    "game left out": ("doom", lambda s, p: remove(p, named(p, "game 1")), "game", ("no task plays game 1 of 2",)),
    "game too many": ("doom", declare(games=1), "game", ("game 1 plays game 1", "1 games")),
    "more games than there may be": ("doom", declare(games=abi.MAX_GAMES + 1), "game", ("17 games",)),
    "matrices of another dtype": ("train", declare(storage="i4"), "table", ("i4", "host")),
    "parameter not listed": ("train", drop_parameter, "parameters", ("layers.1.norm2",)),
    "parameter listed twice": ("train", lambda s, p: s.parameters.append("head"), "parameters", ("head", "no more")),
    "parameters in another order": ("train", exchange_parameters, "parameters", ("layers.0.proj", "layers.0.qkv")),
}
SM90_MUTANTS: Mutants = {
    "moments exchanged": ("train", exchange_moments, "operation", ("layers.0.fc1.dw", "layers.0.fc1.v")),
    "one tile without decay": ("train", on_task("layers.0.qkv.dw rows 128", set_field("flags", 0xC0)), "operation",
                               ("layers.0.qkv.dw rows 128", "decay")),
    "one unit of another layer": ("decode", set_view("layers.0.qkv head 1", 2, View("layers.1.qkv.stream")),
                                  "operation", ("layers.0.qkv head 1", "layers.0.qkv.stream", "layers.1.qkv.stream")),
    "matrices of the host's dtype": ("train", declare(storage="f4"), "class", ("bf16", "needs", "f4")),
    "stored in f4 but for one": ("train", set_buffer("layers.0.mid.d", dtype="f4"), "class", ("layers.0.mid.d",)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_another_model_is_refused_by_name(name):
    check_mutant(SMALL, *MUTANTS[name])


@pytest.mark.parametrize("name", SM90_MUTANTS)
def test_another_model_is_refused_for_sm90(name):
    check_mutant(SM90, *SM90_MUTANTS[name])


def operations(programs: ProgramSet) -> Iterator[tuple[str, np.ndarray]]:
    """Program and tasks of every operation."""
    for name, program in programs.programs.items():
        key = np.column_stack([program.tasks["opcode"], program.tasks["operands"]])
        numbers = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1)
        yield from ((name, np.flatnonzero(numbers == number)) for number in range(numbers.max() + 1))


def refused(programs: ProgramSet) -> bool:
    try:
        check_meaning(programs)
    except ProgramError as error:
        assert error.check == "operation" and "\n" not in str(error)
        return True
    return False


@pytest.mark.parametrize("target", TARGETS)
def test_no_operand_of_any_operation_may_be_another(target):
    """In all its tasks, so that nothing else can be wrong with them."""
    programs = TARGETS[target]
    looked_at = 0
    for name, tasks in operations(programs):
        op = OPS[int(programs.programs[name].tasks["opcode"][tasks[0]])]
        for slot in range(len(op.accesses)):
            index = int(programs.programs[name].tasks["operands"][tasks[0], slot])
            for other in others_of_its_kind(programs, index):
                changed = copied(programs)
                changed.programs[name].tasks["operands"][tasks, slot] = other
                assert refused(changed), (programs.programs[name].labels[tasks[0]], slot, programs.views[other])
                looked_at += 1
    assert looked_at > 1000


def others_of_its_kind(programs: ProgramSet, index: int) -> list[int]:
    """Views of buffers that have all but their name in common; of an operand left out, any of its row's shape."""
    if index == abi.NONE_U16:
        return [programs.views.index(View("layers.0.mid.d"))]
    buffer = programs.buffers[programs.views[index].buffer]
    return [other for other, view in enumerate(programs.views)
            if other != index and replace(programs.buffers[view.buffer], name=buffer.name) == buffer]


@pytest.mark.parametrize("target", TARGETS)
def test_every_operation_must_be_there_and_decay_or_not(target):
    programs = TARGETS[target]
    for name, tasks in operations(programs):
        label = programs.programs[name].labels[tasks[0]]
        changed = copied(programs)
        changed.programs[name].tasks = np.delete(changed.programs[name].tasks, tasks)
        assert refused(changed) or name == "doom", label
        changed = copied(programs)
        changed.programs[name].tasks["flags"][tasks] ^= ADAMW_DECAY
        assert refused(changed), label
