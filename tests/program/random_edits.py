"""Changes of any field to anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ofa_tui.program.types import ProgramSet
from tests.program.editing import (
    Mutant,
    Place,
    Rng,
    copied,
    insert,
    label_at,
    operands,
    places,
    remove,
    reorder,
    set_operand,
    task_at,
)


def random_edits(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """One to three changes of any field. Many are harmless: this class does not count."""
    mutant = copied(programs)
    done = [rng.choice(EDITS)(mutant, rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return Mutant(mutant, "; ".join(done))


def _any_place(programs: ProgramSet, rng: Rng) -> Place:
    return rng.choice(places(programs, lambda task, op: True))


def _edit_wait(programs: ProgramSet, rng: Rng) -> str:
    place = rng.choice(places(programs, lambda task, op: task["n_waits"] > 0))
    task = task_at(programs, place)
    slot, column = rng.randrange(int(task["n_waits"])), rng.choice(["first", "count", "n", "lag"])
    old = int(task["waits"][slot][column])
    task["waits"][slot][column] = max(0, old + rng.choice([-2, -1, 1, 2]))
    return f"{label_at(programs, place)}: {column} of wait {slot} was {old}"


def _edit_tile(programs: ProgramSet, rng: Rng) -> str:
    place, axis = _any_place(programs, rng), rng.randrange(4)
    tile = task_at(programs, place)["tile"]
    old = int(tile[axis])
    tile[axis] += rng.choice([-16, -1, 1, 16])
    return f"{label_at(programs, place)}: tile[{axis}] was {old}"


def _edit_operand(programs: ProgramSet, rng: Rng) -> str:
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses)))
    slot, _, old = rng.choice(operands(programs, place))
    shape = programs.buffers[old.buffer].shape
    like = [view for view in programs.views if programs.buffers[view.buffer].shape == shape and view != old]
    set_operand(programs, place, slot, rng.choice(like or programs.views))
    return f"{label_at(programs, place)}: operand {slot} was {old}"


def _edit_number(field: str, choices: Callable[[ProgramSet, str], list[int]]) -> Callable[[ProgramSet, Rng], str]:
    def edit(programs: ProgramSet, rng: Rng) -> str:
        place = _any_place(programs, rng)
        task = task_at(programs, place)
        old, task[field] = int(task[field]), rng.choice(choices(programs, place[0]))
        return f"{label_at(programs, place)}: {field} was {old}"

    return edit


def _edit_queue(programs: ProgramSet, rng: Rng) -> str:
    place = _any_place(programs, rng)
    label, n = label_at(programs, place), len(programs.programs[place[0]].tasks)
    match rng.choice(["remove", "repeat", "move"]):
        case "remove":
            remove(programs, place)
            return f"{label} removed"
        case "repeat":
            insert(programs, (place[0], rng.randrange(n + 1)), task_at(programs, place), f"twin of {label}")
            return f"{label} repeated"
    order = list(range(n))
    order.insert(rng.randrange(n), order.pop(place[1]))
    reorder(programs, place[0], order)
    return f"{label} moved"


def _edit_view(programs: ProgramSet, rng: Rng) -> str:
    field, kind = rng.choice([("rotation", "weight"), ("generation", "message")])
    index = rng.choice([index for index, view in enumerate(programs.views)
                        if programs.buffers[view.buffer].kind == kind] or [0])
    old = programs.views[index]
    programs.views[index] = replace(old, **{field: rng.randrange(3)})
    return f"view {index} was {old}"


def _edit_buffer(programs: ProgramSet, rng: Rng) -> str:
    name = rng.choice(sorted(name for name, buffer in programs.buffers.items() if buffer.kind in ("weight", "message")))
    old = programs.buffers[name]
    changes = [("copies", 1), ("copies", 2), ("layout", "stream" if old.layout == "rows" else "rows")]
    if old.kind == "message":
        changes = [("generations", max(1, old.generations - 1)), ("generations", old.generations + 1)]
    field, value = rng.choice(changes)
    programs.buffers[name] = replace(old, **{field: value})
    return f"{field} of {name} is {value}"


def _edit_n_waits(programs: ProgramSet, rng: Rng) -> str:
    place = rng.choice(places(programs, lambda task, op: task["n_waits"] > 0))
    task_at(programs, place)["n_waits"] -= 1
    return f"{label_at(programs, place)}: one wait fewer"


EDITS: tuple[Callable[[ProgramSet, Rng], str], ...] = (
    _edit_wait, _edit_wait, _edit_n_waits, _edit_tile, _edit_operand, _edit_queue, _edit_view, _edit_buffer,
    _edit_number("signal", lambda programs, name: programs.programs[name].tasks["signal"].tolist()),
    _edit_number("flags", lambda programs, name: programs.programs[name].tasks["flags"].tolist()),
    _edit_number("lane", lambda programs, name: programs.programs[name].tasks["lane"].tolist()),
    _edit_number("opcode", lambda programs, name: programs.programs[name].tasks["opcode"].tolist()),
)
