"""What the operands of each opcode must be: kind, dtype, order of elements, extents.

A row of OPERANDS lists an opcode's operands in the order of `ops.OPS`, each as name:class[rows,columns]. An extent is a
number, an extent of the model (SIZES), a multiple of one, or a letter: equal letters of a row stand for equal extents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.accesses import ProgramError, task_label
from ofa_tui.program.ops import OPCODES, OPS, STATISTICS_TILE
from ofa_tui.program.types import Buffer, ProgramSet, TaskProgram

STORAGE = "storage"
"""Stands for the dtype in which the programs keep their matrices: the target's, or f4."""


@dataclass(frozen=True)
class OperandClass:
    kind: str
    dtype: str
    layout: str = "rows"


CLASSES: dict[str, OperandClass] = {
    "matrix": OperandClass("activation", STORAGE),
    "f4": OperandClass("activation", "f4"),
    "weight": OperandClass("weight", STORAGE),
    "gain": OperandClass("weight", "f4"),
    "stream": OperandClass("weight", STORAGE, "stream"),
    "master": OperandClass("master", "f4"),
    "moment": OperandClass("moment", "f4"),
    "gradient": OperandClass("gradient", "f4"),
    "ids": OperandClass("activation", "i4"),
    "cache": OperandClass("cache", STORAGE),
    "message": OperandClass("message", "packet"),
}

OPERANDS: dict[str, str] = {
    "embed": "table:weight[vocab,width] x:f4[positions,width]",
    "norm": "x:f4[positions,width] gain:gain[1,width] y:matrix[positions,width] rstd:f4[positions,1]",
    "matmul": "x:matrix[positions,width] w:weight[n,width] y:matrix[positions,n]",
    "matmul_residual": "x:matrix[positions,k] w:weight[width,k] skip:f4[positions,width] y:f4[positions,width]",
    "matmul_gelu":
        "x:matrix[positions,width] w:weight[inner,width] u:matrix[positions,inner] a:matrix[positions,inner]",
    "matmul_statistics":
        "x:matrix[positions,width] w:weight[vocab,width] y:matrix[positions,vocab] statistics:f4[positions,statistics]",
    "attention": "qkv:matrix[positions,3*width] o:matrix[positions,width] lse:f4[positions,heads]",
    "cross_entropy": "logits:matrix[positions,vocab] losses:f4[positions,1]",
    "cross_entropy_loss": "logits:matrix[positions,vocab] losses:f4[positions,1]",
    "cross_entropy_statistics":
        "logits:matrix[positions,vocab] statistics:f4[positions,statistics] losses:f4[positions,1]",
    "cross_entropy_loss_statistics":
        "logits:matrix[positions,vocab] statistics:f4[positions,statistics] losses:f4[positions,1]",
    "loss": "losses:f4[positions,1]",
    "sweep_loss": "losses:f4[positions,1]",
    "matmul_dx": "dy:matrix[positions,n] w:weight[n,width] dx:matrix[positions,width]",
    "matmul_dx_gelu":
        "dy:matrix[positions,width] w:weight[width,inner] u:matrix[positions,inner] du:matrix[positions,inner]",
    "matmul_dw": "dy:matrix[positions,n] x:matrix[positions,k] dw:gradient[n,k]",
    "matmul_dw_adamw": "dy:matrix[positions,n] x:matrix[positions,k] master:master[n,k] m:moment[n,k] v:moment[n,k] "
                       "w:weight[n,k] stream:stream[n,k]",
    "norm_backward": "dy:matrix[positions,width] x:f4[positions,width] rstd:f4[positions,1] gain:gain[1,width] "
                     "skip:matrix[positions,width] dx:matrix[positions,width] dgain:gradient[p,width]",
    "attention_backward": "qkv:matrix[positions,3*width] o:matrix[positions,width] lse:f4[positions,heads] "
                          "do:matrix[positions,width] dqkv:matrix[positions,3*width]",
    "embed_backward": "dx:matrix[positions,width] dtable:gradient[vocab,width]",
    "embed_adamw": "dx:matrix[positions,width] master:master[vocab,width] m:moment[vocab,width] "
                   "v:moment[vocab,width] table:weight[vocab,width]",
    "adamw": "grad:gradient[n,k] p:weight[n,k] p_next:weight[n,k] m:moment[n,k] v:moment[n,k]",
    "adamw_gain": "dgain:gradient[p,width] p:gain[1,width] p_next:gain[1,width] m:moment[1,width] v:moment[1,width] "
                  "grad:gradient[1,width]",
    "token_begin": "table:weight[vocab,width] x:f4[rows,width]",
    "decode_norm_matmul": "x:f4[rows,width] gain:gain[1,width] w:weight[n,width] y:f4[rows,n]",
    "decode_norm_matmul_gelu": "x:f4[rows,width] gain:gain[1,width] w:weight[inner,width] a:f4[rows,inner]",
    "decode_matmul_residual": "x:f4[rows,k] w:weight[width,k] skip:f4[rows,width] y:f4[rows,width]",
    "decode_attention": "qkv:f4[rows,3*width] k:cache[streams*context,width] v:cache[streams*context,width] "
                        "o:f4[rows,width]",
    "stream_begin": "table:weight[vocab,width] x:message[rows,width]",
    "stream_qkv": "x:message[rows,width] gain:gain[1,width] w:stream[3*width,width] k:cache[streams*context,width] "
                  "v:cache[streams*context,width] scores:message[u,rows*context]",
    "stream_attention": "scores:message[u,rows*context] v:cache[streams*context,width] o:message[rows,width]",
    "stream_matmul_residual": "x:message[rows,k] w:stream[width,k] skip:message[rows,width] y:message[rows,width]",
    "stream_norm_matmul_gelu": "x:message[rows,width] gain:gain[1,width] w:stream[inner,width] a:message[rows,inner]",
    "stream_norm_matmul": "x:message[rows,width] gain:gain[1,width] w:stream[vocab,width] y:f4[rows,vocab]",
    "sample_row": "logits:f4[rows,vocab] next:ids[rows,1]",
    "sample": "logits:f4[rows,vocab] next:ids[rows,1]",
}


@dataclass(frozen=True)
class Contract:
    name: str
    cls: OperandClass
    extents: tuple[str, str]


@cache
def contracts(op: str) -> tuple[Contract, ...]:
    """What the operands of `op` must be, in order. Raises ProgramError for an opcode whose row is missing or wrong."""
    found = [re.fullmatch(r"(\w+):(\w+)\[(\S+),(\S+)\]", item) for item in OPERANDS.get(op, "").split()]
    row = tuple(Contract(m[1], CLASSES[m[2]], (m[3], m[4])) for m in found if m)
    if [contract.name for contract in row] != [access.name for access in OPS[OPCODES[op]].accesses]:
        raise ProgramError("table", f"the row of {op} in OPERANDS does not list its operands")
    return row


def sizes(model: ModelConfig, train: TrainConfig, streams: int) -> dict[str, int]:
    """Extents by name: `positions` of a batch, `rows` of a pass of decoding, and those of the model."""
    return {
        "rows": abi.PASS_ROWS, "streams": streams,
        "positions": train.batch * model.context, "width": model.width, "inner": model.feed_forward,
        "vocab": model.vocab, "context": model.context, "heads": model.heads,
        "statistics": 2 * -(-model.vocab // STATISTICS_TILE),
    }


def check_extents(programs: ProgramSet, program: TaskProgram) -> None:
    """The operands of every task have the extents that its opcode and the model dictate. Raises ProgramError."""
    known = sizes(programs.model, programs.train, programs.streams)
    for task in _representatives(program):
        op, operands = _operands(programs, program, task)
        bound: dict[str, int] = {}
        for contract, (_, buffer) in zip(contracts(op), operands, strict=True):
            if buffer is None:
                continue
            for axis, (term, extent) in enumerate(zip(contract.extents, buffer.shape, strict=True)):
                wanted = bound.setdefault(term, extent) if len(term) == 1 and term.isalpha() else _value(term, known)
                if extent != wanted:
                    label, name = task_label(program, task), f"{contract.name} ({buffer.name})"
                    raise ProgramError("shape", f"{program.name}: operand {name} of {label} has {extent} "
                                       f"{('rows', 'columns')[axis]}, where {op} needs {term} = {wanted}", (label,))
        _check_units(programs, program, task, bound)


def _check_units(programs: ProgramSet, program: TaskProgram, task: int, bound: dict[str, int]) -> None:
    halves = int(program.tasks["tile"][task][1])
    if "u" in bound and bound["u"] != programs.model.heads * halves:
        label = task_label(program, task)
        raise ProgramError("shape", f"{program.name}: {label} divides a head into {halves}, but the scores have rows "
                           f"for {bound['u']} units of {programs.model.heads} heads", (label,))


def check_classes(programs: ProgramSet) -> None:
    """Kinds, dtypes and layouts. Raises ProgramError."""
    for program in programs.programs.values():
        for task in _representatives(program):
            op, operands = _operands(programs, program, task)
            label = task_label(program, task)
            for contract, (_, buffer) in zip(contracts(op), operands, strict=True):
                if buffer is None:
                    continue
                cls = contract.cls
                dtype = programs.storage if cls.dtype == STORAGE else cls.dtype
                if (buffer.kind, buffer.layout, buffer.dtype) != (cls.kind, cls.layout, dtype):
                    raise ProgramError(
                        "class", f"{program.name}: operand {contract.name} of {label} is {buffer.name}, of kind "
                        f"{buffer.kind}, dtype {buffer.dtype} and layout {buffer.layout}; {op} needs {cls.kind}, "
                        f"{dtype}, {cls.layout}", (label,))


def _representatives(program: TaskProgram) -> list[int]:
    """A task, the first, of every combination of opcode, operands and number of units."""
    tasks = program.tasks
    key = np.column_stack([tasks["opcode"], tasks["operands"], np.minimum(tasks["tile"][:, 1], 3)]).astype(np.int32)
    if not len(key):
        return []
    rows = np.ascontiguousarray(key).view(np.dtype((np.void, key.dtype.itemsize * key.shape[1]))).ravel()
    return sorted(np.unique(rows, return_index=True)[1].tolist())


def _operands(
    programs: ProgramSet, program: TaskProgram, task: int
) -> tuple[str, list[tuple[str, Buffer | None]]]:
    """Name of a task's opcode, and its operands by name; None for one that is left out."""
    op = OPS[int(program.tasks["opcode"][task])]
    indices = program.tasks["operands"][task].tolist()
    return op.name, [
        (access.name, None if index == abi.NONE_U16 else programs.buffers[programs.views[index].buffer])
        for access, index in zip(op.accesses, indices, strict=False)
    ]


def _value(term: str, known: dict[str, int]) -> int:
    return int(np.prod([int(factor) if factor.isdigit() else known[factor] for factor in term.split("*")]))
