"""Whole program sets run by blocks in any interleaving, over a memory of hashes: an oracle for the validator.

It knows nothing of ancestors or rules, only what blocks do, and compares with the program run task by task (`truth`).

- A task that starts finds its inputs; until it ends they must not change, and what it writes is rubbish.
- A task that sends messages sends them as soon as it has read its inputs, or when it ends.
- Without FENCE_BEFORE a bulk read finds what was there before the last write. Without FENCE_AFTER a bulk write lands
  when the block ends its next task, or when all is over.
- A token pins the newest version or, where the kernel may, the one before it.
- Of owned tasks, which blocks there are and who is which changes from token to token. Their messages make nothing known
  but themselves.
- An element is written once in an iteration, not counting updates in place.
"""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from heapq import heappop, heappush

from ofa_tui import abi
from ofa_tui.program.types import Buffer, ProgramSet
from tests.program.blocks import Block, Move, OwnedRole, Role
from tests.program.cells import Touch, state_buffers
from tests.program.clocks import Clocks
from tests.program.memory import Fault, Layout, Pattern, Task, Values, read_tasks
from tests.program.schedules import SCHEDULES, Schedule
from tests.program.truth import Reference, batches_before, form, iterations_of_training, steps_before

MORE_TOKENS = 1
"""Tokens that are decoded beyond as many as there are steps."""
BUSY = 1 << 70
"""Contents from here on: a task is writing here."""
TAGS = 1 << 32

Victim = tuple[str, int]  # program, task


def check(programs: ProgramSet, reference: Reference | None = None, *, schedules: Sequence[Schedule] = SCHEDULES,
          hurried: Sequence[Victim] = (), delayed: Sequence[Victim] = (), seed: int = 0) -> None:
    """Runs every schedule. `reference`: the truth, by default that of `programs` itself.

    `hurried` and `delayed` are the tasks that some schedules do first and last, by default a few at random.
    Raises Fault.
    """
    machine = Machine(programs, reference or Reference(programs))
    for number, schedule in enumerate(schedules):
        rng = random.Random(seed + number)
        first, last = set(hurried or _some_tasks(programs, rng)), set(delayed or _some_tasks(programs, rng))
        try:
            Run(machine, schedule, first, last, rng).run()
        except Fault as fault:
            raise Fault(f"{fault} ({schedule})") from None
    machine.check_single_writers()


def _some_tasks(programs: ProgramSet, rng: random.Random) -> list[Victim]:
    return [(name, rng.randrange(len(program.tasks))) for name, program in programs.programs.items()
            if len(program.tasks)]


class Machine:
    """A program set that may differ from the reference, and the memory it runs in."""

    def __init__(self, programs: ProgramSet, reference: Reference) -> None:
        """Raises Fault where a task is wrong whatever the order."""
        self.programs = programs
        self.tasks = read_tasks(programs)
        buffers = programs.buffers | {name: reference.buffers[name] for name in state_buffers(0)}
        every = [task for tasks in self.tasks.values() for task in tasks]
        for task in every:
            task.number = reference.numbers.get(task.identity, -1)
            if not self._counters_exist(task):
                raise Fault(f"{task.label} uses a counter that does not exist")
        more = {name: buffer for name, buffer in buffers.items() if name not in reference.buffers}
        known = programs.buffers == reference.programs.buffers | more
        touched = {task: task.touches(programs, buffers) for task in every if not known or task.number < 0}
        for task, parts in touched.items():
            self._check_forms(task, parts, buffers, reference)
        finer = [touch for parts in touched.values() for touch in parts
                 if touch.view.buffer in more or not reference.cut.fits(touch)]
        if finer:
            reference = Reference(reference.programs, reference.iterations, finer, more)
        self.reference = reference
        self.layout = reference.layout if known else Layout(reference.cut, buffers)
        found: dict[object, list[Pattern]] = {}
        for task in every:
            if task not in touched:
                task.patterns = reference.patterns[task.number]
                continue
            if task.identity not in found:
                found[task.identity] = self.layout.patterns(touched[task])
            task.patterns = found[task.identity]
        self.bulk_reads_stale = not all(task.fenced_before for task in every)

    def check_single_writers(self) -> None:
        """No two tasks of a program write the same cell, except in place. Raises Fault."""
        for tasks in self.tasks.values():
            if len({task.number for task in tasks if task.number >= 0}) == len(tasks):
                continue  # these are the reference's tasks, each once
            writers: dict[int, Task] = {}
            for task in tasks:
                read = {cell for cell, _ in task.patterns[0].reads}
                for cell, _ in task.patterns[0].writes:
                    other = writers.setdefault(cell, task)
                    if other is not task and cell not in read:
                        raise Fault(f"{other.label} and {task.label} both write {self.layout.describe(cell)}")

    def _check_forms(self, task: Task, parts: Sequence[Touch], buffers: dict[str, Buffer],
                     reference: Reference) -> None:
        for slot, touch in enumerate(parts):
            found = form(buffers, touch.view)
            if (task.op, slot, found) not in reference.forms:
                raise Fault(f"{task.label} misreads {touch.view.buffer}, whose elements are {found[1]}, {found[0]}")

    def _counters_exist(self, task: Task) -> bool:
        counters = len(self.programs.counters)
        return (task.signal or 0) < counters and all(counter < counters for counter, _, _ in task.waits)


class Run:
    """One interleaving."""

    def __init__(self, machine: Machine, schedule: Schedule, hurried: Set[Victim], delayed: Set[Victim],
                 rng: random.Random) -> None:
        self.machine, self.schedule = machine, schedule
        self.reference, self.layout = machine.reference, machine.layout
        self.rng = rng
        self.key = schedule.policy(self.rng)
        self.hurried, self.delayed = hurried, delayed
        self.memory = list(self.layout.initial)
        self.stale = list(self.layout.initial) if machine.bulk_reads_stale else None
        """What was in each cell before it was last written."""
        self.lands_at_end = self.rng.random() < 0.5
        self.tags: dict[int, int] = {}
        counters = len(machine.programs.counters)
        self.totals = [0] * counters
        self.signals: list[list[int]] = [[] for _ in range(counters)]
        """Iterations of the tasks that signalled."""
        self.latest = [-1] * counters
        self.waiting: list[list[tuple[int, Move]]] = [[] for _ in range(counters)]
        """Moves and the total they wait for."""
        self.polling: dict[int, list[Move]] = {}
        self.held: list[Move] = []
        """Moves that wait for something else than counters and messages."""
        self.ready: list[tuple[float, int, Move]] = []
        self.serial = 0
        self.history: list[tuple[int, Move]] = []
        self.versions: list[int] = []
        self.tokens: list[dict[int, Values]] = []
        self.pin: int | None = None
        self.published = self.steps_done = self.batches_done = self.seen_published = 0
        steps = self.reference.iterations
        tokens = [("decode", token) for token in range(steps + MORE_TOKENS)]
        self.serving: Role
        self.clocks = None
        if machine.programs.programs["decode"].claims == abi.CLAIM_OWNED:
            self.serving = OwnedRole("serve", tokens, machine.tasks, schedule, rng, self.reference.seats)
            self.clocks = Clocks(len(self.serving.blocks))
        else:
            self.serving = Role("serve", tokens, machine.tasks, schedule, rng)
        self.roles = [Role("train", iterations_of_training(steps), machine.tasks, schedule, rng), self.serving,
                      Role("doom", [("doom", tic) for tic in range(steps)], machine.tasks, schedule, rng)]
        self.blocks = [block for role in self.roles for block in role.blocks]

    def run(self) -> None:
        """Raises Fault."""
        for block in self.blocks:
            self._claim(block)
        for block in self.blocks:
            self._look_at_next(block)
        while self.ready:
            move = heappop(self.ready)[2]
            if move.started:
                self._end(move)
            else:
                self._start(move)
        if any(role.left for role in self.roles):
            raise Fault(self._deadlock())
        for block in self.blocks:
            self._land(block)
        self._compare()

    def _claim(self, block: Block) -> None:
        for move in block.role.claim(block):
            place = (move.task.program, move.task.index)
            move.hurried, move.delayed = place in self.hurried, place in self.delayed

    def _look_at_next(self, block: Block) -> None:
        if block.claimed:
            self._consider(block.claimed[0])

    def _open(self, move: Move) -> None:
        """The token's other tasks may begin, and who owns those of the next one is known."""
        assert isinstance(self.serving, OwnedRole) and self.clocks
        self.clocks.open(move.block.number)
        self.serving.opened = max(self.serving.opened, move.iteration + 1)
        self._look_at_held()
        for block in self.serving.blocks:
            idle = not block.claimed
            self._claim(block)
            if idle:
                self._look_at_next(block)

    # --- what a task waits for ---------------------------------------------------------------------------------------

    def _consider(self, move: Move) -> None:
        """Lets it start, or leaves it where it will be looked at again."""
        task, iteration = move.task, move.iteration
        for counter, count, lag in task.waits:
            due = iteration + 1 - lag
            if self.totals[counter] < count * due:
                self.waiting[counter].append((count * due, move))
                return
            if self.latest[counter] >= due > 0:
                self._check_not_mixed(move, counter, count, due)
        if not self._scheduled(move):
            self.held.append(move)
        elif not task.patterns[0].polls or self._arrived(move):
            self._push(move, False)

    def _push(self, move: Move, ends: bool) -> None:
        self.serial += 1
        heappush(self.ready, (self.key(move, ends), self.serial, move))

    def _check_not_mixed(self, move: Move, counter: int, count: int, due: int) -> None:
        if sum(iteration < due for iteration in self.signals[counter]) < count * due:
            name = self.machine.programs.counters[counter]
            raise Fault(f"{move} goes on because of signals of a later iteration on counter {name}")

    def _scheduled(self, move: Move) -> bool:
        """Whether the steps and batches before it are done or its token is open, where that matters."""
        match move.task.op:
            case "step_begin":
                return self.steps_done >= move.iteration and self.batches_done >= batches_before(move.iteration)
            case "sweep_begin":
                return self.steps_done >= steps_before(move.iteration) and self.batches_done >= move.iteration
        return not self._needs_open_token(move) or self.serving.opened > move.iteration

    def _needs_open_token(self, move: Move) -> bool:
        return move.block.role.owned and move.task.index > 0

    def _arrived(self, move: Move) -> bool:
        tags = self.tags
        for cells, generation, generations in move.task.patterns[0].polls:
            tag = (move.iteration * generations + generation) % TAGS
            for cell in cells:
                if tags.get(cell) != tag:
                    self.polling.setdefault(cell, []).append(move)
                    return False
        return True

    def _look_at_held(self) -> None:
        held, self.held = self.held, []
        for move in held:
            if move.started:
                self._leave_publish(move)
            else:
                self._consider(move)

    # --- a task begins -----------------------------------------------------------------------------------------------

    def _start(self, move: Move) -> None:
        task = move.task
        if task.patterns[0].polls and not self._arrived(move):
            return
        known = self._truth(move)
        pattern = move.pattern = task.patterns[move.version % self.layout.rotation]
        memory = self.memory
        if self.clocks and move.block.role.owned:
            self._hear(move)
        values = pattern.gather(memory) if task.fenced_before else self._gather_stale(pattern)
        expected = known.get(task.number)
        if expected is None:
            if max(values) >= BUSY:
                raise Fault(f"{move} reads what another task is writing")
        elif values != expected:
            raise Fault(self._wrong_input(move, values, expected))
        move.values, move.before, move.started = values, pattern.others(memory), True
        if not task.fenced_after:
            move.overwritten = [(cell, memory[cell]) for cell in pattern.bulk]
        self._occupy(move)
        if pattern.packets and self.rng.random() < 0.5:
            self._write(move)
        if task.op == "publish":
            self.published = move.iteration + 1
            self._leave_publish(move)
        else:
            self._push(move, True)

    def _truth(self, move: Move) -> dict[int, Values]:
        """What the tasks of its iteration have to find. Sets its weight version."""
        program, iteration = move.task.program, move.iteration
        if program != "decode":
            move.version = steps_before(iteration) if program == "sweep" else iteration
            return self.reference.found[program, iteration]
        if move.opens_token:
            self._open_token(move)
        if iteration >= len(self.tokens):
            raise Fault(f"{move} runs before its token has begun")
        if self.pin is None and move.task.patterns[0].rotates:
            raise Fault(f"{move} reads weights though no version is pinned")
        move.version = self.pin or 0
        return self.tokens[iteration]

    def _open_token(self, move: Move) -> None:
        if move.iteration != len(self.versions):
            raise Fault(f"{move} begins as number {len(self.versions)}")
        newest = self.published
        older = newest > self.seen_published and self.rng.random() < 0.3
        self.seen_published = newest
        self.pin = newest - older
        self.versions.append(self.pin)
        self.tokens.append(self.reference.token(tuple(self.versions)).found)
        self._look_at_held()

    def _hear(self, move: Move) -> None:
        assert self.clocks
        block, task = move.block.number, move.task
        self.clocks.begin(block, [counter for counter, _, _ in task.waits], self._needs_open_token(move))
        cell = self.clocks.unheard(block, [cell for cell, _ in move.pattern.reads])
        if cell is not None:
            raise Fault(f"{move} reads {self.layout.describe(cell)} of another block, of which only messages tell")

    def _gather_stale(self, pattern: Pattern) -> Values:
        assert self.stale is not None
        return (0, 0, *((self.stale if copied else self.memory)[cell] for cell, copied in pattern.reads))

    def _occupy(self, move: Move) -> None:
        memory, stale = self.memory, self.stale
        busy = BUSY + self.serial
        for cell, _ in move.pattern.writes:
            content = memory[cell]
            if content >= BUSY:
                raise Fault(f"{move} and another task write {self.layout.describe(cell)} at once")
            if stale is not None:
                stale[cell] = content
            memory[cell] = busy

    def _leave_publish(self, move: Move) -> None:
        """The next step overwrites the version before the one that this step read."""
        if self.pin is None or self.pin >= move.iteration:
            self._push(move, True)
        else:
            self.held.append(move)

    # --- a task ends -------------------------------------------------------------------------------------------------

    def _end(self, move: Move) -> None:
        if not move.written:
            self._write(move)
        task, block = move.task, move.block
        match task.op:
            case "publish":
                self.steps_done = move.iteration + 1
                self._look_at_held()
            case "sweep_loss":
                self.batches_done = move.iteration + 1
                self._look_at_held()
            case "sample":
                self.pin = None
                self._look_at_held()
        if task.signal is not None:
            if self.clocks and block.role.owned:
                self.clocks.signal(block.number, task.signal)
            self._signal(task.signal, move.iteration)
        if block.landing and not self.lands_at_end:
            self._land(block)
        block.landing += move.landing
        block.claimed.popleft()
        block.role.left -= 1
        self._claim(block)
        self._look_at_next(block)

    def _write(self, move: Move) -> None:
        task, pattern, memory = move.task, move.pattern, self.memory
        if pattern.others(memory) != move.before:
            raise Fault(self._changed_input(move))
        if pattern.rotates and task.program == "decode" and self.pin != move.version:
            raise Fault(f"the weights of version {move.version} are let go while {move} reads them")
        made = hash((task.kind, move.iteration, move.values))
        self.history.append((made, move))
        move.written = True
        for cell, name in pattern.writes:
            memory[cell] = made ^ name
        for cell, content in move.overwritten:
            move.landing.append((cell, memory[cell]))
            memory[cell] = content
        if self.clocks and move.block.role.owned:
            self.clocks.write(move.block.number, [cell for cell, _ in pattern.writes])
            if move.opens_token:
                self._open(move)
        if pattern.packets:
            self._send(move, made)

    def _send(self, move: Move, made: int) -> None:
        generation, generations = move.pattern.tag
        tag = (move.iteration * generations + generation) % TAGS
        woken: list[Move] = []
        for cell, name in move.pattern.packets:
            if self.tags.get(cell) == tag:
                raise Fault(f"{move} sends {self.layout.describe(cell)}, which has been sent")
            self.memory[cell], self.tags[cell] = made ^ name, tag
            woken += self.polling.pop(cell, ())
        for reader in woken:
            self._consider(reader)

    def _signal(self, counter: int, iteration: int) -> None:
        total = self.totals[counter] = self.totals[counter] + 1
        self.signals[counter].append(iteration)
        self.latest[counter] = max(self.latest[counter], iteration)
        waiting = self.waiting[counter]
        if waiting:
            self.waiting[counter] = [entry for entry in waiting if entry[0] > total]
            for due, move in waiting:
                if due <= total:
                    self._consider(move)

    def _land(self, block: Block) -> None:
        for cell, content in block.landing:
            self.memory[cell] = content
        block.landing = []

    # --- what went wrong ---------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        """What is left must be what the reference leaves."""
        reference, steps = self.reference, self.reference.iterations
        if self.published != steps or self.steps_done != steps:
            raise Fault(f"{self.published} steps are published, {self.steps_done} done, not {steps}")
        served = reference.token(tuple(self.versions)).memory
        for name, buffer in self.layout.buffers.items():
            if name in reference.weights[steps]:
                for version in range(steps + 1 - buffer.copies, steps + 1):
                    self._compare_buffer(name, version, reference.weights[version][name])
            elif name not in reference.more and buffer.copies == 1:
                memory = served if name in reference.served else reference.memory
                self._compare_buffer(name, 0, memory[reference.layout.span(name, 0)])

    def _compare_buffer(self, name: str, version: int, expected: list[int]) -> None:
        span = self.layout.span(name, version)
        found = self.memory[span]
        if found != expected:
            cell, right = next((span.start + i, right) for i, right in enumerate(expected) if found[i] != right)
            raise Fault(f"at the end {self.layout.describe(cell)} has {self._origin(cell, self.memory[cell])}, not "
                        f"{self._origin(cell, right)}")

    def _wrong_input(self, move: Move, values: Values, expected: Values) -> str:
        slot = next(i for i, (value, right) in enumerate(zip(values, expected, strict=True)) if value != right)
        cell = move.pattern.reads[slot - 2][0]
        return (f"{move} reads {self.layout.describe(cell)} and finds {self._origin(cell, values[slot])}, not "
                f"{self._origin(cell, expected[slot])}")

    def _changed_input(self, move: Move) -> str:
        own = {cell for cell, _ in (*move.pattern.writes, *move.pattern.packets)}
        others = [cell for cell, _ in move.pattern.reads if cell not in own]
        now = move.pattern.others(self.memory)
        slot = next(i for i, value in enumerate(move.before) if value != now[i])
        cell = others[slot - 2]
        return f"while {move} ran, {self.layout.describe(cell)} became {self._origin(cell, now[slot])}"

    def _origin(self, cell: int, content: int) -> str:
        """Where the content of a cell comes from."""
        if content >= BUSY:
            return "what a task is writing"
        if content == self.layout.initial[cell]:
            return "what was there at first"
        made = content ^ self.layout.names[cell]
        right = self.reference.writers.get(made)
        if right:
            return f"the output of {right}"
        wrong = next((move for hashed, move in self.history if hashed == made), None)
        return f"a wrong output of {wrong}" if wrong else "what was somewhere else at first"

    def _deadlock(self) -> str:
        stuck = sorted((block.claimed[0] for block in self.blocks if block.claimed), key=lambda move: move.place)
        if not stuck:
            return f"{sum(role.left for role in self.roles)} tasks are nobody's"
        first = {move.role: move for move in reversed(stuck)}
        return "nobody can go on: " + "; ".join(f"{move} {self._reason(move)}" for move in first.values())

    def _reason(self, move: Move) -> str:
        for counter, count, lag in move.task.waits:
            due = count * (move.iteration + 1 - lag)
            came = self.totals[counter]
            if came < due:
                return f"waits for {due} signals of {self.machine.programs.counters[counter]}, {came} came"
        for cells, generation, generations in move.task.patterns[0].polls:
            tag = (move.iteration * generations + generation) % TAGS
            for cell in cells:
                if self.tags.get(cell) != tag:
                    return f"waits for message {tag} in {self.layout.describe(cell)}, which is {self.tags.get(cell, 0)}"
        return "waits for the pin" if move.started else "waits for its step, batch or token to be opened"

