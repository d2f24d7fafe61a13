"""The proof that a program set may run, worked out from the descriptors alone.

What is shown for each program, for any number of blocks that claim its tasks in order or own them by lane:

1. every index is in range, every operand has its opcode's shape, kind and dtype, every tile lies inside its operands
   (`accesses`, `operands`);
2. every wait joins all signals of its counters, every packet that is waited for is written, and both come from tasks
   earlier in the same queue: no schedule can deadlock (`order`, `messages`); owned tasks have lanes by which blocks
   find them, and each block passes on what it has stored before an iteration ends (`lanes`);
3. no counter mixes two iterations and no two generations of a message share a tag; the tasks that open and end an
   iteration, and the others that a program has exactly once, are there and in their place, and an iteration ends before
   the next one opens;
4. every written buffer is written exactly once per iteration, without gap or overlap, and any two accesses to the same
   elements of which one writes are ordered, in one iteration and from one to the next ones, by counters or in one block
   where it is more than a message that is handed over (`hazards`); a message is overwritten only after all its readers
   (`messages`);
5. programs share only what they may: train and sweep take turns as wholes, and what outlives an iteration is written by
   one of them; all else reads nothing but rotating weights, of the version that is complete, and decode only between
   pinning a version and letting it go; steps write each next version whole;
6. the pin protocol lets no step overwrite a pinned version (`pin_model`);
7. where operands go through the copy engine, fences stand between it and ordinary accesses (`fences`); no task needs
   more shared memory than there is, or copies what the engine cannot (`resources`);
8. doom plays each game that the set declares once per iteration, one tic after the other;
9. every program has the operations of the model that the set declares, with their operands by name, with weight decay
   where a parameter decays, and no others (`meaning`). This is asked last: what is out of order is refused before.

Assumed of the engine:

- operand rows have the addresses, pitches and distances of copies that buffers and views stand for, and no two buffers
  share memory (`engine/memory.py`); `op_publish`, `pin_version` and `release_pin` do what `pin_model` lists;
- claim order is queue order, and a block runs its tasks one after the other;
- `wait_for_schedule`: step_begin of step s starts after the end of every sweep batch that the schedule puts before it,
  sweep_begin after that of every step and batch before it; with 3 and 5, any access of a step and any of a batch are
  then in order;
- `wait_for_opening`: an owned task starts, and loads weights ahead of its inputs, after the first task of its iteration
  has opened it.

Assumed of the bodies:

- a task touches what its opcode's regions say, and has read its inputs before the last of its packets is written;
- an element of a message is read before the same task overwrites it;
- packets that nobody rewrites for 2^32 / generations iterations are not looked for again.

Not shown: that a body computes what its opcode says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ofa_tui import abi
from ofa_tui.program.accesses import GAME_OP, Accesses, ProgramError, describe_access, list_accesses, task_label
from ofa_tui.program.distinct import distinct
from ofa_tui.program.fences import check_fences
from ofa_tui.program.hazards import check_buffers
from ofa_tui.program.lanes import check_lanes
from ofa_tui.program.meaning import check_meaning
from ofa_tui.program.operands import check_classes, check_extents
from ofa_tui.program.ops import OPCODES, OPS
from ofa_tui.program.order import Order
from ofa_tui.program.pin_model import PinReport, check_pin_protocol, kernel_protocol
from ofa_tui.program.resources import check_resources
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import Buffer, ProgramSet, TaskProgram

__all__ = ["ProgramError", "ProgramReport", "Report", "validate"]

TURN_TAKING = ("train", "sweep")
STATE_WRITERS = {"weight": "train", "master": "train", "moment": "train", "cache": "decode"}
"""Kinds of buffers whose contents outlive an iteration, and the only program that may write them."""


@dataclass(frozen=True)
class ProgramReport:
    tasks: int
    edges: int
    """Pairs of distinct waits and counters."""
    messages: int
    """Pairs of a task and one whose packets it waits for."""
    rectangles: int
    pairs: int
    """Pairs of accesses that were shown to be ordered."""
    fences: int
    """Fences that its copies need and have."""
    shared_bytes: int
    """Shared memory of its largest task; 0 where it is not limited."""


@dataclass(frozen=True)
class Report:
    """What was proved, per program."""

    programs: dict[str, ProgramReport]
    pinned: int
    """Tasks of decode that read weights while their version is pinned."""
    pin: PinReport

    def lines(self) -> list[str]:
        lines = []
        for name, r in self.programs.items():
            messages = f"{r.messages:,} messages, " * bool(r.messages)
            fences = f", {r.fences:,} fences" * bool(r.fences)
            shared = f", at most {r.shared_bytes:,} bytes of shared memory" * bool(r.shared_bytes)
            lines.append(f"{name}: {r.tasks:,} tasks, {r.edges:,} waits, {messages}{r.rectangles:,} regions, "
                         f"{r.pairs:,} pairs of accesses in order{fences}{shared}")
        lines.append(f"pin: {self.pinned:,} decode tasks read weights of a pinned version; protocol explored in "
                     f"{self.pin.states:,} states, {self.pin.transitions:,} moves")
        return lines


def validate(programs: ProgramSet) -> Report:
    """Prove `programs`. Raises ProgramError, a sentence that names the tasks, for the first thing found wrong."""
    _check_tables(programs)
    proved = {name: check_program(programs, program) for name, program in programs.programs.items()}
    accesses = {name: known.accesses for name, known in proved.items()}
    _check_counters_apart(programs)
    _check_sharing(programs, accesses)
    _check_versions(programs, accesses)
    pins = [_prove_pins(copies) for copies in sorted({b.copies for b in programs.buffers.values() if b.copies > 1})]
    check_classes(programs)
    fences, shared_bytes = check_fences(programs, accesses), check_resources(programs, accesses)
    check_meaning(programs)
    return Report({
        name: ProgramReport(known.tasks, known.edges, known.messages, len(known.accesses.task), known.pairs,
                            fences[name], shared_bytes[name])
        for name, known in proved.items()
    }, proved["decode"].pinned, PinReport(sum(pin.states for pin in pins), sum(pin.transitions for pin in pins)))


@dataclass(frozen=True)
class ProvedProgram:
    """A program that is right by itself, and the counts of its report."""

    accesses: Accesses
    tasks: int
    edges: int
    messages: int
    pairs: int
    pinned: int


def check_program(programs: ProgramSet, program: TaskProgram) -> ProvedProgram:
    """What can be shown of one program, whatever the tasks of the others are. Raises ProgramError."""
    copies = max([buffer.copies for buffer in programs.buffers.values()], default=1)
    accesses = list_accesses(programs, program)
    _check_opcodes(programs.target, program)
    _check_claims(programs.target, program)
    if program.name == "doom":
        _check_games(programs.games, program)
    order = Order(programs, program, accesses, max(1, copies))
    pairs = check_buffers(programs, order, accesses)
    check_extents(programs, program)
    order.check_iterations_apart()
    check_lanes(programs, program)
    pinned = _check_pins(programs, order, accesses) if program.name == "decode" else 0
    if program.name == "doom":
        _check_tics_apart(order)
    else:
        _check_whole_iterations(order)
    return ProvedProgram(accesses, len(program.tasks), order.edges, order.messages, pairs, pinned)


def _check_tables(programs: ProgramSet) -> None:
    if programs.target not in TARGETS:
        raise ProgramError("table", f"the target {programs.target!r} is not among {', '.join(TARGETS)}")
    if programs.storage not in ("f4", TARGETS[programs.target].storage):
        raise ProgramError("table", f"matrices are stored as {programs.storage}; the target {programs.target} has "
                           f"{TARGETS[programs.target].storage}, and the host's threads f4")
    if set(programs.programs) != set(abi.PROGRAMS):
        given, wanted = ", ".join(programs.programs), ", ".join(abi.PROGRAMS)
        raise ProgramError("table", f"the programs are {given}; there must be {wanted}")
    for name, program in programs.programs.items():
        if program.name != name:
            raise ProgramError("table", f"the program {name} is called {program.name!r}")
        if program.tasks.dtype != abi.TASK or program.tasks.ndim != 1:
            raise ProgramError("table", f"the tasks of {name} are no list of descriptors")
    for name, buffer in programs.buffers.items():
        if fault := _buffer_fault(name, buffer):
            raise ProgramError("table", f"the buffer {name} {fault}")
    if len(programs.views) > abi.NONE_U16:
        raise ProgramError("table", f"the operand table has {len(programs.views):,} entries; a task can name "
                           f"{abi.NONE_U16:,}")
    for view in programs.views:
        if view.buffer not in programs.buffers:
            raise ProgramError("table", f"the operand table names the buffer {view.buffer!r}, which does not exist")
        buffer = programs.buffers[view.buffer]
        if not 0 <= view.rotation < buffer.copies:
            raise ProgramError("table", f"operand {view.buffer!r} has rotation {view.rotation} of {buffer.copies} "
                               "copies")
        if buffer.kind != "message" and view.generation:
            raise ProgramError("table", f"operand {view.buffer!r} has the generation {view.generation}, but is no "
                               "message")
        if not 0 <= view.generation < buffer.generations:
            raise ProgramError("table", f"operand {view.buffer!r} is message {view.generation} of "
                               f"{buffer.generations}: two messages would share a tag")


def _buffer_fault(name: str, buffer: Buffer) -> str:
    """What is wrong with a buffer by itself."""
    message = buffer.kind == "message"
    if buffer.name != name:
        return f"is called {buffer.name!r}"
    if len(buffer.shape) != 2 or not all(1 <= extent < 1 << 31 for extent in buffer.shape):
        return f"has the shape {buffer.shape}"
    if buffer.dtype not in abi.DTYPES or (buffer.dtype == "packet") != message:
        return f"of kind {buffer.kind} has the dtype {buffer.dtype}"
    if buffer.layout not in abi.LAYOUTS:
        return f"has the unknown layout {buffer.layout!r}"
    if not 1 <= buffer.copies <= 0xFF or (buffer.copies > 1 and buffer.kind != "weight"):
        return f"of kind {buffer.kind} has {buffer.copies} copies; only weights rotate"
    if not 1 <= buffer.generations <= 0xFFFF or (buffer.generations > 1 and not message):
        return f"of kind {buffer.kind} has {buffer.generations} generations"
    return ""


def _check_claims(target: str, program: TaskProgram) -> None:
    """Blocks come by tasks as the engine expects: a token is finished by those who began it, so that its pin ends."""
    wanted = abi.CLAIM_TICKETS
    if program.name == "decode":
        wanted = abi.CLAIM_OWNED if TARGETS[target].streamed_decode else abi.CLAIM_WHOLE
    if program.claims != wanted:
        known = 0 <= program.claims < len(abi.CLAIMS)
        given = abi.CLAIMS[program.claims] if known else f"number {program.claims}"
        raise ProgramError("claims", f"the tasks of {program.name} are claimed as {given}; for target {target} it must "
                           f"be {abi.CLAIMS[wanted]}")


def _check_opcodes(target: str, program: TaskProgram) -> None:
    """Opcodes that belong to one program stand in no other, and those it has exactly once are there, in their place."""
    opcodes = program.tasks["opcode"]
    for opcode, op in enumerate(OPS):
        found = np.flatnonzero(opcodes == opcode)
        if op.program not in ("", program.name) or op.target not in ("", target):
            if len(found):
                label = task_label(program, int(found[0]))
                of = f" of target {op.target}" if op.target not in ("", target) else ""
                raise ProgramError("control", f"{program.name}: {label} is a {op.name}, which only the program "
                                   f"{op.program}{of} may have", (label,))
        elif op.place and not len(found):
            raise ProgramError("control", f"{program.name}: no task is a {op.name}; there must be exactly one")
        elif op.place and len(found) > 1:
            label, other = (task_label(program, int(task)) for task in found[:2])
            raise ProgramError("control", f"{program.name}: {label} and {other} are both a {op.name}; there must be "
                               "exactly one", (label, other))
        elif op.place in ("first", "last"):
            end = 0 if op.place == "first" else len(opcodes) - 1
            if found[0] != end:
                label, other = task_label(program, int(found[0])), task_label(program, end)
                raise ProgramError("control", f"{program.name}: {label} must be the {op.place} task of the queue, "
                                   f"where {other} is", (label, other))


def _check_games(games: int, program: TaskProgram) -> None:
    """Every task plays a game of its own, and all games are played."""
    tasks, labels = program.tasks, [task_label(program, task) for task in range(len(program.tasks))]
    if not 0 <= games <= abi.MAX_GAMES:
        raise ProgramError("game", f"doom: there are {games} games; there may be {abi.MAX_GAMES}")
    others = tasks["opcode"] != OPCODES[GAME_OP]
    if others.any():
        label = labels[int(np.argmax(others))]
        raise ProgramError("game", f"doom: {label} is no {GAME_OP}", (label,))
    played: dict[int, str] = {}
    for label, game in zip(labels, tasks["tile"][:, 0].tolist(), strict=True):
        if game >= games:
            raise ProgramError("game", f"doom: {label} plays game {game}, though the {games} games are numbered from 0",
                               (label,))
        if game in played:
            raise ProgramError("game", f"doom: {played[game]} and {label} both play game {game}",
                               (played[game], label))
        played[game] = label
    for game in range(games):
        if game not in played:
            raise ProgramError("game", f"doom: no task plays game {game} of {games}")


def _check_tics_apart(order: Order) -> None:
    """Every game waits for its tic of the iteration before."""
    tasks = np.arange(len(order.program.tasks))
    apart = order.precedes(tasks, tasks, 1)
    if not apart.all():
        label = order.label(int(np.argmin(apart)))
        raise ProgramError("game", f"doom: {label} does not wait for its own tic before, so that two blocks could play "
                           "one game", (label,))


def _check_whole_iterations(order: Order) -> None:
    """The first task opens the iteration for all others, the last is complete after all others and before the next."""
    last = len(order.program.tasks) - 1
    name = order.program.name
    others = np.arange(1, last)
    joined = order.precedes(others, last, 0)
    opened = order.precedes(0, np.arange(1, last + 1), 0)
    for ordered, tasks, end in ((joined, others, last), (opened, np.arange(1, last + 1), 0)):
        if not ordered.all():
            task, bound = order.label(int(tasks[np.argmin(ordered)])), order.label(end)
            side = f"complete before {bound} ends" if end else f"held back until {bound} has opened"
            raise ProgramError("turn", f"{name}: {task} is not {side} the iteration", (task, bound))
    if not order.precedes(last, 0, 1):
        first, final = order.label(0), order.label(last)
        raise ProgramError("turn", f"{name}: {first} does not wait for {final} of the iteration before", (first, final))


def _check_pins(programs: ProgramSet, order: Order, accesses: Accesses) -> int:
    """Who reads a rotating weight does so after the first task, which pins it, and before the last lets it go."""
    last = len(order.program.tasks) - 1
    rotates = np.array([programs.buffers[view.buffer].copies > 1 for view in programs.views], bool)
    reads = np.flatnonzero(rotates[accesses.view] & accesses.reads)
    tasks = accesses.task[reads]
    pinned = order.precedes(0, tasks, 0) | (tasks == 0)
    held = order.precedes(tasks, last, 0) | (tasks == last)
    for ordered, end in ((pinned, 0), (held, last)):
        if not ordered.all():
            at = int(np.argmin(ordered))
            label, bound = order.label(int(tasks[at])), order.label(end)
            where = describe_access(programs, order.program, accesses, int(reads[at]))
            fault = (f"may still be reading {where} when {bound} lets its version go" if end else
                     f"reads {where} without waiting for {bound}, which pins its version")
            raise ProgramError("pin", f"{order.program.name}: {label} {fault}", (label, bound))
    return len(distinct(tasks))


def _check_counters_apart(programs: ProgramSet) -> None:
    owner: dict[int, str] = {}
    for name, program in programs.programs.items():
        for counter in distinct(program.tasks["signal"]):
            if counter != abi.NONE_U32 and owner.setdefault(int(counter), name) != name:
                raise ProgramError("counter", f"counter {programs.counters[counter]!r} is signalled by both "
                                   f"{owner[int(counter)]} and {name}, whose iterations are not the same")


def _check_sharing(programs: ProgramSet, accesses: dict[str, Accesses]) -> None:
    """Buffers used by two programs, one of which writes them."""
    views = [(view.buffer, programs.buffers[view.buffer].kind) for view in programs.views]
    touched = {name: {views[v][0] for v in distinct(a.view)} for name, a in accesses.items()}
    written = {name: {views[v][0] for v in distinct(a.view[a.writes])} for name, a in accesses.items()}
    for writer, buffers in written.items():
        for other in touched:
            shared = buffers & touched[other]
            if other == writer or {writer, other} == set(TURN_TAKING):
                continue
            for buffer in sorted(shared):
                pinned = [v for v in distinct(accesses[other].view) if programs.views[v].buffer == buffer]
                if programs.buffers[buffer].copies < 3 or any(programs.views[v].rotation for v in pinned):
                    raise ProgramError("sharing", f"{other} uses {buffer}, which {writer} may be writing at that time")


def _check_versions(programs: ProgramSet, accesses: dict[str, Accesses]) -> None:
    """What outlives an iteration has one writer; each step writes the whole next version of every weight in use."""
    completed = {
        programs.views[view].buffer for view in distinct(accesses["train"].view[accesses["train"].writes])
        if programs.views[view].rotation == 1
    }
    for name, a in accesses.items():
        firsts = np.unique(np.column_stack([a.view, a.writes]), axis=0, return_index=True)[1] if len(a.view) else ()
        for at in sorted(firsts, key=lambda at: (not a.writes[at], at)):
            view = programs.views[int(a.view[at])]
            fault = _version_fault(programs.buffers[view.buffer], view.rotation, name, bool(a.writes[at]), completed)
            if fault:
                program = programs.programs[name]
                label = task_label(program, int(a.task[at]))
                where = describe_access(programs, program, a, int(at))
                raise ProgramError("version", f"{name}: {label} {fault.format(where)}", (label,))


def _version_fault(buffer: Buffer, rotation: int, program: str, writes: bool, completed: set[str]) -> str:
    """What is wrong with an access of `program`, a {} in place of its region; "" where nothing is."""
    writer = STATE_WRITERS.get(buffer.kind, program)
    if writes and program != writer:
        return f"writes {{}}, a {buffer.kind} buffer, which only the program {writer} may write"
    if buffer.kind != "weight":
        return ""
    if buffer.copies < 3:
        return f"uses {{}}, of which there are {buffer.copies} copies; a version that is read needs three"
    if writes and rotation != 1:
        return f"writes {{}} at rotation {rotation}; the next version is at rotation 1"
    if rotation > (program == "train"):
        return f"reads {{}} at rotation {rotation}, where no complete version is"
    return "" if buffer.name in completed else "uses {}, whose next version no step writes"


@cache
def _prove_pins(copies: int) -> PinReport:
    """The kernel's pin protocol with so many copies of the weights. Raises ProgramError."""
    return check_pin_protocol(kernel_protocol(copies))
