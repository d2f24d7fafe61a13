"""Programs whose iterations, versions or games are not in their place are refused."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ofa_tui import abi
from ofa_tui.program.ops import OPCODES
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from tests.program.changes import (
    SM90,
    SMALL,
    Change,
    Mutants,
    check_mutant,
    decode_reads,
    move,
    named,
    on_task,
    remove,
    remove_uncounted,
    set_field,
    set_tile,
    set_view,
)


def two_copies(programs: ProgramSet, program: TaskProgram) -> None:
    """Enough for training alone, but a server may hold the copy that the next step writes."""
    for name in programs.parameters:
        programs.buffers[name] = replace(programs.buffers[name], copies=2)


def add_control(op: str, at: int) -> Change:
    """A task without operands, effects on data or signal: nothing but its opcode can be wrong."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        task = program.tasks[:1].copy()
        task["opcode"], task["tile"], task["operands"] = OPCODES[op], (0, 1, 0, 1), abi.NONE_U16
        task["signal"] = abi.NONE_U32
        program.tasks = np.insert(program.tasks, at, task[0])
        program.labels.insert(at, f"added {op}")

    return change


def swap_opening(programs: ProgramSet, program: TaskProgram) -> None:
    """The sweep opens with a second training step's opening task."""
    programs.programs["sweep"].tasks["opcode"][0] = OPCODES["step_begin"]


def token_overtakes(programs: ProgramSet, program: TaskProgram) -> None:
    """token_begin waits for the readers of its output only, and the next reader for `sample` in its stead."""
    decode = programs.programs["decode"]
    opening, reader = decode.tasks[0], named(decode, "layers.0.qkv")
    last_reader = decode.tasks["signal"][named(decode, "layers.0.proj")]
    sampled = opening["waits"][0].copy()
    opening["waits"][0] = (last_reader, (decode.tasks["signal"] == last_reader).sum(), 1, 1)
    for task in range(reader, len(decode.tasks)):
        if decode.labels[task].startswith("layers.0.qkv"):
            decode.tasks["waits"][task, decode.tasks["n_waits"][task]] = sampled
            decode.tasks["n_waits"][task] += 1


def lone_game(programs: ProgramSet, program: TaskProgram) -> None:
    """Game 1 neither signals nor waits."""
    program.tasks["signal"][1], program.tasks["n_waits"][1] = abi.NONE_U32, 0


def foreign_task(programs: ProgramSet, program: TaskProgram) -> None:
    """A training task's row among the games."""
    train = programs.programs["train"]
    task = train.tasks[named(train, "embed rows 0")].copy()
    task["n_waits"], task["signal"] = 0, abi.NONE_U32
    program.tasks = np.append(program.tasks, task)
    program.labels.append("foreign")


def without(fence: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["flags"] &= ~np.uint8(fence)

    return change


def freeze(programs: ProgramSet, program: TaskProgram) -> None:
    """No task makes the next version of the last gain."""
    remove_uncounted(program, named(program, "norm.adamw"))


def embed_in_decode(opened: bool) -> Change:
    """A task that looks up all embeddings beside the tokens: one after the other, and after the opening task or not."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        decode = programs.programs["decode"]
        task = program.tasks[named(program, "embed rows 0")].copy()
        programs.counters.append("decode: stray")
        task["tile"][1], task["signal"] = SMALL.buffers["layers.0.in"].shape[0], len(programs.counters) - 1
        task["n_waits"] = 1 + opened
        task["waits"][:2] = [(task["signal"], 1, 1, 1), (decode.tasks["signal"][0], 1, 1, 0)]
        decode.tasks = np.insert(decode.tasks, 1, task)
        decode.labels.insert(1, "stray")

    return change


def update_in_sweep(programs: ProgramSet, program: TaskProgram) -> None:
    """A sweep that also trains its last product, once, in order, before it ends."""
    train = programs.programs["train"]
    added = train.tasks[[label.startswith("head.dw") for label in train.labels]].copy()
    logits = program.tasks["signal"][[label.startswith("head rows") for label in program.labels]]
    programs.counters.append("sweep: updates")
    first, n = logits.min(), np.ptp(logits) + 1
    added["signal"], added["n_waits"] = len(programs.counters) - 1, 1
    added["waits"][:, 0] = (first, len(logits) // n, n, 0)
    last = len(program.tasks) - 1
    program.tasks["waits"][last, program.tasks["n_waits"][last]] = (added["signal"][0], len(added), 1, 0)
    program.tasks["n_waits"][last] += 1
    program.tasks = np.insert(program.tasks, last, added)
    program.labels[last:last] = ["stray update"] * len(added)


MUTANTS: Mutants = {
    "decode reads a moment": ("train", decode_reads("embed.m", 0), "sharing", ("decode", "embed.m", "train")),
    "decode reads the next version": ("train", decode_reads("embed", 1), "sharing", ("decode", "embed", "train")),
    "two rotating copies": ("train", two_copies, "sharing", ("decode", "train")),
    "no step_begin": ("train", on_task("step_begin", set_field("opcode", OPCODES["publish"])), "control",
                      ("step_begin",)),
    "no loss": ("train", lambda s, p: remove(p, named(p, "loss")), "control", ("loss", "exactly one")),
    "two publishes": ("train", add_control("publish", -1), "control", ("added publish", "publish", "exactly one")),
    "publish before the end": ("train", lambda s, p: move(p, named(p, "publish"), 9), "control",
                               ("publish", "embed.adamw")),
    "step_begin not first": ("train", lambda s, p: move(p, 0, 1), "control", ("step_begin", "embed rows 0", "first")),
    "sweep_begin in train": ("train", add_control("sweep_begin", 5), "control",
                             ("train", "added sweep_begin", "sweep")),
    "doom_tic in train": ("train", add_control("doom_tic", 5), "control", ("train", "added doom_tic", "doom")),
    "publish in decode": ("decode", add_control("publish", 5), "control", ("decode", "added publish")),
    "step_begin opens a sweep": ("train", swap_opening, "control", ("sweep", "sweep_begin", "step_begin", "train")),
    "no sample": ("decode", lambda s, p: remove(p, len(p.tasks) - 1), "control", ("decode", "sample")),
    "no sweep_loss": ("sweep", lambda s, p: remove(p, len(p.tasks) - 1), "control", ("sweep_loss",)),
    "token begins before the last is sampled": ("train", token_overtakes, "turn", ("token_begin", "sample", "before")),
    "game played twice": ("doom", on_task("game 1", set_tile(0, 0)), "game", ("game 0", "game 1")),
    "game out of range": ("doom", on_task("game 1", set_tile(0, 2)), "game", ("game 1", "game 2")),
    "game beside itself": ("doom", on_task("game 1", set_field("n_waits", 0)), "mixing", ("game 1",)),
    "game without a signal": ("doom", lone_game, "game", ("game 1", "tic before")),
    "task among games": ("doom", foreign_task, "game", ("foreign", "doom_tic")),
    "decode claimed task by task": ("train", lambda s, p: setattr(s.programs["decode"], "claims", abi.CLAIM_TICKETS),
                                    "claims", ("decode", "tickets", "whole")),
    "reads weights before they are pinned": ("train", embed_in_decode(opened=False), "pin",
                                             ("stray", "token_begin", "embed")),
    "reads weights after they are let go": ("train", embed_in_decode(opened=True), "pin", ("stray", "sample", "embed")),
    "weight that is never updated": ("train", freeze, "version", ("norm", "no step writes")),
    "next version two on": ("train", set_view("head.adamw", 2, View("head", 2)), "version",
                            ("head.adamw", "rotation 2")),
    "sweep reads the version being written": ("sweep", set_view("norm rows", 1, View("norm", 1)), "version",
                                              ("norm rows", "rotation 1")),
}
SM90_MUTANTS: Mutants = {
    "token claimed by tickets": ("decode", lambda s, p: setattr(p, "claims", abi.CLAIM_WHOLE), "claims", ("owned",)),
    "sweep that updates weights": ("sweep", update_in_sweep, "version", ("stray update", "only the program train")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_not_in_its_place_is_refused_by_name(name):
    check_mutant(SMALL, *MUTANTS[name])


@pytest.mark.parametrize("name", SM90_MUTANTS)
def test_what_is_not_in_its_place_is_refused_for_sm90(name):
    check_mutant(SM90, *SM90_MUTANTS[name])
