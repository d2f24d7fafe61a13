"""Classes of small mistakes in compiled programs, each of which makes some interleaving go wrong.

A class is a function that makes one mistake in a random place of a copy, or returns None where the place is of no use.
Places in which the mistake would be harmless are left out: each class says in its docstring which.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from ofa_tui import abi
from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE
from ofa_tui.program.types import ProgramSet, View
from tests.program.cells import Outside
from tests.program.editing import (
    Mutant,
    Place,
    Rng,
    adapt_counts,
    adapted,
    copied,
    insert,
    label_at,
    new_counter,
    node_of,
    op_at,
    operands,
    places,
    producers,
    remove,
    reorder,
    set_operand,
    set_waits,
    task_at,
    touches_of,
    waiters,
    waits_of,
    writes_for,
)
from tests.program.random_edits import random_edits

OPENS_TRAINING = ("step_begin", "sweep_begin")
"""They also wait for what the schedule says, so that the waits of theirs can be dispensed with."""
CONTROL = (*OPENS_TRAINING, "publish", "sweep_loss", "token_begin", "stream_begin", "sample", "doom_tic")


# --- waits and counters ----------------------------------------------------------------------------------------------


def dropped_wait(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """Not the waits that the schedule makes superfluous."""
    place = rng.choice(places(programs, lambda task, op: task["n_waits"] > 0 and op.name not in OPENS_TRAINING))
    mutant = copied(programs)
    task = task_at(mutant, place)
    waits = waits_of(task)
    first, count, n, _ = waits.pop(rng.randrange(len(waits)))
    set_waits(task, waits)
    return Mutant(mutant, f"{label_at(programs, place)} does not wait for {count} of {programs.counters[first]}",
                  (place,), producers(programs, range(first, first + n)))


def dropped_order_of_a_reader(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A write-after-read edge between iterations.

    A reader's signal leaves the join that the next step waits for, or the step is published or the token begun after an
    earlier stage than the one that reads last.
    """
    kind = rng.choice(["reader", "publish", "token"])
    mutant = copied(programs)
    if kind == "reader":
        last = next(place for place in places(programs, lambda task, op: op.name == "publish"))
        join = waits_of(task_at(programs, last))[0][0]
        place = rng.choice(producers(programs, range(join, join + 1)))
        task_at(mutant, place)["signal"] = abi.NONE_U32
        if not adapt_counts(mutant, join, -1):
            return None
        return Mutant(mutant, f"{label_at(programs, place)} is not waited for", (), (place,))
    name, op_names = ("train", ("publish",)) if kind == "publish" else ("decode", ("token_begin", "stream_begin"))
    place = next(place for place in places(programs, lambda task, op: op.name in op_names))
    (first, _, n, lag), = waits_of(task_at(programs, place))
    earlier = [int(signal) for signal in programs.programs[name].tasks["signal"]
               if signal not in (abi.NONE_U32, first)]
    if kind == "publish":
        opening = int(programs.programs[name].tasks["signal"][0])
        earlier = [counter for counter in earlier if counter != opening]
    if not earlier:
        return None
    other = rng.choice(earlier)
    set_waits(task_at(mutant, place), [(other, len(producers(programs, range(other, other + 1))), 1, lag)])
    return Mutant(mutant, f"{label_at(programs, place)} waits for {programs.counters[other]} instead",
                  (place,), producers(programs, range(first, first + n)))


def unawaited_reader(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """Twins of a node's tasks that read the same, write into buffers of their own, and that nobody waits for, except
    their own next iteration where a descriptor has room: what they read may be written again while they still run.
    """
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses) and op.name not in CONTROL))
    used = operands(programs, place)
    if any(access.mode == "rw" for _, access, _ in used):
        return None
    node = node_of(programs, place)
    name, behind = place[0], node[-1] + 1
    mutant = copied(programs)
    signal = new_counter(mutant, "twins")
    for _, access, view in used:
        if access.mode == "w":
            buffer = replace(programs.buffers[view.buffer], name=f"{view.buffer}.twin")
            mutant.buffers[buffer.name] = buffer
    for at, index in enumerate(node, behind):
        twin = task_at(programs, (name, index)).copy()
        twin["signal"] = signal
        set_waits(twin, [*waits_of(twin), (signal, len(node), 1, 1)])
        insert(mutant, (name, at), twin, f"twin of {label_at(programs, (name, index))}")
        for slot, access, view in used:
            if access.mode == "w":
                set_operand(mutant, (name, at), slot, replace(view, buffer=f"{view.buffer}.twin"))
    late = rng.randrange(behind, behind + len(node))
    return Mutant(mutant, f"nobody waits for a twin of {label_at(programs, place)}", (), ((name, late),))


def wrong_step(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A wait for another iteration. Not one further back for tasks that wait for the schedule anyway."""
    place = rng.choice(places(programs, lambda task, op: task["n_waits"] > 0))
    mutant = copied(programs)
    task = task_at(mutant, place)
    waits = waits_of(task)
    slot = rng.randrange(len(waits))
    first, count, n, lag = waits[slot]
    wrong = rng.choice([other for other in (0, 1, 2) if other != lag])
    if wrong > lag and op_at(programs, place).name in OPENS_TRAINING:
        return None
    waits[slot] = first, count, n, wrong
    set_waits(task, waits)
    return Mutant(mutant, f"{label_at(programs, place)} waits for the iteration {wrong} before", (place,),
                  producers(programs, range(first, first + n)))


def off_by_one(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A count, first counter or number of counters. Not one counter more, which is only slower; not less for tasks that
    wait for the schedule anyway."""
    place = rng.choice(places(programs, lambda task, op: task["n_waits"] > 0))
    mutant = copied(programs)
    task = task_at(mutant, place)
    waits = waits_of(task)
    slot = rng.randrange(len(waits))
    first, count, n, lag = waits[slot]
    column, by = rng.choice([("count", 1), ("count", -1), ("first", 1), ("first", -1), ("n", -1)])
    if op_at(programs, place).name in OPENS_TRAINING and (column, by) != ("count", 1):
        return None
    changed = {"first": first, "count": count, "n": n} | {column: {"first": first, "count": count, "n": n}[column] + by}
    if not 0 <= changed["first"] <= len(programs.counters) - changed["n"]:
        return None
    waits[slot] = changed["first"], changed["count"], changed["n"], lag
    set_waits(task, waits)
    lost = {"first": range(first, first + n), "count": range(first, first + n), "n": range(first + n - 1, first + n)}
    left_out = producers(programs, lost[column])
    if column == "count" and left_out:
        left_out = (rng.choice(left_out),)
    return Mutant(mutant, f"{label_at(programs, place)}: {column} of wait {slot} {by:+d}", (place,), left_out)


def merged_counters(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """Tasks of one counter signal another that is waited for as before, so that neither is a join any more."""
    program = rng.choice([program for program in programs.programs.values() if len(program.tasks)])
    signals = sorted({int(signal) for signal in program.tasks["signal"]} - {abi.NONE_U32})
    if len(signals) < 2:
        return None
    from_, to = rng.sample(signals, 2)
    mutant = copied(programs)
    tasks = mutant.programs[program.name].tasks
    tasks["signal"][tasks["signal"] == from_] = to
    for task in tasks:
        parts = [part for wait in waits_of(task) for part in adapted(wait, from_, 0)]
        if not set_waits(task, [(to if first == from_ else first, *rest) for first, *rest in parts]):
            return None
    late = producers(programs, range(to, to + 1))
    return Mutant(mutant, f"signals for {programs.counters[from_]} go to {programs.counters[to]}",
                  waiters(programs, to), late)


def half_a_join(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """The producers of a counter are divided between it and a new one; one who waited for all waits for a half.

    Not for a half that has all it reads.
    """
    joins = [int(signal) for program in programs.programs.values() for signal in set(program.tasks["signal"].tolist())
             if signal != abi.NONE_U32]
    counter = rng.choice(joins)
    group = producers(programs, range(counter, counter + 1))
    if len(group) < 2:
        return None
    reader = rng.choice(waiters(programs, counter))
    moved = rng.sample(group, rng.randrange(1, len(group)))
    if op_at(programs, reader).name not in CONTROL and not any(writes_for(programs, place, reader) for place in moved):
        return None
    mutant = copied(programs)
    new = new_counter(mutant, f"{programs.counters[counter]}, second half")
    for place in moved:
        task_at(mutant, place)["signal"] = new
    for place in waiters(programs, counter):
        task = task_at(mutant, place)
        lag = next(lag for first, _, n, lag in waits_of(task) if first <= counter < first + n)
        rest = [part for wait in waits_of(task) for part in adapted(wait, counter, -len(moved))]
        if not set_waits(task, rest if place == reader else [*rest, (new, len(moved), 1, lag)]):
            return None
    return Mutant(mutant, f"{label_at(programs, reader)} waits for {len(group) - len(moved)} of {len(group)} tasks, a "
                  "counter of their own", (reader,), tuple(moved))


def wrong_signal(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task signals a counter of another group of its program."""
    place = rng.choice(places(programs, lambda task, op: task["signal"] != abi.NONE_U32))
    others = set(programs.programs[place[0]].tasks["signal"].tolist()) - {int(task_at(programs, place)["signal"])}
    others -= {abi.NONE_U32}
    if not others:
        return None
    mutant = copied(programs)
    signal = task_at(mutant, place)["signal"] = rng.choice(sorted(others))
    return Mutant(mutant, f"{label_at(programs, place)} signals {programs.counters[signal]}",
                  waiters(programs, signal), (place,))


def cross_queue_cycle(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """Two queues that wait for each other, each of them fine alone."""
    names = rng.sample([name for name, program in programs.programs.items() if len(program.tasks)], 2)
    if "sweep" in names:
        return None
    (first, last), (other_first, other_last) = (_chain(programs, name, rng) for name in names)
    mutant = copied(programs)
    for early, late in ((first, other_last), (other_first, last)):
        counter = int(task_at(programs, late)["signal"])
        task = task_at(mutant, early)
        count = len(producers(programs, range(counter, counter + 1)))
        if not set_waits(task, [*waits_of(task), (counter, count, 1, 0)]):
            return None
    return Mutant(mutant, f"{label_at(programs, first)} waits for {label_at(programs, other_last)} and "
                  f"{label_at(programs, other_first)} for {label_at(programs, last)}")


def _chain(programs: ProgramSet, name: str, rng: Rng) -> tuple[Place, Place]:
    """A task and one that waits for it, at once or by way of others; the same where none waits for another."""
    waiting = places(programs, lambda task, op: any(lag == 0 for _, _, _, lag in waits_of(task)))
    choices = [place for place in waiting if place[0] == name and task_at(programs, place)["signal"] != abi.NONE_U32]
    if not choices:
        return (name, 0), (name, 0)
    first = last = rng.choice(choices)
    for _ in range(rng.randint(1, 6)):
        before = [place for start, _, n, lag in waits_of(task_at(programs, first)) if not lag
                  for place in producers(programs, range(start, start + n))]
        if not before:
            break
        first = rng.choice(before)
    return first, last


# --- the queue and its tiles -----------------------------------------------------------------------------------------


def swapped_order(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task and one of those it waits for, or whose message it reads, change places."""
    place = rng.choice(places(programs, lambda task, op: op.name not in CONTROL))
    name, index = place
    task = task_at(programs, place)
    before = [at for first, _, n, lag in waits_of(task) if not lag
              for _, at in producers(programs, range(first, first + n))]
    before += [at for at in range(index) if _sends_to(programs, (name, at), place)]
    before = [at for at in before if op_at(programs, (name, at)).name not in CONTROL]
    if not before:
        return None
    other = rng.choice(before)
    order = list(range(len(programs.programs[name].tasks)))
    order[index], order[other] = other, index
    mutant = copied(programs)
    reorder(mutant, name, order)
    return Mutant(mutant, f"{label_at(programs, place)} before {label_at(programs, (name, other))}")


def _sends_to(programs: ProgramSet, sender: Place, reader: Place) -> bool:
    if programs.programs[sender[0]].claims != abi.CLAIM_OWNED:
        return False
    return writes_for(programs, sender, reader)


def missing_tile(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """With and without the counts adapted."""
    place = rng.choice(places(programs, lambda task, op: op.name not in CONTROL))
    mutant = copied(programs)
    signal, adapt = int(task_at(programs, place)["signal"]), rng.random() < 0.5
    remove(mutant, place)
    if signal != abi.NONE_U32 and adapt and not adapt_counts(mutant, signal, -1):
        return None
    return Mutant(mutant, f"no {label_at(programs, place)}{', counts adapted' if adapt else ''}")


def duplicate_tile(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """With and without the counts adapted, the twin somewhere behind the task."""
    place = rng.choice(places(programs, lambda task, op: op.name not in CONTROL))
    name, index = place
    mutant = copied(programs)
    signal, adapt = int(task_at(programs, place)["signal"]), rng.random() < 0.5
    at = rng.randint(index + 1, min(index + 5, len(programs.programs[name].tasks) - 1))
    insert(mutant, (name, at), task_at(programs, place), f"twin of {label_at(programs, place)}")
    if signal != abi.NONE_U32 and adapt and not adapt_counts(mutant, signal, 1):
        return None
    return Mutant(mutant, f"twin of {label_at(programs, place)}{', counts adapted' if adapt else ''}",
                  (place, (name, at)))


def region_off_by_one(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A tile a row or column further, longer or shorter. Not along an axis that the task does not look at."""
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses) or op.name == "doom_tic"))
    axis, by = rng.randrange(4), rng.choice([-1, 1])
    mutant = copied(programs)
    task_at(mutant, place)["tile"][axis] += by
    try:
        if touches_of(mutant, place) == touches_of(programs, place):
            return None
    except Outside:
        pass
    word = ("row0", "rows", "col0", "cols")[axis]
    return Mutant(mutant, f"{label_at(programs, place)}: {word} {by:+d}", (place,))


# --- versions --------------------------------------------------------------------------------------------------------


def early_unpin(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """`sample`, which lets the version go, does not wait for all that read weights, and perhaps stands earlier."""
    return _too_early(programs, "decode", rng)


def early_publish(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """`publish` does not wait for every weight, and perhaps stands earlier."""
    return _too_early(programs, "train", rng)


def _too_early(programs: ProgramSet, name: str, rng: Rng) -> Mutant:
    """The last task of a program does not wait for the one join it should wait for."""
    mutant = copied(programs)
    at = len(programs.programs[name].tasks) - 1
    task = task_at(mutant, (name, at))
    (join, count, _, _), = waits_of(task)
    awaited = producers(programs, range(join, join + 1))
    late = (rng.choice(awaited),)
    match how := rng.choice(["nothing", "fewer", "half", "a stage before"]):
        case "nothing":
            set_waits(task, [])
        case "fewer":
            set_waits(task, [(join, rng.randrange(1, count), 1, 0)])
        case "half":
            late = tuple(rng.sample(awaited, rng.randrange(1, count)))
            new = new_counter(mutant, f"{name}: a half of {programs.counters[join]}")
            for place in late:
                task_at(mutant, place)["signal"] = new
            set_waits(task, [(join, count - len(late), 1, 0)])
        case "a stage before":
            signal, producers_of_it = _stage_before(mutant, name, join, rng)
            set_waits(task, [(signal, producers_of_it, 1, 0)])
    if rng.random() < 0.25:
        to = rng.randrange(1, at)
        reorder(mutant, name, [*range(to), at, *range(to, at)])
        late, at = tuple((name, index + (index >= to)) for _, index in late), to
    return Mutant(mutant, f"{mutant.programs[name].labels[at]} at {at} waits for {how}", ((name, at),), late)


def _stage_before(programs: ProgramSet, name: str, join: int, rng: Rng) -> tuple[int, int]:
    """A counter that is complete before `join`, and how many signal it; for tasks that send messages a new one."""
    tasks = programs.programs[name].tasks
    last = int(tasks["signal"][-1])
    index = rng.choice([index for index in range(1, len(tasks)) if tasks["signal"][index] not in (join, last)])
    if tasks["signal"][index] == abi.NONE_U32:
        tasks["signal"][node_of(programs, (name, index))] = new_counter(programs, f"{name}: a stage")
    signal = int(tasks["signal"][index])
    return signal, int((tasks["signal"] == signal).sum())


def wrong_rotation(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task reads or writes another version of a weight than it should."""
    place = rng.choice(places(programs, lambda task, op: any("weight" not in access.name for access in op.accesses)))
    weights = [(slot, view) for slot, _, view in operands(programs, place)
               if programs.buffers[view.buffer].kind == "weight"]
    if not weights:
        return None
    slot, view = rng.choice(weights)
    wrong = rng.choice([rotation for rotation in (0, 1, 2) if rotation != view.rotation])
    mutant = copied(programs)
    set_operand(mutant, place, slot, replace(view, rotation=wrong))
    return Mutant(mutant, f"{label_at(programs, place)}: version + {wrong} of {view.buffer}", (place,))


def fewer_copies(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """Two are enough for weights that training alone reads."""
    served = {view.buffer for index in range(len(programs.programs["decode"].tasks))
              for _, _, view in operands(programs, ("decode", index))}
    name, copies = rng.choice([(name, copies) for name, buffer in programs.buffers.items() if buffer.copies > 1
                               for copies in (1, 2) if copies == 1 or name in served])
    mutant = copied(programs)
    mutant.buffers[name] = replace(mutant.buffers[name], copies=copies)
    decode = places(programs, lambda task, op: op.name in ("token_begin", "stream_begin"))
    readers = [place for place in places(programs, lambda task, op: bool(op.accesses))
               if place[0] == "decode" and any(view.buffer == name for _, _, view in operands(programs, place))]
    return Mutant(mutant, f"{copies} copies of {name}", tuple(decode), tuple(readers))


# --- operands --------------------------------------------------------------------------------------------------------


def output_elsewhere(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task writes into another buffer of the same kind, shape and dtype."""
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses)))
    outputs = [(slot, view) for slot, access, view in operands(programs, place)
               if access.mode == "w" and programs.buffers[view.buffer].kind != "message"]
    return _other_buffer(programs, place, outputs, rng)


def input_from_later(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task reads what is written only further down its queue."""
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses)))
    inputs = [(slot, view) for slot, access, view in operands(programs, place)
              if access.mode == "r" and programs.buffers[view.buffer].kind == "activation"]
    later = {view.buffer for at in range(place[1] + 1, len(programs.programs[place[0]].tasks))
             for _, access, view in operands(programs, (place[0], at)) if "w" in access.mode}
    earlier = {view.buffer for at in range(place[1] + 1)
               for _, access, view in operands(programs, (place[0], at)) if "w" in access.mode}
    return _other_buffer(programs, place, inputs, rng, later - earlier)


def _other_buffer(programs: ProgramSet, place: Place, choices: list[tuple[int, View]], rng: Rng,
                  allowed: set[str] | None = None) -> Mutant | None:
    if not choices:
        return None
    slot, view = rng.choice(choices)
    buffer = programs.buffers[view.buffer]
    others = [other.name for other in programs.buffers.values()
              if replace(other, name=buffer.name) == buffer and other.name != buffer.name
              and (allowed is None or other.name in allowed)]
    if not others:
        return None
    other = rng.choice(others)
    mutant = copied(programs)
    set_operand(mutant, place, slot, replace(view, buffer=other))
    return Mutant(mutant, f"{label_at(programs, place)}: {other} instead of {view.buffer}", (place,))


def wrong_layout(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A weight in stream order is taken for one in row order or the other way round."""
    ordered = {name: name.removesuffix(".stream") for name in programs.buffers if name.endswith(".stream")}
    if rng.random() < 0.3:
        name = rng.choice(sorted({*ordered, *ordered.values()}))
        mutant = copied(programs)
        other = "rows" if mutant.buffers[name].layout == "stream" else "stream"
        mutant.buffers[name] = replace(mutant.buffers[name], layout=other)
        return Mutant(mutant, f"{name} in {other} order")
    twins = ordered | {rows: stream for stream, rows in ordered.items()}
    place = rng.choice(places(programs, lambda task, op: bool(op.accesses)))
    choices = [(slot, view) for slot, _, view in operands(programs, place) if view.buffer in twins]
    if not choices:
        return None
    slot, view = rng.choice(choices)
    mutant = copied(programs)
    set_operand(mutant, place, slot, replace(view, buffer=twins[view.buffer]))
    return Mutant(mutant, f"{label_at(programs, place)}: {twins[view.buffer]} instead of {view.buffer}", (place,))


# --- the copy engine -------------------------------------------------------------------------------------------------


def missing_fence_before(programs: ProgramSet, rng: Rng) -> Mutant | None:
    return _without_fence(programs, rng, FENCE_BEFORE, "BEFORE")


def missing_fence_after(programs: ProgramSet, rng: Rng) -> Mutant | None:
    return _without_fence(programs, rng, FENCE_AFTER, "AFTER")


def _without_fence(programs: ProgramSet, rng: Rng, fence: int, word: str) -> Mutant | None:
    place = rng.choice(places(programs, lambda task, op: bool(task["flags"] & fence)))
    mutant = copied(programs)
    task_at(mutant, place)["flags"] &= 0xFF ^ fence
    return Mutant(mutant, f"{label_at(programs, place)} without FENCE_{word}", (), (place,))


# --- owners and messages ---------------------------------------------------------------------------------------------


def wrong_lane(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task has another owner: nobody finds it, or data that goes with a message stays with another block.

    Not the lane before its own, whose block finds both.
    """
    lanes = programs.programs["decode"].tasks["lane"].tolist()
    index = rng.randrange(len(lanes))
    lane = rng.choice(sorted(set(lanes) - {lanes[index], lanes[index] - 1}))
    place, mutant = ("decode", index), copied(programs)
    task_at(mutant, place)["lane"] = lane
    return Mutant(mutant, f"{label_at(programs, place)} in lane {lane}", (place,))


def message_of_another_generation(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """One task sends or reads another generation of a message."""
    place, slot, view = _some_message(programs, rng)
    generations = programs.buffers[view.buffer].generations
    if generations < 2:
        return None
    wrong = rng.choice([g for g in range(generations) if g != view.generation])
    mutant = copied(programs)
    set_operand(mutant, place, slot, replace(view, generation=wrong))
    return Mutant(mutant, f"{label_at(programs, place)}: message {wrong} of {view.buffer}, not {view.generation}",
                  (place,))


def merged_generations(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """Two messages of an iteration have one number, or the last of one iteration that of the next one's first."""
    name = rng.choice([name for name, buffer in programs.buffers.items() if buffer.kind == "message"])
    generations = programs.buffers[name].generations
    if generations < 2:
        return None
    mutant = copied(programs)
    if rng.random() < 0.3:
        mutant.buffers[name] = replace(mutant.buffers[name], generations=generations - 1)
        return Mutant(mutant, f"{name} has {generations - 1} messages")
    merged = rng.randrange(1, generations)
    mutant.views = [replace(view, generation=view.generation - 1)
                    if view.buffer == name and view.generation >= merged else view for view in mutant.views]
    if rng.random() < 0.5:
        mutant.buffers[name] = replace(mutant.buffers[name], generations=generations - 1)
    return Mutant(mutant, f"messages {merged - 1} and {merged} of {name} are one")


def dropped_message(programs: ProgramSet, rng: Rng) -> Mutant | None:
    """A task that should wait for a message looks at another one that is there before."""
    place, slot, view = _some_message(programs, rng, readers=True)
    shape = programs.buffers[view.buffer].shape
    sent = [other for at in range(place[1]) for _, access, other in operands(programs, ("decode", at))
            if "w" in access.mode and other != view and programs.buffers[other.buffer].kind == "message"
            and programs.buffers[other.buffer].shape == shape]
    if not sent:
        return None
    other = rng.choice(sent)
    mutant = copied(programs)
    set_operand(mutant, place, slot, other)
    return Mutant(mutant, f"{label_at(programs, place)} reads {other.buffer} {other.generation} instead of "
                  f"{view.buffer} {view.generation}", (place,))


def _some_message(programs: ProgramSet, rng: Rng, readers: bool = False) -> tuple[Place, int, View]:
    found = [(("decode", index), slot, view) for index in range(len(programs.programs["decode"].tasks))
             for slot, access, view in operands(programs, ("decode", index))
             if programs.buffers[view.buffer].kind == "message" and not (readers and "w" in access.mode)]
    return rng.choice(found)


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MutantClass:
    make: Callable[[ProgramSet, Rng], Mutant | None]
    targets: tuple[str, ...] = ("host", "sm90")
    layers: int = 1
    """Of the model whose programs it changes."""
    harmful: bool = True
    """Whether nearly all of its mutants are wrong."""


CLASSES: dict[str, MutantClass] = {
    "dropped wait": MutantClass(dropped_wait),
    "dropped WAR edge": MutantClass(dropped_order_of_a_reader),
    "unawaited reader": MutantClass(unawaited_reader),
    "wrong step multiplier": MutantClass(wrong_step),
    "counter off by one": MutantClass(off_by_one),
    "half a join": MutantClass(half_a_join),
    "merged counters": MutantClass(merged_counters),
    "wrong signal": MutantClass(wrong_signal),
    "cross-queue cycle": MutantClass(cross_queue_cycle),
    "swapped order": MutantClass(swapped_order),
    "missing tile": MutantClass(missing_tile),
    "duplicate tile": MutantClass(duplicate_tile),
    "region off by one": MutantClass(region_off_by_one),
    "early unpin": MutantClass(early_unpin),
    "early publish": MutantClass(early_publish),
    "wrong rotation": MutantClass(wrong_rotation),
    "fewer copies": MutantClass(fewer_copies),
    "output elsewhere": MutantClass(output_elsewhere),
    "input from later": MutantClass(input_from_later),
    "wrong layout": MutantClass(wrong_layout, ("sm90",)),
    "missing fence before": MutantClass(missing_fence_before, ("sm90",)),
    "missing fence after": MutantClass(missing_fence_after, ("sm90",)),
    "wrong lane": MutantClass(wrong_lane, ("sm90",)),
    "message of another generation": MutantClass(message_of_another_generation, ("sm90",), layers=2),
    "merged generations": MutantClass(merged_generations, ("sm90",), layers=2),
    "dropped message": MutantClass(dropped_message, ("sm90",)),
    "random edits": MutantClass(random_edits, harmful=False),
}


def make_mutant(name: str, programs: ProgramSet, seed: int) -> Mutant:
    """The mutant of a class that `seed` stands for."""
    rng = random.Random(f"{name} {seed}")
    while True:
        mutant = CLASSES[name].make(programs, rng)
        if mutant is not None:
            return mutant
