"""Programs that must not run are refused, by a sentence that names the tasks; what is accepted runs correctly."""

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import OPCODES
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from ofa_tui.program.validate import ProgramError, validate
from tests.program.shapes import small_programs
from tests.program.simulator import CHOICES, Fault, Simulator

SMALL = small_programs()


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


def test_the_unchanged_program_is_accepted():
    assert "train" in validate(SMALL).programs


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_refused_by_name(name):
    change, check, words = MUTANTS[name]
    programs = copy.deepcopy(SMALL)
    change(programs, programs.programs["train"])
    with pytest.raises(ProgramError) as refusal:
        validate(programs)
    message = str(refusal.value)
    assert refusal.value.check == check, message
    assert all(word in message for word in words), message
    assert "\n" not in message


TINY = compile_programs(ModelConfig(layers=1, width=8, heads=2, feed_forward=8, context=4, vocab=8),
                        TrainConfig(batch=4, steps=1, learning_rate=1e-3, warmup_steps=0))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_what_is_accepted_runs_in_any_interleaving(data):
    """Random mutations: the validator may refuse a harmless one, but must not accept a harmful one."""
    programs = copy.deepcopy(TINY)
    program = programs.programs[data.draw(st.sampled_from(["train", "decode"]))]
    tasks = program.tasks
    task = tasks[data.draw(st.integers(0, len(tasks) - 1))]
    wait = task["waits"][0]
    kinds = ["wait", "counter", "n", "lag", "count", "move", "tile", "signal", "operand", "remove"]
    kind = data.draw(st.sampled_from(kinds))
    if kind == "wait":
        task["n_waits"] = 0
    elif kind == "counter":
        wait["first"] = max(0, int(wait["first"]) + data.draw(st.integers(-3, 3)))
    elif kind in ("n", "lag", "count"):
        wait[kind] = data.draw(st.integers(0, 4))
    elif kind == "move":
        move(program, data.draw(st.integers(0, len(tasks) - 1)), data.draw(st.integers(0, len(tasks) - 1)))
    elif kind == "tile":
        task["tile"][data.draw(st.integers(0, 3))] += data.draw(st.integers(-2, 2))
    elif kind == "signal":
        task["signal"] = data.draw(st.sampled_from(tasks["signal"].tolist()))
    elif kind == "operand":
        task["operands"][data.draw(st.integers(0, 6))] = data.draw(st.integers(0, len(programs.views) - 1))
    else:
        remove(program, data.draw(st.integers(0, len(tasks) - 1)))
    try:
        validate(programs)
        accepted = True
    except ProgramError:
        accepted = False
    for seed, choice in enumerate(CHOICES) if accepted else ():
        simulator = Simulator(programs, program.name)
        try:
            simulator.run(data.draw(st.integers(2, 20)), iterations=3, choice=choice, seed=seed)
        except Fault as fault:
            pytest.fail(f"accepted, though with {choice}: {fault}")
