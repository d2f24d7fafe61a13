"""`ofa-tui program show`: every stage from a preset to its tasks, in print."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.presets import PRESETS, preset
from ofa_tui.program.accesses import ProgramError, list_accesses, task_label
from ofa_tui.program.description import find_tasks, flag_text, task_lines, wait_text
from ofa_tui.program.distinct import distinct
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import OPS
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import ProgramSet, TaskProgram, View
from ofa_tui.program.validate import validate
from ofa_tui.program.work import program_work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="tiny", help=f"one of {', '.join(PRESETS)} (default: tiny)")
    parser.add_argument("--target", choices=TARGETS, default="host", help="what it is compiled for (default: host)")
    parser.add_argument("--stage", choices=[*sorted(STAGES), "task"], default="model",
                        help="model: operations by layer; buffers; tasks and counters one by one; proof: what was "
                             "validated; task: those of --task in full (default: model)")
    parser.add_argument("--program", choices=abi.PROGRAMS, help="only this program (default: all that the stage has)")
    parser.add_argument("--task", action="append", metavar="LABEL|NUMBER",
                        help="of stage task: its label or its place in the queue; may be given more than once")


def run(args: argparse.Namespace) -> int:
    chosen = preset(args.preset)
    if (args.stage == "task") != bool(args.task):
        raise OfaError("--stage task prints the tasks that --task names: give both, or neither")
    programs = compile_programs(chosen.model, chosen.train, target=args.target)
    for line in stage_lines(programs, args.stage, args.program, args.task or []):
        print(line)
    return 0


def stage_lines(
    programs: ProgramSet, stage: str, program: str | None = None, tasks: Sequence[str] = ()
) -> Iterator[str]:
    """The lines of one of STAGES, of one program or all; or, of stage "task", `tasks` in full."""
    names = [program] if program else list(programs.programs)
    return _chosen_lines(programs, names, tasks) if stage == "task" else STAGES[stage](programs, names)


def _chosen_lines(programs: ProgramSet, names: list[str], tasks: Sequence[str]) -> Iterator[str]:
    for wanted in tasks:
        for name, index in find_tasks(programs, names, wanted):
            yield from task_lines(programs, name, index)


# --- model -----------------------------------------------------------------------------------------------------


def _model_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    model, train = programs.model, programs.train
    yield (f"{model.parameter_count():,} parameters: {model.layers} layers, width {model.width}, {model.heads} heads, "
           f"feed-forward {model.feed_forward:,}, context {model.context}, vocabulary {model.vocab:,}; "
           f"{train.batch} x {model.context} tokens a step; target {programs.target}")
    for name in names:
        program = programs.programs[name]
        yield ""
        flops = _flops(programs, program).sum()
        products = f", {_count(flops)}flop in matrix products" if flops else ""
        yield f"{name}: {len(program.tasks):,} task{'s' * (len(program.tasks) != 1)}{products}"
        yield f"    {'operation':<22}{'task type':<26}{'tasks':>6} x {'tile':<14}work".rstrip()
        yield from _tree(programs, program)


def _tree(programs: ProgramSet, program: TaskProgram) -> Iterator[str]:
    """Operations in the order of their first tasks: before the layers, in the layers (equal ones once), after them."""
    flops = _flops(programs, program)
    tasks_of: dict[tuple[str, str], list[int]] = {}  # (part of the model, operation) -> tasks
    in_layers = False
    layered = any(_place(task_label(program, task))[0] for task in range(len(program.tasks)))
    for task in range(len(program.tasks)):
        layer, operation = _place(task_label(program, task))
        in_layers = in_layers or bool(layer)
        part = layer or ("after the layers" if in_layers else "before the layers" if layered else "")
        tasks_of.setdefault((part, operation), []).append(task)
    parts: dict[str, list[tuple[str, ...]]] = {}
    for (part, operation), tasks in tasks_of.items():
        row = _operation_row(program, operation, tasks, float(flops[tasks].sum()))
        parts.setdefault(part, []).append(row)
    titles = list(parts)
    while titles:
        alike = [title for title in titles if parts[title] == parts[titles[0]]]
        first, last = (title.removeprefix("layer ") for title in (alike[0], alike[-1]))
        if titles[0]:
            yield f"  {titles[0]}" if len(alike) == 1 else f"  layers {first} to {last}, each"
        for name, op, count, tile, work in parts[titles[0]]:
            yield f"    {name:<22}{op:<26}{count:>6} x {tile:<14}{work}".rstrip()
        titles = [title for title in titles if title not in alike]


def _place(label: str) -> tuple[str, str]:
    """Layer ("" outside the layers) and operation of a task's label."""
    name = re.split(" rows | head ", label)[0]
    if not name.startswith("layers."):
        return "", name
    _, layer, operation = name.split(".", 2)
    return f"layer {layer}", operation


def _operation_row(program: TaskProgram, operation: str, tasks: list[int], flops: float) -> tuple[str, ...]:
    opcode, tile = program.tasks["opcode"][tasks[0]], program.tasks["tile"][tasks[0]]
    work = f"{_count(flops)}flop" if flops else ""
    return operation, OPS[opcode].name, f"{len(tasks):,}", f"{tile[1]} x {tile[3]}", work


def _flops(programs: ProgramSet, program: TaskProgram) -> np.ndarray:
    """Multiply-adds of matrix products, twice, per task; attention counts its causal half."""
    return np.array([work.flops for work in program_work(programs, program)], np.float64)


def _count(value: float) -> str:
    for unit in ("", "k", "M", "G", "T"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} P"


# --- buffers, tasks, counters, proof ----------------------------------------------------------------------------


def _buffer_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    operands = np.concatenate([programs.programs[name].tasks["operands"].ravel() for name in names])
    used = {programs.views[i].buffer for i in distinct(operands) if i != abi.NONE_U16}
    totals: dict[str, int] = {}
    yield f"{'buffer':<34}{'kind':<12}{'shape':>18}  type    order   copies"
    for buffer in programs.buffers.values():
        if buffer.name not in used:
            continue
        rows, columns = buffer.shape
        size = rows * columns * buffer.copies * abi.ELEMENTS[buffer.dtype].itemsize
        totals[buffer.kind] = totals.get(buffer.kind, 0) + size
        messages = f", {buffer.generations} messages an iteration" * (buffer.kind == "message")
        yield (f"{buffer.name:<34}{buffer.kind:<12}{f'{rows:,} x {columns:,}':>18}  {buffer.dtype:<8}{buffer.layout:<8}"
               f"{buffer.copies}{messages}")
    yield ", ".join(f"{kind} {_count(size)}B" for kind, size in totals.items())


def _task_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    for name in names:
        program = programs.programs[name]
        yield f"{name}: {len(program.tasks):,} tasks in claim order, {abi.CLAIMS[program.claims]}"
        for index, task in enumerate(program.tasks):
            op = OPS[task["opcode"]]
            operands = [programs.views[i] if i != abi.NONE_U16 else None for i in task["operands"][: len(op.accesses)]]
            arguments = " ".join(
                f"{access.name}={_view_text(programs, view)}"
                for access, view in zip(op.accesses, operands, strict=True) if view
            )
            waits = ", ".join(wait_text(programs, wait) for wait in task["waits"][: task["n_waits"]])
            lane = f"lane {task['lane']}" * (program.claims == abi.CLAIM_OWNED)
            yield f"{index:>6}  {task_label(program, index)}"
            yield f"        {op.name} {arguments}".rstrip()
            if lane or task["flags"]:
                yield f"        {', '.join(part for part in (lane, flag_text(task)) if part)}"
            if waits:
                yield f"        waits for {waits}"
            if task["signal"] != abi.NONE_U32:
                yield f"        signals {programs.counters[task['signal']]}"


def _view_text(programs: ProgramSet, view: View) -> str:
    """+: the next version; #n: message n of the iteration."""
    message = programs.buffers[view.buffer].kind == "message"
    return f"{view.buffer}{'+' * view.rotation}{f'#{view.generation}' * message}"


def _counter_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    yield f"{'counter':<44}{'signals':>9}{'waiting':>9}  an iteration"
    for name in names:
        tasks = programs.programs[name].tasks
        signals = tasks["signal"][tasks["signal"] != abi.NONE_U32].astype(np.int64)
        produced = np.bincount(signals, minlength=len(programs.counters))
        waiting = np.zeros(len(programs.counters) + 1, np.int64)
        for slot in range(abi.MAX_WAITS):
            waits = tasks["waits"][tasks["n_waits"] > slot, slot]
            np.add.at(waiting, waits["first"].astype(np.int64), 1)
            np.add.at(waiting, waits["first"].astype(np.int64) + waits["n"], -1)
        waiting = np.cumsum(waiting)
        for counter in np.flatnonzero(produced):
            yield f"{programs.counters[counter]:<44}{produced[counter]:>9,}{waiting[counter]:>9,}"


    yield from _message_lines(programs, names)


def _message_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    for name in names:
        accesses = list_accesses(programs, programs.programs[name])
        views = [view for view in programs.views if programs.buffers[view.buffer].kind == "message"]
        used = {programs.views[view] for view in distinct(accesses.view)}
        for view in sorted(used.intersection(views), key=lambda view: (view.buffer, view.generation)):
            same = np.isin(accesses.view, [i for i, other in enumerate(programs.views) if other == view])
            sent, polled = (len(distinct(accesses.task[same & mode])) for mode in (accesses.writes, accesses.reads))
            yield f"{f'message {_view_text(programs, view)}':<44}{sent:>9,}{polled:>9,}"


def _proof_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    try:
        report = validate(programs)
    except ProgramError as error:
        for label in error.tasks:
            yield from _chosen_lines(programs, list(programs.programs), [label])
        raise
    for line in report.lines():
        if line.split(":")[0] in (*names, "pin" if "decode" in names else ""):
            yield line
    yield ("no schedule deadlocks, no two accesses race, no counter mixes iterations, every tile is written once, and "
           "the operations are those of the model")


STAGES: dict[str, Callable[[ProgramSet, list[str]], Iterator[str]]] = {
    "model": _model_lines,
    "buffers": _buffer_lines,
    "tasks": _task_lines,
    "counters": _counter_lines,
    "proof": _proof_lines,
}
