"""`ofa-tui program show`: every stage from a preset to its tasks, in print."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from ofa_tui import abi
from ofa_tui.presets import PRESETS, preset
from ofa_tui.program.accesses import task_label
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import OPS
from ofa_tui.program.types import ProgramSet, TaskProgram
from ofa_tui.program.validate import validate

BYTES = {"f4": 4, "bf16": 2, "i4": 4, "u1": 1, "f8": 8, "u8": 8}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="tiny", help=f"one of {', '.join(PRESETS)} (default: tiny)")
    parser.add_argument("--stage", choices=sorted(STAGES), default="model",
                        help="model: operations by layer; buffers; tasks and counters one by one; proof: what was "
                             "validated (default: model)")
    parser.add_argument("--program", choices=abi.PROGRAMS, help="only this program (default: all that the stage has)")


def run(args: argparse.Namespace) -> int:
    chosen = preset(args.preset)
    programs = compile_programs(chosen.model, chosen.train)
    for line in stage_lines(programs, args.stage, args.program):
        print(line)
    return 0


def stage_lines(programs: ProgramSet, stage: str, program: str | None = None) -> Iterator[str]:
    """The lines of one of STAGES, of one program or all."""
    names = [program] if program else list(programs.programs)
    return STAGES[stage](programs, names)


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
    name = label.split(" rows ")[0]
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
    columns = np.array([programs.buffers[view.buffer].shape[1] for view in programs.views] or [0], np.float64)
    rows = np.array([programs.buffers[view.buffer].shape[0] for view in programs.views] or [0], np.float64)
    operands = np.minimum(program.tasks["operands"], len(columns) - 1)
    tile = program.tasks["tile"].astype(np.float64)
    outputs = tile[:, 1] * tile[:, 3]
    names = np.array([op.name for op in OPS])[program.tasks["opcode"]]
    depth = np.zeros(len(names))
    products = np.char.startswith(names, "matmul") | np.char.startswith(names, "decode_")
    products &= names != "decode_attention"
    depth[products] = columns[operands[products, 0]]
    transposed = names == "matmul_dw"
    depth[transposed] = rows[operands[transposed, 0]]
    depth[names == "attention"] = programs.model.context
    depth[names == "attention_backward"] = 2.5 * programs.model.context
    return 2 * outputs * depth


def _count(value: float) -> str:
    for unit in ("", "k", "M", "G", "T"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} P"


# --- buffers, tasks, counters, proof ----------------------------------------------------------------------------


def _buffer_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    operands = np.concatenate([programs.programs[name].tasks["operands"].ravel() for name in names])
    used = {programs.views[i].buffer for i in np.unique(operands) if i != abi.NONE_U16}
    totals: dict[str, int] = {}
    yield f"{'buffer':<34}{'kind':<12}{'shape':>18}  type  copies"
    for buffer in programs.buffers.values():
        if buffer.name not in used:
            continue
        rows, columns = buffer.shape
        totals[buffer.kind] = totals.get(buffer.kind, 0) + rows * columns * buffer.copies * BYTES[buffer.dtype]
        yield f"{buffer.name:<34}{buffer.kind:<12}{f'{rows:,} x {columns:,}':>18}  {buffer.dtype:<6}{buffer.copies}"
    yield ", ".join(f"{kind} {_count(size)}B" for kind, size in totals.items())


def _task_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    for name in names:
        program = programs.programs[name]
        yield f"{name}: {len(program.tasks):,} tasks in claim order"
        for index, task in enumerate(program.tasks):
            op = OPS[task["opcode"]]
            operands = [programs.views[i] if i != abi.NONE_U16 else None for i in task["operands"][: len(op.accesses)]]
            arguments = " ".join(
                f"{access.name}={view.buffer}{'+' * view.rotation}"
                for access, view in zip(op.accesses, operands, strict=True) if view
            )
            waits = ", ".join(_wait_text(programs, wait) for wait in task["waits"][: task["n_waits"]])
            yield f"{index:>6}  {task_label(program, index)}"
            yield f"        {op.name} {arguments}".rstrip()
            if waits:
                yield f"        waits for {waits}"
            if task["signal"] != abi.NONE_U32:
                yield f"        signals {programs.counters[task['signal']]}"


def _wait_text(programs: ProgramSet, wait: np.void) -> str:
    first, n = int(wait["first"]), int(wait["n"])
    name = programs.counters[first]
    if n > 1:
        name += f" to {programs.counters[first + n - 1]}"
    return f"{name} at {wait['count']}" + (" of the iteration before" if wait["lag"] else "")


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


def _proof_lines(programs: ProgramSet, names: list[str]) -> Iterator[str]:
    report = validate(programs)
    for line in report.lines():
        if line.split(":")[0] in names:
            yield line
    yield "no schedule deadlocks, no two accesses race, no counter mixes iterations, every tile is written once"


STAGES: dict[str, Callable[[ProgramSet, list[str]], Iterator[str]]] = {
    "model": _model_lines,
    "buffers": _buffer_lines,
    "tasks": _task_lines,
    "counters": _counter_lines,
    "proof": _proof_lines,
}
