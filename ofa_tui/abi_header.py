"""Writes the C++ side of `abi.py` and `program/ops.py`: two headers that the kernel includes.

`abi_header()` holds the structs, with a static_assert for every size and offset, and the named numbers;
`dispatch_header()` holds the switch from opcode to body.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import ADAMW_DECAY, OPS, STATISTICS_TILE

ABI_HEADER = "ofa_abi.h"
DISPATCH_HEADER = "ofa_dispatch.h"

_SCALARS = {
    "u1": "uint8_t", "i1": "int8_t", "u2": "uint16_t", "i2": "int16_t", "u4": "uint32_t", "i4": "int32_t",
    "u8": "uint64_t", "i8": "int64_t", "f4": "float", "f8": "double",
}

# Addresses are u8 in Python; the kernel sees them as pointers to what they point to.
_POINTERS = {
    "Program.tasks": "const Task*",
    "Operand.base": "uint8_t*",
    "Data.train_tokens": "const int32_t*",
    "Data.valid_tokens": "const int32_t*",
    "Data.train_windows": "const int64_t*",
    "Data.valid_windows": "const int64_t*",
    "Launch.operands": "const Operand*",
    "Launch.counters": "uint64_t*",
    "Launch.queues": "Queue*",
    "Launch.roles": "uint32_t*",
    "Launch.seats": "Seat*",
    "Launch.control": "const Control*",
    "Launch.telemetry": "Telemetry*",
    "Launch.losses": "float*",
    "Launch.step_end_ns": "uint64_t*",
    "Launch.sweep_sums": "double*",
    "Launch.sweep_counts": "uint64_t*",
    "Launch.serve": "ServeState*",
    "Launch.served": "Served*",
    "Launch.prompts": "const int32_t*",
    "Launch.frames": "uint8_t*",
    "Launch.doom_status": "DoomStatus*",
    "Launch.doom_commands": "DoomCommand*",
    "Launch.doom_seats": "DoomSeat*",
    "Launch.doom_wad": "const uint8_t*",
    "Launch.doom_games": "uint8_t*",
    "Launch.doom_snapshots": "uint8_t*",
    "Launch.scratch": "uint8_t*",
    "Launch.timeline": "TimelineEntry*",
}


def layout() -> list[int]:
    """Size of every struct followed by the offset of each of its fields, in the order of abi.STRUCTS."""
    numbers: list[int] = []
    for dtype in abi.STRUCTS.values():
        numbers.append(dtype.itemsize)
        numbers += [offset for _, offset in _offsets(dtype)]
    return numbers


def _offsets(dtype: np.dtype) -> Iterator[tuple[str, int]]:
    assert dtype.fields is not None and dtype.names is not None
    for name in dtype.names:
        yield name, dtype.fields[name][1]


def _type_name(struct: str, field: str, base: np.dtype) -> str:
    pointer = _POINTERS.get(f"{struct}.{field}")
    if pointer:
        return pointer
    if base.fields is None:
        return _SCALARS[base.str[1:]]
    for name, dtype in abi.STRUCTS.items():
        if dtype == base:
            return name
    raise TypeError(f"{struct}.{field} is of a struct that abi.STRUCTS does not name")


def _struct(name: str, dtype: np.dtype) -> list[str]:
    assert dtype.fields is not None and dtype.names is not None
    lines = [f"struct {name} {{"]
    for field in dtype.names:
        kind = dtype.fields[field][0]
        dimensions = "".join(f"[{n}]" for n in kind.shape)
        lines.append(f"    {_type_name(name, field, kind.base)} {field}{dimensions};")
    lines.append("};")
    lines.append(f"static_assert(sizeof({name}) == {dtype.itemsize});")
    lines += [f"static_assert(offsetof({name}, {field}) == {offset});" for field, offset in _offsets(dtype)]
    return [*lines, ""]


def _numbering(prefix: str, names: tuple[str, ...]) -> list[str]:
    rows = [f"    {prefix}_{name.upper()} = {index}," for index, name in enumerate(names)]
    rows.append(f"    {prefix}_COUNT = {len(names)},")
    return [f"enum {prefix.title()}Number : uint32_t {{", *rows, "};", ""]


def abi_header() -> str:
    """The structs and named numbers, as C++."""
    lines = [
        "// Generated from ofa_tui/abi.py and ofa_tui/program/ops.py.",
        "#pragma once",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "namespace ofa {",
        "",
    ]
    for name in (
        "MAX_SMS", "MAX_WAITS", "MAX_OPERANDS", "MAX_GAMES", "EVENT_RING", "PROMPT_SLOTS", "MAX_STREAMS", "PASS_ROWS",
        "SERVED_RING", "FRAME_SLOTS", "FRAME_WIDTH", "FRAME_HEIGHT", "COMMAND_RING", "NONE_U16", "NONE_U32",
        "SERVED_PROMPT", "SERVED_FIRST",
        "COUNTER_STRIDE", "ABORT_DEADLINE", "ABORT_OPCODE", "ABORT_CHECK", "PHASE_IDLE", "PHASE_WAITING",
        "PHASE_RUNNING", "HOLD_NUMBERS", "TIMELINE_BATCH", "TIMELINE_TASKS", "TIMELINE_TOGETHER",
    ):
        lines.append(f"constexpr uint32_t {name} = {getattr(abi, name)}u;")
    lines += [
        f"constexpr uint64_t NONE_U64 = {abi.NONE_U64:#x}ull;",
        f"constexpr int32_t ALL_STREAMS = {abi.ALL_STREAMS};",
        f"constexpr uint32_t ADAMW_DECAY = {ADAMW_DECAY}u;",
        "constexpr uint32_t FENCE_BEFORE = 0x40u, FENCE_AFTER = 0x80u;",
        f"constexpr uint32_t STATISTICS_TILE = {STATISTICS_TILE}u;",
        "",
        *_numbering("ROLE", abi.ROLES),
        *_numbering("PROGRAM", abi.PROGRAMS),
        *_numbering("CLOCK", abi.CLOCKS),
        *_numbering("ACTION", abi.ACTIONS),
        *_numbering("DTYPE", abi.DTYPES),
        *_numbering("LAYOUT", abi.LAYOUTS),
        *_numbering("CLAIM", abi.CLAIMS),
        *_numbering("OPCODE", tuple(op.name for op in OPS)),
    ]
    for name in abi.STRUCTS:
        lines.append(f"struct {name};")
    lines.append("")
    for name, dtype in abi.STRUCTS.items():
        lines += _struct(name, dtype)
    terms = []
    for name, dtype in abi.STRUCTS.items():
        terms.append(f"  sizeof({name}),")
        terms += [f"  offsetof({name}, {field})," for field, _ in _offsets(dtype)]
    lines += [f"#define OFA_LAYOUT_COUNT {len(terms)}", "#define OFA_LAYOUT \\"]
    lines += [f"{term} \\" for term in terms] + ["", "}  // namespace ofa", ""]
    return "\n".join(lines)


def dispatch_header() -> str:
    """`run_body`, which calls the body of a task's opcode; false for an opcode that does not exist."""
    lines = [
        "// Generated from ofa_tui/program/ops.py; included by megakernel.cu after the bodies.",
        "#pragma once",
        "",
        "namespace ofa {",
        "",
        "OFA_FUNCTION bool run_body(Block& block, const TaskContext& ctx) {",
        "    switch (ctx.task->opcode) {",
    ]
    for op in OPS:
        case = f"OPCODE_{op.name.upper()}"
        lines += [f"    case {case}:", f"        {op.symbol}(block, ctx);", "        return true;"]
    lines += ["    default:", "        return false;", "    }", "}", "", "}  // namespace ofa", ""]
    return "\n".join(lines)


def headers() -> dict[str, str]:
    """File name and text of each generated header."""
    return {ABI_HEADER: abi_header(), DISPATCH_HEADER: dispatch_header()}


def write_headers(folder: Path) -> None:
    """Writes the generated headers into `folder`, which becomes an include path of the compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in headers().items():
        (folder / name).write_text(text)
