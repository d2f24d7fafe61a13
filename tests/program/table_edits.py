"""Changes of what all tasks share: the operand table, buffers, and what a program set declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ofa_tui import abi
from ofa_tui.program.operands import CLASSES
from ofa_tui.program.types import ProgramSet
from tests.program.editing import Mutant, Rng, copied


def table_edits(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """One or two changes. Many are harmless: this class does not count."""
    mutant = copied(programs)
    return Mutant(mutant, "; ".join(rng.choice(EDITS)(mutant, rng) for _ in range(rng.choice([1, 1, 2]))))


def _edit_view(programs: ProgramSet, rng: Rng) -> str:
    """Another buffer of the same shape, for all tasks that have the operand."""
    index = rng.randrange(len(programs.views))
    old = programs.views[index]
    shape = programs.buffers[old.buffer].shape
    name = rng.choice([name for name, buffer in programs.buffers.items() if buffer.shape == shape])
    programs.views[index] = replace(old, buffer=name)
    return f"operand {index} was {old.buffer}, is {name}"


def _exchange_views(programs: ProgramSet, rng: Rng) -> str:
    """Two operands of the same shape and kind."""
    one = rng.randrange(len(programs.views))
    buffer = programs.buffers[programs.views[one].buffer]
    other = rng.choice([index for index, view in enumerate(programs.views)
                        if replace(programs.buffers[view.buffer], name=buffer.name) == buffer])
    programs.views[one], programs.views[other] = programs.views[other], programs.views[one]
    return f"operands {one} and {other} exchanged"


def _edit_buffer(programs: ProgramSet, rng: Rng) -> str:
    name = rng.choice(list(programs.buffers))
    old = programs.buffers[name]
    rows, columns = old.shape
    field, value = rng.choice([
        ("kind", rng.choice([cls.kind for cls in CLASSES.values()])), ("dtype", rng.choice(abi.DTYPES)),
        ("layout", rng.choice(abi.LAYOUTS)), ("copies", rng.randint(1, 4)), ("generations", rng.randint(1, 4)),
        ("shape", (rows + rng.choice([-1, 0, 16]), columns + rng.choice([-1, 0, 16]))),
    ])
    programs.buffers[name] = replace(old, **{field: value})
    return f"{field} of {name} is {value}"


def _edit_declared(programs: ProgramSet, rng: Rng) -> str:
    match rng.choice(["games", "storage", "claims", "counters", "parameters"]):
        case "games":
            programs.games += rng.choice([-1, 1])
            return f"{programs.games} games"
        case "storage":
            programs.storage = rng.choice(abi.DTYPES)
            return f"storage {programs.storage}"
        case "claims":
            program = rng.choice(list(programs.programs.values()))
            program.claims = rng.randrange(len(abi.CLAIMS))
            return f"{program.name} claimed as {abi.CLAIMS[program.claims]}"
        case "counters":
            programs.counters = programs.counters[:-1]
            return "one counter fewer"
    programs.parameters = rng.sample(programs.parameters, len(programs.parameters))
    return "parameters in another order"


EDITS: tuple[Callable[[ProgramSet, Rng], str], ...] = (
    _edit_view, _edit_view, _exchange_views, _edit_buffer, _edit_buffer, _edit_declared)
