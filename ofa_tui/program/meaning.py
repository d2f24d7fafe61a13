"""What a model's programs are made of: every operation by name. A program set must have these, and no others.

A row is an opcode and its operands in the order of `ops.OPS`, written as `program show --stage tasks` prints them:
`name+` is the next version of a weight, `name#n` message n of the iteration, `-` an operand left out. `/decay`: with
weight decay. `@` stands for a layer, `layers.3`; `@.out` for what enters the layer after it, or the norm behind the
last. Of the messages called decode.x, #in enters a layer, #mid leaves its attention, #out enters the next.

By these rows every operand of a task follows from any other one. They are written down without regard to `graph.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import GAME_OP, ProgramError, describe_view, task_label
from ofa_tui.program.ops import ADAMW_DECAY, OPCODES, OPS
from ofa_tui.program.targets import TARGETS, Target
from ofa_tui.program.types import ProgramSet, TaskProgram, View


@dataclass(frozen=True)
class Rows:
    """Rows of operations outside the layers, where `@` is the layer next to them, and of each layer."""

    before: str = ""
    layer: str = ""
    after: str = ""


FORWARD = Rows(
    before="""
        embed            embed        @.in
    """,
    layer="""
        norm             @.in         @.norm1      @.norm1.y        @.norm1.rstd
        matmul           @.norm1.y    @.qkv        @.qkv.y
        attention        @.qkv.y      @.attention  @.attention.lse
        matmul_residual  @.attention  @.proj       @.in             @.mid
        norm             @.mid        @.norm2      @.norm2.y        @.norm2.rstd
        matmul_gelu      @.norm2.y    @.fc1        @.fc1.y          @.gelu
        matmul_residual  @.gelu       @.fc2        @.mid            @.out
    """,
    after="""
        norm             norm.in      norm         norm.y           norm.rstd
    """,
)

CONTROL = {"train": Rows(before="step_begin", after="publish"), "sweep": Rows(before="sweep_begin")}
LOSS = {
    # (program, whether the target has masters): from the last norm to the losses
    ("train", False): Rows(after="""
        matmul           norm.y       head         logits
        cross_entropy    logits       losses
        loss             losses
    """),
    ("train", True): Rows(after="""
        matmul_statistics         norm.y   head               logits   logits.statistics
        cross_entropy_statistics  logits   logits.statistics  losses
        loss                      losses
    """),
    ("sweep", False): Rows(after="""
        matmul              norm.y   head     logits
        cross_entropy_loss  logits   losses
        sweep_loss          losses
    """),
    ("sweep", True): Rows(after="""
        matmul_statistics              norm.y   head               logits   logits.statistics
        cross_entropy_loss_statistics  logits   logits.statistics  losses
        sweep_loss                     losses
    """),
}

BACKWARD = Rows(
    after="""
        matmul_dx           logits       head         norm.y.d
        norm_backward       norm.y.d     norm.in      norm.rstd        norm           -        norm.in.d  norm.dgain
    """,
    layer="""
        matmul_dx_gelu      @.out.d      @.fc2        @.fc1.y          @.fc1.y.d
        matmul_dx           @.fc1.y.d    @.fc1        @.norm2.y.d
        norm_backward       @.norm2.y.d  @.mid        @.norm2.rstd     @.norm2        @.out.d  @.mid.d  @.norm2.dgain
        matmul_dx           @.mid.d      @.proj       @.attention.d
        attention_backward  @.qkv.y      @.attention  @.attention.lse  @.attention.d  @.qkv.y.d
        matmul_dx           @.qkv.y.d    @.qkv        @.norm1.y.d
        norm_backward       @.norm1.y.d  @.in         @.norm1.rstd     @.norm1        @.mid.d  @.in.d   @.norm1.dgain
    """,
)

UPDATES = Rows(
    # a parameter and, of a matrix, the gradient of its output and its input
    after="""
        matrix  head    logits      norm.y
        gain    norm
    """,
    layer="""
        matrix  @.fc2   @.out.d     @.gelu
        matrix  @.fc1   @.fc1.y.d   @.norm2.y
        gain    @.norm2
        matrix  @.proj  @.mid.d     @.attention
        matrix  @.qkv   @.qkv.y.d   @.norm1.y
        gain    @.norm1
    """,
    before="""
        table   embed   @.in.d
    """,
)
UPDATE = {
    # of a target with masters or without, by the first word of a row of UPDATES: the operations; {0} is the parameter
    False: {
        "gain": "adamw_gain {0}.dgain {0} {0}+ {0}.m {0}.v {0}.grad",
        "matrix": """
            matmul_dw       {1}  {2}  {0}.grad
            adamw/decay     {0}.grad  {0}  {0}+  {0}.m  {0}.v
        """,
        "table": """
            embed_backward  {1}  {0}.grad
            adamw/decay     {0}.grad  {0}  {0}+  {0}.m  {0}.v
        """,
    },
    True: {
        "gain": "adamw_gain {0}.dgain {0} {0}+ {0}.m {0}.v {0}.grad",
        "matrix": "matmul_dw_adamw/decay {1} {2} {0}.master {0}.m {0}.v {0}+ {0}.stream+",
        "table": "embed_adamw/decay {1} {0}.master {0}.m {0}.v {0}+",
    },
}

TOKEN = Rows(
    before="""
        token_begin              embed               decode.@.in
    """,
    layer="""
        decode_norm_matmul       decode.@.in         @.norm1    @.qkv         decode.@.qkv.y
        decode_attention         decode.@.qkv.y      @.k_cache  @.v_cache     decode.@.attention
        decode_matmul_residual   decode.@.attention  @.proj     decode.@.in   decode.@.mid
        decode_norm_matmul_gelu  decode.@.mid        @.norm2    @.fc1         decode.@.gelu
        decode_matmul_residual   decode.@.gelu       @.fc2      decode.@.mid  decode.@.out
    """,
    after="""
        decode_norm_matmul       decode.norm.in      norm       head          decode.logits
        sample_row               decode.logits       decode.next
        sample                   decode.logits       decode.next
    """,
)
STREAMED_TOKEN = Rows(
    before="""
        stream_begin             embed               decode.x#in
    """,
    layer="""
        stream_qkv               decode.x#in  @.norm1  @.qkv.stream  @.k_cache  @.v_cache  decode.scores#@
        stream_attention         decode.scores#@     @.v_cache      decode.attention#@
        stream_matmul_residual   decode.attention#@  @.proj.stream  decode.x#in   decode.x#mid
        stream_norm_matmul_gelu  decode.x#mid        @.norm2        @.fc1.stream  decode.gelu#@
        stream_matmul_residual   decode.gelu#@       @.fc2.stream   decode.x#mid  decode.x#out
    """,
    after="""
        stream_norm_matmul       decode.x#in         norm           head.stream   decode.logits
        sample_row               decode.logits       decode.next
        sample                   decode.logits       decode.next
    """,
)


@dataclass(frozen=True)
class Operation:
    """One operation on whole matrices."""

    op: str
    decay: bool
    operands: tuple[View | None, ...]


def check_meaning(programs: ProgramSet) -> None:
    """The operations of every program are those of the model, and its parameters those that it is made of.

    Raises ProgramError.
    """
    layers = programs.model.layers
    for name, program in programs.programs.items():
        wanted = operations(name, programs.target, layers)
        found: set[Operation] = set()
        for task in _first_tasks(program):
            operation = _operation(programs, program, task)
            if operation not in wanted:
                _refuse_stranger(programs, program, task, operation, wanted)
            found.add(operation)
        if name != "doom":
            _check_complete(programs, program, wanted, found)
    _check_parameters(programs)


@cache
def operations(program: str, target: str, layers: int) -> dict[Operation, None]:
    """Those of one program of a model with so many layers, each once. Raises ProgramError for a row that is wrong."""
    found: dict[Operation, None] = {}
    for rows in _parts(program, TARGETS[target]):
        for text, layer in ((rows.before, 0), *((rows.layer, layer) for layer in range(layers)), (rows.after, layers)):
            for row in _expanded(text, TARGETS[target]):
                found[_parsed(row, layer, layers)] = None
    return found


def _parts(program: str, target: Target) -> tuple[Rows, ...]:
    match program:
        case "train":
            return CONTROL["train"], FORWARD, LOSS["train", target.masters], BACKWARD, UPDATES
        case "sweep":
            return CONTROL["sweep"], FORWARD, LOSS["sweep", target.masters]
        case "decode":
            return (STREAMED_TOKEN if target.streamed_decode else TOKEN,)
    return (Rows(before=GAME_OP),)


def _expanded(text: str, target: Target) -> Iterator[list[str]]:
    """The rows of `text`, those of operations in the place of an update."""
    for row in filter(None, map(str.split, text.split("\n"))):
        update = UPDATE[target.masters].get(row[0])
        if update:
            yield from _expanded(update.format(*row[1:]), target)
        else:
            yield row


def _parsed(row: list[str], layer: int, layers: int) -> Operation:
    op, _, decay = row[0].partition("/")
    operands = tuple(_view(text, layer, layers) for text in row[1:])
    if op not in OPCODES or len(operands) != len(OPS[OPCODES[op]].accesses):
        raise ProgramError("table", f"the row {' '.join(row)!r} of the model does not list the operands of its opcode")
    return Operation(op, decay == "decay", operands)


def _view(text: str, layer: int, layers: int) -> View | None:
    if text == "-":
        return None
    name, _, message = text.partition("#")
    generation = {"in": 2 * layer, "mid": 2 * layer + 1, "out": 2 * layer + 2, "@": layer, "": 0}[message]
    following = f"layers.{layer + 1}" if layer + 1 < layers else "norm"
    name = name.replace("@.out", f"{following}.in").replace("@", f"layers.{layer}")
    return View(name.rstrip("+"), name.count("+"), generation)


def _first_tasks(program: TaskProgram) -> list[int]:
    """The first task of every operation, in queue order."""
    tasks = program.tasks
    if not len(tasks):
        return []
    key = np.column_stack([tasks["opcode"], tasks["flags"] & ADAMW_DECAY, tasks["operands"]]).astype(np.int32)
    rows = np.ascontiguousarray(key).view(np.dtype((np.void, key.dtype.itemsize * key.shape[1]))).ravel()
    return sorted(np.unique(rows, return_index=True)[1].tolist())


def _operation(programs: ProgramSet, program: TaskProgram, task: int) -> Operation:
    row = program.tasks[task]
    op = OPS[int(row["opcode"])]
    views = tuple(None if index == abi.NONE_U16 else programs.views[index]
                  for index in row["operands"][: len(op.accesses)].tolist())
    return Operation(op.name, bool(row["flags"] & ADAMW_DECAY), views)


def _refuse_stranger(programs: ProgramSet, program: TaskProgram, task: int, found: Operation,
                     wanted: dict[Operation, None]) -> None:
    """Says in what `found` differs from the operation of the model that is most like it."""
    label = task_label(program, task)
    nearest = max(wanted, key=lambda other: _likeness(found, other))
    if found.op != nearest.op:
        fault = f"{label} is a {found.op} where the model has a {nearest.op}{_making(programs, nearest)}"
    elif found.operands != nearest.operands:
        slot = next(i for i, view in enumerate(found.operands) if view != nearest.operands[i])
        given, right = (_told(programs, operation.operands[slot]) for operation in (found, nearest))
        fault = f"operand {OPS[OPCODES[found.op]].accesses[slot].name} of {label} is {given}; it must be {right}"
    else:
        fault = f"{label} updates a parameter {'with' if found.decay else 'without'} weight decay; it must be the other"
    raise ProgramError("operation", f"{program.name}: {fault}", (label,), task)


def _likeness(one: Operation, other: Operation) -> tuple[int, bool]:
    same = sum(view == right for view, right in zip(one.operands, other.operands, strict=False))
    return same + (one.op == other.op), one.op == other.op


def _check_complete(programs: ProgramSet, program: TaskProgram, wanted: dict[Operation, None],
                    found: set[Operation]) -> None:
    for operation in wanted:
        if operation not in found:
            raise ProgramError("operation", f"{program.name}: no task is the {operation.op}"
                               f"{_making(programs, operation)}")


def _making(programs: ProgramSet, operation: Operation) -> str:
    """What tells an operation from others of its opcode."""
    op = OPS[OPCODES[operation.op]]
    if op.output is None:
        return ""
    return f" with {op.accesses[op.output].name} = {_told(programs, operation.operands[op.output])}"


def _told(programs: ProgramSet, view: View | None) -> str:
    if view is None:
        return "nothing"
    return describe_view(programs, view) if view.buffer in programs.buffers else view.buffer


def _check_parameters(programs: ProgramSet) -> None:
    """Parameters are listed in the order in which the model reads them; so they are given their first values."""
    read = [view.buffer for operation in operations("sweep", programs.target, programs.model.layers)
            for access, view in zip(OPS[OPCODES[operation.op]].accesses, operation.operands, strict=True)
            if view and access.name in ("table", "gain", "w")]
    for listed, wanted in zip_longest(programs.parameters, read, fillvalue=""):
        if listed != wanted:
            raise ProgramError("parameters", f"the list of parameters has {listed or 'no more'} where the model has "
                               f"{wanted or 'no more'}")
