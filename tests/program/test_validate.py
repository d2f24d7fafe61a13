"""Programs that must not run are refused, by a sentence that names the tasks."""

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program import lowering, tiles
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.operands import OPERANDS, contracts
from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE, OPCODES, OPS
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from ofa_tui.program.validate import ProgramError, validate
from tests.program.shapes import small_programs

SMALL = small_programs()
SM90_MODEL = ModelConfig(layers=2, width=128, heads=2, feed_forward=256, context=64, vocab=512)
SM90 = compile_programs(SM90_MODEL, TrainConfig(batch=4, steps=10, learning_rate=1e-3, warmup_steps=2), games=2,
                        target="sm90")


def named(program: TaskProgram, start: str) -> int:
    """Index of the first task whose label begins with `start`."""
    return next(i for i, label in enumerate(program.labels) if label.startswith(start))


def remove(program: TaskProgram, task: int) -> None:
    program.tasks = np.delete(program.tasks, task)
    del program.labels[task]


def move(program: TaskProgram, task: int, to: int) -> None:
    """Takes a task out of the queue and puts it back at place `to`."""
    order = list(range(len(program.tasks)))
    order.insert(to, order.pop(task))
    program.tasks = program.tasks[order]
    program.labels = [program.labels[i] for i in order]


def count_again(program: TaskProgram, counter: int) -> None:
    """Adapts the waits for one counter (which stand alone) to the number of its producers."""
    waits = program.tasks["waits"]
    for task, slot in np.argwhere(waits["first"] == counter):
        waits[task, slot]["count"] = (program.tasks["signal"] == counter).sum()


def remove_uncounted(program: TaskProgram, task: int) -> None:
    counter = program.tasks["signal"][task]
    remove(program, task)
    count_again(program, counter)


def joined_twice(programs: ProgramSet, program: TaskProgram) -> None:
    """A second task for the same tile, whose signal everybody waits for."""
    at = named(program, "layers.0.qkv rows 0-")
    program.tasks = np.insert(program.tasks, at, program.tasks[at])
    program.labels.insert(at, "twin")
    count_again(program, program.tasks["signal"][at])


def tile_moved(column: int, by: int, label: str) -> Callable[[ProgramSet, TaskProgram], None]:
    def change(programs: ProgramSet, program: TaskProgram) -> None:
        program.tasks["tile"][named(program, label), column] += by

    return change


def on_task(label: str, change: Callable[[np.void], None]) -> Callable[[ProgramSet, TaskProgram], None]:
    return lambda programs, program: change(program.tasks[named(program, label)])


def set_field(name: str, value: object) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task[name] = value

    return change


def set_wait(name: str, value: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["waits"][0][name] = value

    return change


def set_operand(slot: int, value: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["operands"][slot] = value

    return change


def set_tile(column: int, value: int) -> Callable[[np.void], None]:
    def change(task: np.void) -> None:
        task["tile"][column] = value

    return change


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


def decode_reads(buffer: str, rotation: int) -> Callable[[ProgramSet, TaskProgram], None]:
    """The decode program takes `buffer` to be its embedding table."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        programs.views.append(View(buffer, rotation))
        programs.programs["decode"].tasks["operands"][0][0] = len(programs.views) - 1

    return change


def read_the_version_being_written(programs: ProgramSet, program: TaskProgram) -> None:
    programs.views.append(View("head", 1))
    program.tasks["operands"][named(program, "head rows 0-")][1] = len(programs.views) - 1


def one_copy(programs: ProgramSet, program: TaskProgram) -> None:
    programs.buffers["head"] = replace(programs.buffers["head"], copies=1)


def two_copies(programs: ProgramSet, program: TaskProgram) -> None:
    """Enough for training alone, but a server may hold the copy that the next step writes."""
    for name in programs.parameters:
        programs.buffers[name] = replace(programs.buffers[name], copies=2)


def open_early(programs: ProgramSet, program: TaskProgram) -> None:
    """The step's last task no longer waits for the optimiser, so the next step may begin beside it."""
    waits = program.tasks["waits"]
    waits[named(program, "publish")][0] = waits[named(program, "layers.0.norm1.dx")][0]


def in_program(
    name: str, change: Callable[[ProgramSet, TaskProgram], object]
) -> Callable[[ProgramSet, TaskProgram], object]:
    """`change`, made in another program than `train`."""
    return lambda programs, program: change(programs, programs.programs[name])


def add_control(op: str, at: int) -> Callable[[ProgramSet, TaskProgram], None]:
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


def on_tasks(label: str, change: Callable[[np.void], None]) -> Callable[[ProgramSet, TaskProgram], None]:
    """`change` on all tasks whose label begins with `label`."""

    def change_all(programs: ProgramSet, program: TaskProgram) -> None:
        for task, name in zip(program.tasks, program.labels, strict=True):
            if name.startswith(label):
                change(task)

    return change_all


def set_view(label: str, slot: int, view: View) -> Callable[[ProgramSet, TaskProgram], None]:
    """`view` is operand `slot` of all tasks whose label begins with `label`."""

    def change(programs: ProgramSet, program: TaskProgram) -> None:
        programs.views.append(view)
        on_tasks(label, set_operand(slot, len(programs.views) - 1))(programs, program)

    return change


def set_buffer(name: str, **fields: object) -> Callable[[ProgramSet, TaskProgram], None]:
    def change(programs: ProgramSet, program: TaskProgram) -> None:
        programs.buffers[name] = replace(programs.buffers[name], **fields)

    return change


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


def exchange_moments(programs: ProgramSet, program: TaskProgram) -> None:
    set_view("layers.0.fc1.dw", 3, View("layers.0.fc1.v"))(programs, program)
    set_view("layers.0.fc1.dw", 4, View("layers.0.fc1.m"))(programs, program)


def freeze(programs: ProgramSet, program: TaskProgram) -> None:
    """No task makes the next version of the last gain."""
    remove_uncounted(program, named(program, "norm.adamw"))


def embed_in_decode(opened: bool) -> Callable[[ProgramSet, TaskProgram], None]:
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


def wait_for_a_step(programs: ProgramSet, program: TaskProgram) -> None:
    """The first decoded product waits for the embedding of a training step."""
    counter = program.tasks["signal"][named(program, "embed rows 0")]
    count = int((program.tasks["signal"] == counter).sum())
    decode = programs.programs["decode"]
    decode.tasks["waits"][named(decode, "layers.0.qkv")][0] = (counter, count, 1, 0)


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


def open_beside_the_last_token(programs: ProgramSet, program: TaskProgram) -> None:
    """stream_begin waits for nothing, and the tasks after it for `sample` in its stead."""
    sampled = program.tasks["waits"][0, 0].copy()
    program.tasks["n_waits"][0] = 0
    for task, label in zip(program.tasks, program.labels, strict=True):
        if label.startswith("layers.0.qkv"):
            task["n_waits"], task["waits"][0] = 1, sampled


def drop_parameter(programs: ProgramSet, program: TaskProgram) -> None:
    programs.parameters.remove("layers.1.norm2")


MUTANTS: dict[str, tuple[Callable[[ProgramSet, TaskProgram], object], str, tuple[str, ...]]] = {
    # what is wrong: (how to make it so, the check that has to find it, words of its message)
    "dropped wait": (on_task("layers.1.fc1 rows 128", set_field("n_waits", 0)), "race",
                     ("layers.1.fc1 rows 128", "layers.1.norm2 rows 128")),
    "dropped wait without data": (on_task("step_begin", set_field("n_waits", 0)), "race", ("embed", "embed.adamw")),
    "wait for another row block": (on_task("layers.1.fc1 rows 128", shift_wait), "race",
                                   ("layers.1.fc1 rows 128", "layers.1.norm2 rows 128")),
    "too small a count": (on_task("layers.0.norm2 rows 0", set_wait("count", 0)), "join",
                          ("layers.0.norm2 rows 0", "layers.0.proj rows 0")),
    "too large a count": (on_task("layers.0.norm2 rows 0", set_wait("count", 9)), "join",
                          ("layers.0.norm2 rows 0", "layers.0.proj rows 0")),
    "one row block fewer": (on_task("head.dw", set_wait("n", 2)), "race", ("head.dw rows 0", "norm rows 256")),
    "wait of the iteration before": (on_task("layers.0.norm2 rows 0", set_wait("lag", 1)), "race",
                                     ("layers.0.norm2 rows 0", "layers.0.proj rows 0")),
    "wait far back": (on_task("embed rows 0", set_wait("lag", 2)), "wait", ("embed rows 0",)),
    "counter nobody signals": (on_task("publish", set_field("signal", abi.NONE_U32)), "wait",
                               ("step_begin", "publish")),
    "counter out of range": (on_task("loss", set_field("signal", 60_000)), "counter", ("loss",)),
    "wait out of range": (on_task("loss", set_wait("first", 60_000)), "counter", ("loss",)),
    "waits for itself": (wait_for_itself, "deadlock", ("layers.0.norm1 rows 0",)),
    "cycle": (wait_for_a_successor, "deadlock", ("layers.0.norm1 rows 0", "layers.0.fc1 rows 0")),
    "missing tile": (lambda s, p: remove(p, named(p, "layers.0.qkv rows 0-")), "join", ("layers.0.qkv rows 0",)),
    "missing tile, counts adapted": (lambda s, p: remove_uncounted(p, named(p, "layers.0.qkv rows 0-")), "gap",
                                     ("layers.0.qkv.y rows 0", "layers.0.qkv rows")),
    "tile written twice": (joined_twice, "overlap", ("twin", "layers.0.qkv rows 0-127 columns 0")),
    "tile one row late": (tile_moved(0, 1, "layers.1.fc1.dw rows 32"), "overlap",
                          ("layers.1.fc1.dw rows 32", "layers.1.fc1.dw rows 64")),
    "tile one column short": (tile_moved(3, -1, "layers.0.qkv rows 0-"), "gap", ("layers.0.qkv.y", "layers.0.qkv")),
    "tile one column late": (tile_moved(2, 1, "layers.0.qkv rows 0-"), "overlap",
                             ("layers.0.qkv rows 0-127 columns 64",)),
    "tile outside": (tile_moved(0, 10_000, "layers.1.norm1 rows 0"), "tile", ("layers.1.norm1 rows 0",)),
    "empty tile": (tile_moved(1, -128, "layers.1.norm1 rows 0"), "tile", ("layers.1.norm1 rows 0",)),
    "half a head": (tile_moved(2, 1, "layers.1.attention rows 0"), "tile", ("layers.1.attention rows 0",)),
    "claimed too early": (lambda s, p: move(p, named(p, "layers.0.proj rows 0"), 3), "deadlock",
                          ("layers.0.proj rows 0", "layers.0.attention rows 64")),
    "unknown opcode": (on_task("loss", set_field("opcode", 999)), "opcode", ("loss",)),
    "unknown flag": (on_task("embed rows 0", set_field("flags", 1)), "flags", ("embed rows 0",)),
    "operand missing": (on_task("layers.0.fc1 rows 0", set_operand(1, abi.NONE_U16)), "operand", ("layers.0.fc1",)),
    "operand too many": (on_task("loss", set_operand(5, 0)), "operand", ("loss",)),
    "operand out of range": (on_task("loss", set_operand(0, 60_000)), "operand", ("loss",)),
    "operand of another shape": (on_task("layers.0.fc1 rows 0", set_operand(1, 0)), "shape", ("layers.0.fc1 rows 0",)),
    "counter of two programs": (share_a_counter, "counter", ("publish", "doom", "train")),
    "decode reads an activation": (decode_reads("layers.0.in", 0), "unwritten", ("token_begin", "layers.0.in")),
    "decode reads a moment": (decode_reads("embed.m", 0), "sharing", ("decode", "embed.m", "train")),
    "decode reads the next version": (decode_reads("embed", 1), "sharing", ("decode", "embed", "train")),
    "reads the version being written": (read_the_version_being_written, "race", ("head rows 0", "head.adamw rows")),
    "one copy of a weight": (one_copy, "table", ("head",)),
    "step opens too early": (open_early, "race", ("iteration",)),
    "two rotating copies": (two_copies, "sharing", ("decode", "train")),
    "no step_begin": (on_task("step_begin", set_field("opcode", OPCODES["publish"])), "control", ("step_begin",)),
    "no loss": (lambda s, p: remove(p, named(p, "loss")), "control", ("loss", "exactly one")),
    "two publishes": (add_control("publish", -1), "control", ("added publish", "publish", "exactly one")),
    "publish before the end": (lambda s, p: move(p, named(p, "publish"), 9), "control", ("publish", "embed.adamw")),
    "step_begin not first": (lambda s, p: move(p, 0, 1), "control", ("step_begin", "embed rows 0", "first")),
    "sweep_begin in train": (add_control("sweep_begin", 5), "control", ("train", "added sweep_begin", "sweep")),
    "doom_tic in train": (add_control("doom_tic", 5), "control", ("train", "added doom_tic", "doom")),
    "publish in decode": (in_program("decode", add_control("publish", 5)), "control", ("decode", "added publish")),
    "step_begin opens a sweep": (swap_opening, "control", ("sweep", "sweep_begin", "step_begin", "train")),
    "no sample": (in_program("decode", lambda s, p: remove(p, len(p.tasks) - 1)), "control", ("decode", "sample")),
    "no sweep_loss": (in_program("sweep", lambda s, p: remove(p, len(p.tasks) - 1)), "control", ("sweep_loss",)),
    "token begins before the last is sampled": (token_overtakes, "turn", ("token_begin", "sample", "before")),
    "programs exchanged": (in_program("sweep", lambda s, p: setattr(p, "name", "decode")), "table", ("sweep",)),
    "game played twice": (in_program("doom", on_task("game 1", set_tile(0, 0))), "game", ("game 0", "game 1")),
    "game out of range": (in_program("doom", on_task("game 1", set_tile(0, 2))), "game", ("game 1", "game 2")),
    "game beside itself": (in_program("doom", on_task("game 1", set_field("n_waits", 0))), "mixing", ("game 1",)),
    "game without a signal": (in_program("doom", lone_game), "game", ("game 1", "tic before")),
    "task among games": (in_program("doom", foreign_task), "game", ("foreign", "doom_tic")),
    "two rows of a game": (in_program("doom", on_task("game 1", set_tile(1, 2))), "tile", ("game 1", "rows")),
    "half a decoded head": (in_program("decode", on_task("layers.1.attention", set_tile(3, 8))), "tile",
                            ("layers.1.attention", "one whole head")),
    "two decoded heads": (in_program("decode", on_task("layers.1.attention", set_tile(3, 32))), "tile",
                          ("layers.1.attention", "one whole head")),
    "decoded head of no row": (in_program("decode", on_task("layers.1.attention", set_tile(0, 1))), "tile",
                               ("layers.1.attention", "one row")),
    "fence where nothing copies": (on_task("head rows 0", set_field("flags", FENCE_BEFORE)), "flags", ("head rows",)),
    "lane of a task anybody claims": (on_task("head rows 0", set_field("lane", 1)), "lane", ("head rows 0", "claim")),
    "decode claimed task by task": (lambda s, p: setattr(s.programs["decode"], "claims", abi.CLAIM_TICKETS), "claims",
                                    ("decode", "tickets", "whole")),
    "wait for another queue": (wait_for_a_step, "wait", ("decode", "layers.0.qkv", "queue of train")),
    "reads weights before they are pinned": (embed_in_decode(opened=False), "pin", ("stray", "token_begin", "embed")),
    "reads weights after they are let go": (embed_in_decode(opened=True), "pin", ("stray", "sample", "embed")),
    "weight that is never updated": (freeze, "version", ("norm", "no step writes")),
    "next version two on": (set_view("head.adamw", 2, View("head", 2)), "version", ("head.adamw", "rotation 2")),
    "sweep reads the version being written": (in_program("sweep", set_view("norm rows", 1, View("norm", 1))), "version",
                                              ("norm rows", "rotation 1")),
    "parameter not listed": (drop_parameter, "parameters", ("layers.1.norm2",)),
    "moment of another dtype": (set_buffer("head.m", dtype="bf16"), "class", ("head.adamw", "head.m", "bf16")),
    "cache too short": (set_buffer("layers.0.k_cache", shape=(32, 48)), "shape",
                        ("layers.0.attention", "context = 64")),
    "two copies of an activation": (set_buffer("layers.0.in", copies=3), "table", ("layers.0.in", "rotate")),
    "one tile of another product": (set_view("layers.1.fc1.dx rows 0", 0, View("layers.1.fc1.y")), "operation",
                                    ("layers.1.fc1.dx rows 0", "operand dy", "layers.1.fc1.y.d")),
    **{
        f"unused axis of {label}": (in_program(name, on_task(label, set_tile(column, value))), "tile", (label, words))
        for name, label, column, value, words in (
            ("train", "embed rows 128", 2, 1, "columns 1-48"), ("train", "layers.0.norm1 rows 0", 3, 9, "columns 0-8"),
            ("train", "cross_entropy rows 0", 3, 2, "columns 0-1"), ("train", "norm.dx rows 0", 3, 1, "columns 0-0"),
            ("train", "embed.dw rows 0", 2, 8, "columns 8-55"), ("train", "loss", 1, 100, "rows 0-99"),
            ("train", "norm.adamw", 3, 24, "columns 0-23"), ("train", "step_begin", 0, 1, "rows 1-1"),
            ("sweep", "sweep_loss", 0, 7, "rows 7-"), ("decode", "token_begin", 3, 1, "columns 0-0"),
            ("decode", "layers.0.fc1 rows 0", 1, 2, "rows 0-1"), ("decode", "sample", 2, 3, "columns 3-"),
        )
    },
}

DECODED = "decode"
SM90_MUTANTS: dict[str, tuple[str, Callable[[ProgramSet, TaskProgram], object], str, tuple[str, ...]]] = {
    # what is wrong: (the program changed, how, the check that has to find it, words of its message)
    "message nobody writes": (DECODED, one_more_generation, "deadlock",
                              ("layers.1.qkv head 0 part 0", "message 5 of decode.x", "operand x")),
    "message of a later layer": (DECODED, set_view("layers.0.qkv head 1", 0, View("decode.x", generation=2)),
                                 "deadlock",
                                 ("layers.0.qkv head 1 part 0", "layers.0.fc2")),
    "own message": (DECODED, set_view("layers.0.fc2", 2, View("decode.x", generation=2)), "deadlock",
                    ("layers.0.fc2 rows 0-0 columns 0-31", "itself")),
    "message overwritten before it is read": (DECODED, set_view("layers.0.fc1", 0, View("decode.x")), "reuse",
                                              ("layers.0.fc1", "layers.0.proj", "message 0 of decode.x")),
    "message overwritten by the next token": (DECODED, open_beside_the_last_token, "reuse",
                                              ("layers.1.fc2", "stream_begin", "next iteration")),
    "message nobody reads": (DECODED, set_view("head rows", 0, View("decode.x", generation=2)), "unread",
                             ("layers.1.fc2", "message 4 of decode.x")),
    "message written twice": (DECODED, tile_moved(2, -32, "layers.1.fc1 rows 0-0 columns 64"), "overlap",
                              ("layers.1.fc1 rows 0-0 columns 32", "layers.1.fc1 rows 0-0 columns 64")),
    "message with a hole": (DECODED, lambda s, p: remove(p, named(p, "layers.1.fc1 rows 0-0 columns 64")), "deadlock",
                            ("layers.1.fc2", "message 1 of decode.gelu")),
    "messages that share a tag": (DECODED, set_buffer("decode.x", generations=4), "table", ("decode.x", "tag")),
    "generations of a plain buffer": (DECODED, set_buffer("decode.logits", generations=2), "table", ("decode.logits",)),
    "message that is no packet": (DECODED, set_buffer("decode.x", dtype="f4"), "table", ("decode.x", "f4")),
    "token overtakes the last sample": (DECODED, on_task("sample", set_field("n_waits", 0)), "race",
                                        ("sample", "head")),
    "unit on another lane": (DECODED, exchange_units, "lane", ("layers.0.attention", "layers.0.qkv", "v_cache")),
    "lane nobody finds": (DECODED, on_task("head rows 0-0 columns 64", set_field("lane", 5)),
                          "lane", ("head rows 0-0 columns 64",)),
    "blocks without a last task": (DECODED, on_tasks("head rows", set_field("lane", 0)), "lane",
                                   ("sample", "head rows")),
    "token claimed by tickets": (DECODED, lambda s, p: setattr(p, "claims", abi.CLAIM_WHOLE), "claims", ("owned",)),
    "unit that is none": (DECODED, on_task("layers.1.qkv head 1 part 1", set_tile(0, 2)), "tile",
                          ("layers.1.qkv head 1 part 1", "unit")),
    "unit of half a head": (DECODED, on_task("layers.1.qkv head 1 part 1", set_tile(3, 32)), "tile",
                            ("layers.1.qkv head 1 part 1", "head")),
    "undivided heads": (DECODED, on_tasks("layers.1.qkv", set_tile(1, 1)), "tile",
                        ("layers.1.qkv head 0 part 1", "unit")),
    "statistics between two tiles": ("train", tile_moved(2, 128, "head rows 0-127 columns 0-"), "tile",
                                     ("head rows 0-127 columns 0-255", "statistics")),
    "no fence before reading a product": ("train", on_task("layers.1.qkv rows 0", without(FENCE_BEFORE)), "fence",
                                          ("layers.1.qkv rows 0", "layers.1.norm1 rows", "operand x")),
    "no fence after writing a product": ("train", on_task("layers.1.qkv rows 128", without(FENCE_AFTER)), "fence",
                                         ("layers.1.qkv rows 128", "layers.1.attention rows 128", "operand y")),
    "no fence before reading a cache": (DECODED, on_task("layers.1.attention", without(FENCE_BEFORE)), "fence",
                                        ("layers.1.attention", "layers.1.qkv", "operand v")),
    "no fence before reading a new version": (DECODED, on_task("head rows", without(FENCE_BEFORE)), "fence",
                                              ("head rows", "head.dw rows", "train", "head.stream")),
    "no fence after writing a new version": ("train", on_task("layers.0.fc1.dw", without(FENCE_AFTER)), "fence",
                                             ("layers.0.fc1.dw", "operand")),
    "sweep without a fence": ("sweep", on_task("head rows", without(FENCE_BEFORE)), "fence", ("sweep", "head rows")),
    "matrix of another dtype": ("train", set_buffer("layers.0.qkv.y", dtype="f4"), "class", ("layers.0.qkv.y", "f4")),
    "stream in rows": ("train", set_buffer("layers.0.qkv.stream", layout="rows"), "parameters",
                       ("layers.0.qkv.stream",)),
    "rows in stream order": ("train", set_buffer("layers.0.qkv", layout="stream"), "parameters", ("layers.0.qkv",)),
    "master that is a moment": ("train", set_buffer("layers.0.qkv.master", kind="moment"), "class",
                                ("layers.0.qkv.dw", "layers.0.qkv.master")),
    "moments exchanged": ("train", exchange_moments, "class", ("layers.0.fc1.dw", "layers.0.fc1.v")),
    "statistics of fewer tiles": ("train", set_buffer("logits.statistics", shape=(256, 6)), "gap",
                                  ("logits.statistics",)),
    "scores for fewer positions": (DECODED, set_buffer("decode.scores", shape=(4, 48)), "shape", ("context = 64",)),
    "one tile without decay": ("train", on_task("layers.0.qkv.dw rows 128", set_field("flags", 0xC0)), "operation",
                               ("layers.0.qkv.dw rows 128", "decay")),
    "one unit of another layer": (DECODED, set_view("layers.0.qkv head 1", 2, View("layers.1.qkv.stream")), "operation",
                                  ("layers.0.qkv head 0", "layers.0.qkv head 1", "layers.1.qkv.stream")),
    "sweep that updates weights": ("sweep", update_in_sweep, "version", ("stray update", "only the program train")),
}


def test_the_unchanged_program_is_accepted():
    assert "train" in validate(SMALL).programs


def test_a_report_says_what_was_proved():
    report = validate(SM90)
    train, decode = report.programs["train"], report.programs["decode"]
    assert train.shared_bytes == 231_424 and not train.messages  # of a tile of 128 x 256, see hopper-gemm-facts.md
    units, tiles_of_width, tiles_of_inner, tiles_of_vocab = 4, 4, 8, 16
    layer = (units * 2 + tiles_of_width * (units + 1) + tiles_of_inner * tiles_of_width
             + tiles_of_width * (tiles_of_inner + 1))
    assert decode.messages == 2 * layer + units * (1 + tiles_of_width) + tiles_of_vocab * tiles_of_width
    streamed = 2 * (units + 2 * tiles_of_width + tiles_of_inner) + tiles_of_vocab
    assert report.pinned == 1 + streamed
    assert decode.fences == streamed + 2 * units + 2 * units  # before the copies of attention, after those of qkv
    assert any(f"{decode.messages:,} messages" in line for line in report.lines())


def test_every_operand_has_its_row():
    assert set(OPERANDS) == {op.name for op in OPS if op.accesses}
    assert all(contracts(op.name) for op in OPS if op.accesses)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_refused_by_name(name):
    change, check, words = MUTANTS[name]
    programs = copy.deepcopy(SMALL)
    change(programs, programs.programs["train"])
    check_refused(programs, check, words)


@pytest.mark.parametrize("name", SM90_MUTANTS)
def test_mutants_of_another_target_are_refused_by_name(name):
    program, change, check, words = SM90_MUTANTS[name]
    programs = copy.deepcopy(SM90)
    change(programs, programs.programs[program])
    check_refused(programs, check, words)


def check_refused(programs: ProgramSet, check: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ProgramError) as refusal:
        validate(programs)
    message = str(refusal.value)
    assert refusal.value.check == check, message
    assert all(word in message for word in words), message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("patched", "value", "sizes", "words"),
    [
        ((tiles, "SM90_TILE"), (256, 256), {}, ("128 x 256", "layers.0.qkv rows 0-255")),
        ((tiles, "SM90_TILE"), (128, 512), {"vocab": 256}, ("128 x 256", "layers.0.qkv rows 0-127 columns 0-383")),
        ((tiles, "SM90_DECODE_ROWS"), 48, {}, ("32 rows", "layers.0.proj")),
        ((tiles, "SM90_DECODE_ROWS"), 24, {}, ("blocks of 16 x 16", "layers.0.proj", "operand w")),
        ((tiles, "SM90_TILE"), (128, 256), {"context": 1024, "width": 256},
         ("layers.0.attention rows 0-1023", "232,448")),
        ((tiles, "SM90_TILE"), (128, 256), {"width": 1024, "context": 8}, ("attention", "256 columns")),
        ((lowering, "BLOCK"), 4, {"width": 24}, ("pieces of rows", "16 bytes", "layers.0.attention", "operand qkv")),
        ((lowering, "BLOCK"), 2, {"width": 20}, ("rows that do not begin", "16 bytes", "operand x")),
    ],
)
def test_what_does_not_fit_a_multiprocessor_is_refused(monkeypatch, patched, value, sizes, words):
    monkeypatch.setattr(*patched, value)
    model = replace(SM90_MODEL, **sizes)
    train = TrainConfig(batch=4, steps=1, learning_rate=1e-3, warmup_steps=0)
    check_refused(compile_programs(model, train, target="sm90"), "resources", words)
