"""Changes of whole operations, all tasks of them alike: programs that run the same in any order but compute something
else."""

from __future__ import annotations

from dataclasses import replace

from ofa_tui import abi
from ofa_tui.program.operands import contracts
from ofa_tui.program.ops import ADAMW_DECAY, OPCODES, OPS
from ofa_tui.program.types import ProgramSet
from tests.program.editing import (
    Mutant,
    Place,
    Rng,
    adapt_counts,
    copied,
    label_at,
    node_of,
    op_at,
    operands,
    places,
    remove,
    set_operand,
    task_at,
)


def another_model(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """An operation has another operand, opcode or decay, or is left out, or a game is. Not outputs that no task of
    their program reads."""
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses) or op.name == "doom_tic"))
    change = rng.choice([_other_operand, _other_operand, _other_operand, _other_opcode, _other_decay, _left_out])
    node = [(place[0], index) for index in node_of(programs, place)]
    mutant = copied(programs)
    what = change(mutant, place, [place] if op_at(programs, place).name == "doom_tic" else node, rng)
    return Mutant(mutant, f"{label_at(programs, place)} and its like: {what}") if what else None


def _other_operand(programs: ProgramSet, place: Place, node: list[Place], rng: Rng) -> str:
    read = {view for at in range(len(programs.programs[place[0]].tasks))
            for _, access, view in operands(programs, (place[0], at)) if "r" in access.mode}
    used = [(slot, view) for slot, access, view in operands(programs, place) if view in read or view.rotation]
    if not used:
        return ""
    slot, old = rng.choice(used)
    buffer = programs.buffers[old.buffer]
    others = [view for view in programs.views
              if view != old and replace(programs.buffers[view.buffer], name=buffer.name) == buffer]
    if not others:
        return ""
    view = rng.choice(others)
    for at in node:
        set_operand(programs, at, slot, view)
    return f"operand {slot} was {old}, is {view}"


def _other_opcode(programs: ProgramSet, place: Place, node: list[Place], rng: Rng) -> str:
    """One that takes operands of the same classes."""
    old = op_at(programs, place)
    classes = [contract.cls for contract in contracts(old.name)] if old.accesses else []
    alike = [op for op in OPS if op.accesses and op != old and op.target == old.target
             and [contract.cls for contract in contracts(op.name)] == classes]
    if not alike:
        return ""
    op = rng.choice(alike)
    for at in node:
        task_at(programs, at)["opcode"] = OPCODES[op.name]
    return f"{op.name} instead of {old.name}"


def _other_decay(programs: ProgramSet, place: Place, node: list[Place], rng: Rng) -> str:
    if not task_at(programs, place)["flags"] & ADAMW_DECAY:
        return ""
    for at in node:
        task_at(programs, at)["flags"] ^= ADAMW_DECAY
    return "no decay"


def _left_out(programs: ProgramSet, place: Place, node: list[Place], rng: Rng) -> str:
    signals = [int(task_at(programs, at)["signal"]) for at in node]
    for counter in set(signals) - {abi.NONE_U32}:
        if not adapt_counts(programs, counter, -signals.count(counter)):
            return ""
    for at in reversed(node):
        remove(programs, at)
    return "left out"
