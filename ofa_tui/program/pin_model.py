"""The pin protocol, explored to the end: no step overwrites weights that a token reads, and nobody waits for ever.

Two processes share `published`, `pin` and the weight copies. The trainer stands for all blocks of the train role: the
counters put a step's writes before its `publish`, and those of the next step after it. The server stands for all
blocks of the serve role, whose tokens follow one another. Each is a list of steps, plain data, that starts again at its
end and keeps one version in a register.

Memory. A plain store enters its process's buffer and reaches memory later: oldest first (as on x86) in one model, in
any order between different variables (as a GPU may) in the other. An exchange empties the buffer and takes effect at
once. A load sees the newest store of its own process, else memory. Loads are made in program order: the kernel's
exchanges are acquire and release too, and its letting go is a release, which keeps the reads of weights between pinning
and letting go.

Runs without end. A state is kept relative to the trainer's step, which is subtracted from every version while the
copies are rotated by as much: the protocol only compares versions and takes them modulo the number of copies, so a
state and its relative form have the same future. A sleeping server may remember a version of any age; below an age at
which every comparison has one outcome, versions that share a copy are taken as one. What is left is finite, and its
exploration covers runs of any length. (The tests check this against states with absolute versions.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ofa_tui.program.accesses import ProgramError

PUBLISHED, PIN, FIRST_COPY = 0, 1, 2
"""Places in State.memory; copy c is at FIRST_COPY + c."""
NONE = 1 << 62
"""The pin of nobody: above every version, like NONE_U64."""
MIXED = -NONE
"""What a copy holds while it is written: parts of two versions."""
BUFFER = 4
"""Stores that may wait in a buffer. A protocol that needs more is not proved."""
OLDEST = -12
"""Relative versions from here down share the outcome of every comparison: buffers and offsets reach less far."""
PROCESSES = ("trainer", "server")
TOLD = {
    "write": "begins to write version {value} into {copy}",
    "complete": "has written version {value} into {copy}",
    "store": "stores {place} = {value}",
    "exchange": "exchanges {place} = {value}",
    "wait": "sees {place} = {seen} and goes on",
    "load": "loads {place} = {seen}",
    "recheck": "loads {place} = {seen} again",
    "read": "reads {held} in {copy} as version {value}",
    "advance": "goes to its next step",
}


class Step(NamedTuple):
    """One atomic act of a process whose register holds version r; it concerns version r + `offset`, or NONE."""

    act: str
    """`write` and `complete` store into the version's copy; `store` and `exchange` put the version at `place`; `wait`
    holds until `place` has reached it; `load` sets r to what is at `place`; `recheck` loads `place`, and if that is
    above the version takes it for r and goes back to step `back`; `read` reads weights of version r; `advance`: r + 1.
    """
    place: int = -1
    offset: int | None = 0
    back: int = 0


class Protocol(NamedTuple):
    copies: int
    trainer: tuple[Step, ...]
    server: tuple[Step, ...]


@dataclass(frozen=True)
class PinReport:
    """How much was explored, with both memory models together."""

    states: int
    transitions: int


class Process(NamedTuple):
    at: int
    version: int
    buffer: tuple[tuple[int, int], ...] = ()  # (place, value) of stores that are not in memory yet, oldest first


class State(NamedTuple):
    memory: tuple[int, ...]
    trainer: Process
    server: Process


class Move(NamedTuple):
    process: str
    store: int = -1  # of its buffer, which reaches memory; -1: the process makes its next step


Edge = tuple[State, Move, State]


def kernel_protocol(copies: int = 3) -> Protocol:
    """What op_publish (cuda/ops/step.h), pin_version and release_pin (cuda/serve/serve_state.h) do."""
    write, publish = (Step("write", offset=1), Step("complete", offset=1)), Step("exchange", PUBLISHED, offset=1)
    pin, recheck = Step("exchange", PIN), Step("recheck", PUBLISHED, offset=1, back=1)
    trainer = (*write, publish, Step("wait", PIN), Step("advance"))
    server = (Step("load", PUBLISHED), pin, recheck, Step("read"), Step("read"), Step("store", PIN, offset=None))
    return Protocol(copies, trainer, server)


def check_pin_protocol(protocol: Protocol) -> PinReport:
    """Proves `protocol` with both memory models. Raises ProgramError with the shortest run that breaks it."""
    states = transitions = 0
    for in_order in (True, False):
        reached, edges = explore(protocol, in_order)
        _check_progress(protocol, reached, edges)
        states += len(reached)
        transitions += len(edges)
    return PinReport(states, transitions)


def first_state(protocol: Protocol) -> State:
    """Before step 0: version 0 is complete; the other copies hold versions that were never published."""
    copies = (-(-copy % protocol.copies) for copy in range(protocol.copies))
    return State((0, NONE, *copies), Process(0, 0), Process(0, 0))


def moves(state: State, protocol: Protocol, in_order: bool) -> Iterator[Move]:
    """What may happen next."""
    for name in PROCESSES:
        process, step, value = _due(state, protocol, name)
        places = [place for place, _ in process.buffer]
        for index, place in enumerate(places):
            if index == 0 or (not in_order and place not in places[:index]):
                yield Move(name, index)
        blocked = step.act == "wait" and _look(state, process, step.place) < value
        full = step.act in ("write", "complete", "store") and len(process.buffer) == BUFFER
        if not blocked and not full:
            yield Move(name)


def apply(state: State, move: Move, protocol: Protocol) -> State:
    process, step, value = _due(state, protocol, move.process)
    memory, buffer = list(state.memory), list(process.buffer)
    if move.store >= 0:
        place, stored = buffer.pop(move.store)
        memory[place] = stored
        return state._replace(memory=tuple(memory), **{move.process: process._replace(buffer=tuple(buffer))})
    version, at = process.version, (process.at + 1) % len(getattr(protocol, move.process))
    match step.act:
        case "write" | "complete":
            buffer.append((FIRST_COPY + value % protocol.copies, MIXED if step.act == "write" else value))
        case "store":
            buffer.append((step.place, value))
        case "exchange":
            for place, waiting in [*buffer, (step.place, value)]:
                memory[place] = waiting
            buffer = []
        case "load":
            version = _look(state, process, step.place)
        case "recheck":
            newest = _look(state, process, step.place)
            if newest > value:
                version, at = newest, step.back
        case "advance":
            version += 1
    return state._replace(memory=tuple(memory), **{move.process: Process(at, version, tuple(buffer))})


def relative(state: State, copies: int) -> State:
    """The state as seen from the trainer's step: versions count from it, and so do the copies."""
    step = state.trainer.version

    def version(value: int) -> int:
        if value in (NONE, MIXED):
            return value
        return value - step if value - step > OLDEST else OLDEST - (OLDEST - value + step) % copies

    def place(index: int) -> int:
        return index if index < FIRST_COPY else FIRST_COPY + (index - FIRST_COPY - step) % copies

    def process(it: Process) -> Process:
        return Process(it.at, version(it.version), tuple((place(where), version(value)) for where, value in it.buffer))

    memory = list(state.memory)
    for index, value in enumerate(state.memory):
        memory[place(index)] = version(value)
    return State(tuple(memory), process(state.trainer), process(state.server))


def complaint(before: State, move: Move, after: State, protocol: Protocol) -> str:
    """Why this move breaks the protocol; empty for one that does not."""
    server, reads = before.server, [at for at, step in enumerate(protocol.server) if step.act == "read"]
    copy = server.version % protocol.copies
    held = before.memory[FIRST_COPY + copy]
    if move == Move("server") and server.at in reads and held != server.version:
        return f"the server reads {_content(held)} in copy {copy} where version {server.version} should be"
    if reads[0] <= server.at <= reads[-1] and after.memory[FIRST_COPY + copy] != held:
        return f"copy {copy} is overwritten while the server reads version {server.version} in it"
    return ""


def _due(state: State, protocol: Protocol, name: str) -> tuple[Process, Step, int]:
    """A process, its next step, and the version that the step concerns."""
    process: Process = getattr(state, name)
    step: Step = getattr(protocol, name)[process.at]
    return process, step, NONE if step.offset is None else process.version + step.offset


def _look(state: State, process: Process, place: int) -> int:
    return dict(process.buffer).get(place, state.memory[place])


def explore(protocol: Protocol, in_order: bool) -> tuple[dict[State, Edge | None], list[Edge]]:
    """Every relative state with the edge that first led to it, in order of distance, and every edge."""
    start = relative(first_state(protocol), protocol.copies)
    reached: dict[State, Edge | None] = {start: None}
    edges: list[Edge] = []
    unseen = deque([start])
    while unseen:
        state = unseen.popleft()
        for move in moves(state, protocol, in_order):
            after = apply(state, move, protocol)
            edge = (state, move, relative(after, protocol.copies))
            if complaint(state, move, after, protocol):
                raise _refusal(protocol, reached, edge)
            edges.append(edge)
            if edge[2] not in reached:
                reached[edge[2]] = edge
                unseen.append(edge[2])
    if any(len(getattr(state, name).buffer) == BUFFER for state in reached for name in PROCESSES):
        raise ProgramError("pin", f"the pin protocol lets {BUFFER} stores wait at once; so many are not explored")
    return reached, edges


def _check_progress(protocol: Protocol, reached: dict[State, Edge | None], edges: list[Edge]) -> None:
    """The server finishes a token whatever the trainer does, and the trainer a step once the server has let go.

    Together: from every state there is a way on for both.
    """
    let_go = {state for state in reached if state.server.at == 0 and not state.server.buffer}
    for name, sources in (("server", set(reached)), ("trainer", let_go)):
        before: dict[State, list[State]] = {}
        for source, move, target in edges:
            if move.process == name:
                before.setdefault(target, []).append(source)
        last = len(getattr(protocol, name)) - 1
        able = {source for target, sources_of in before.items() for source in sources_of
                if getattr(source, name).at == last and getattr(target, name).at == 0}
        fresh = list(able)
        while fresh:
            new = set(before.get(fresh.pop(), ())) - able
            able |= new
            fresh += new
        stuck = next((state for state in reached if state in sources - able), None)
        if stuck is not None:
            raise _refusal(protocol, reached, reached[stuck], f"the {name} cannot go on by itself")


def _refusal(protocol: Protocol, reached: dict[State, Edge | None], last: Edge | None, why: str = "") -> ProgramError:
    """The run that ends with `last`, told with absolute versions."""
    path: list[Move] = []
    while last is not None:
        path.append(last[1])
        last = reached[last[0]]
    state, lines = first_state(protocol), []
    for number, move in enumerate(reversed(path), 1):
        after = apply(state, move, protocol)
        lines.append(f"{number:3d}. {_told(state, move, protocol)}")
        why = complaint(state, move, after, protocol) or why
        state = after
    return ProgramError("pin", "\n".join([f"the pin protocol fails: {why}", *lines]))


def _told(before: State, move: Move, protocol: Protocol) -> str:
    process, step, version = _due(before, protocol, move.process)
    if move.store >= 0:
        place, value = process.buffer[move.store]
        return f"the {move.process}'s store of {_name(place)} = {_content(value)} reaches memory"
    copy = FIRST_COPY + version % protocol.copies
    return f"the {move.process} " + TOLD[step.act].format(
        place=_name(step.place), value=_content(version), copy=_name(copy), held=_content(before.memory[copy]),
        seen=_content(_look(before, process, step.place)),
    )


def _name(place: int) -> str:
    return ("published", "pin")[place] if place < FIRST_COPY else f"copy {place - FIRST_COPY}"


def _content(value: int) -> str:
    if value in (NONE, MIXED):
        return "none" if value == NONE else "half a version"
    return str(value) if value >= 0 else "nothing yet"
