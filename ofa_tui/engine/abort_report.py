"""The abort record and the table of SMs, as text for people."""

from __future__ import annotations

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import describe_view
from ofa_tui.program.ops import OPS
from ofa_tui.program.types import ProgramSet

PHASES = ("idle", "waiting", "running")
UNITS = {"train": "step", "sweep": "sweep batch", "decode": "token", "doom": "tic"}


def abort_text(telemetry: np.void, programs: ProgramSet, n_sms: int) -> str:
    """What stopped the run, then one line per SM."""
    return "\n".join([_cause(telemetry["abort"], programs), *sm_lines(telemetry, n_sms)])


def _cause(record: np.void, programs: ProgramSet) -> str:
    code = int(record["code"])
    if code == 0:
        return "the run was stopped before its blocks had come to an end"
    name = abi.PROGRAMS[record["program"]]
    labels = programs.programs[name].labels
    task = int(record["task"])
    label = labels[task] if task < len(labels) else f"task {task}"
    where = (
        f"{label} (task {task} of {name}, {UNITS[name]} {int(record['iteration'])}) on SM {int(record['sm'])}, "
        f"role {abi.ROLES[record['role']]}"
    )
    seen, expected = int(record["seen"]), int(record["expected"])
    if code == abi.ABORT_DEADLINE:
        what = _awaited(programs, int(record["counter"]))
        return f"{where} waited for {what} to reach {expected} until the deadline; it stood at {seen}"
    if code == abi.ABORT_OPCODE:
        return f"{where} has opcode {seen}; only {expected} exist"
    return f"{where} needs at least {expected} and has {seen}: its scratch memory is too small"


def _awaited(programs: ProgramSet, number: int) -> str:
    """What ABORT.counter stands for."""
    counters, views = programs.counters, programs.views
    if number < len(counters):
        return f"counter {counters[number]}"
    operand = number - len(counters)
    return describe_view(programs, views[operand]) if operand < len(views) else "its turn"


def sm_lines(telemetry: np.void, n_sms: int) -> list[str]:
    """`SM  role  phase  task ...` for every SM, with how long ago it gave a sign of life."""
    rows = telemetry["sms"][:n_sms]
    newest = int(rows["heartbeat_ns"].max()) if n_sms else 0
    lines = []
    for sm, row in enumerate(rows):
        opcode = int(row["opcode"])
        doing = f"{OPS[opcode].name} #{row['task']} @{row['iteration']}" if opcode < len(OPS) else "-"
        silent = (newest - int(row["heartbeat_ns"])) / 1e9
        lines.append(
            f"SM {sm:3d}  {abi.ROLES[row['role']]:5s}  {PHASES[row['phase']]:7s}  {doing}  "
            f"{int(row['tasks_done'])} done, quiet for {silent:.1f} s"
        )
    return lines
