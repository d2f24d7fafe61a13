"""One piece of memory with everything a run needs, and the Launch that points into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ofa_tui import abi
from ofa_tui.engine import cuda_maps, limits, windows
from ofa_tui.engine.arena import ALIGNMENT, PAGE, Arena
from ofa_tui.engine.config import RunConfig, ServingState, StreamState, deadline_s
from ofa_tui.engine.layouts import from_bf16, to_bf16, to_stream
from ofa_tui.engine.schedule import make_schedule
from ofa_tui.errors import OfaError
from ofa_tui.program.types import Buffer, ProgramSet

PER_STEP = ("losses", "step_end_ns", "train_windows", "sweep_sums", "sweep_counts")
"""Arrays that grow with the number of steps."""
SNAPSHOT_BYTES, MOST_SNAPSHOTS = 1 << 28, 64
"""What all games' snapshots may need together, and how many of one game are kept: there is one per second of it."""
ZERO_AT_FIRST = ("scratch", "doom_games", "doom_snapshots")
"""Arrays beside buffers that the host leaves as they are."""
ZERO_KINDS = ("activation", "gradient")
"""Kinds of buffers that the host leaves as they are."""
ROLE_OF_PROGRAM = {"train": abi.TRAIN, "sweep": abi.TRAIN, "decode": abi.SERVE, "doom": abi.DOOM}
DTYPES = {"f4": np.float32, "bf16": np.uint16, "i4": np.int32, "u1": np.uint8, "f8": np.float64, "u8": np.uint64,
          "packet": np.uint64}


def buffer_array(buffer: Buffer) -> str:
    """Name of a program buffer's array in the arena."""
    return f"buffer/{buffer.name}"


def to_storage(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """f4 values as an array of a buffer holds them: as they are, or the bits of the nearest bf16."""
    return to_bf16(values) if dtype == DTYPES["bf16"] else values


def from_storage(stored: np.ndarray) -> np.ndarray:
    """An f4 copy of what an array of weights holds."""
    return from_bf16(stored) if stored.dtype == DTYPES["bf16"] else stored.astype(np.float32)


class RunMemory:
    """The arena of a run, filled in: initial weights, data order, programs, control block, game seats.

    What is read or written while the kernel runs lies in the first `shared_bytes` of it: a GPU's engine keeps a copy
    of them. The other arrays are the kernel's alone between start and end.
    """

    def __init__(self, programs: ProgramSet, config: RunConfig, scratch_bytes: Callable[[np.ndarray], int],
                 game_bytes: int, available_bytes: int, snapshot_bytes: int = 0,
                 default_deadline_s: float | None = None) -> None:
        """`scratch_bytes` says what each SM needs, given an abi.LAUNCH with its model filled in. With `snapshot_bytes`
        0 no game can be rewound.

        `default_deadline_s` counts where the run has none of its own; without it, what suits a processor.
        """
        self.programs = programs
        self.config = config
        self._deadline_s = config.deadline_s or default_deadline_s or deadline_s(config)
        self._valid_windows = windows.valid_windows(len(config.valid_tokens), config.model.context, config.train.batch)
        self.schedule = make_schedule(config, len(self._valid_windows))
        limits.check_programs(programs, config)
        limits.check_tickets(programs, config, self.schedule)
        self.arena = arena = Arena()
        head = model_of_launch(config)
        self._scratch_bytes = -(-scratch_bytes(head) // ALIGNMENT) * ALIGNMENT
        self._snapshot_slots = _snapshot_slots(config.games * snapshot_bytes)
        self._reserve(game_bytes, snapshot_bytes)
        of_steps = sum(arena.bytes_of(name) for name in PER_STEP)
        limits.check_memory(config, arena.size, of_steps, available_bytes)
        arena.allocate()
        self._fill_launch(head)
        self._fill_operands()
        self._fill_data()
        self._fill_weights()
        self._fill_messages()
        self._fill_control()
        self._fill_clocks()
        if config.serving:
            self._fill_serving(config.serving)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arena[name]

    def buffer(self, name: str) -> np.ndarray:
        """A program buffer, [copies, rows, cols]."""
        return self.arena[buffer_array(self.programs.buffers[name])]

    def moments(self, which: str) -> dict[str, np.ndarray]:
        """f4 copies of AdamW's moments of every parameter, `m` or `v`."""
        return {name: self.buffer(f"{name}.{which}")[0].copy() for name in self.programs.parameters}

    def weights(self, version: int) -> dict[str, np.ndarray]:
        """f4 copies of every parameter of a weight version."""
        return {
            name: from_storage(self.buffer(name)[version % self.programs.buffers[name].copies])
            for name in self.programs.parameters
        }

    def exact_weights(self, version: int) -> dict[str, np.ndarray]:
        """As `weights` of the newest version, as exact as the optimiser has them."""
        masters = {name: f"{name}.master" for name in self.programs.parameters}
        return {
            name: self.buffer(masters[name])[0].copy() if masters[name] in self.programs.buffers else weights
            for name, weights in self.weights(version).items()
        }

    def initial_parts(self) -> Iterator[tuple[int, int]]:
        """(offset, bytes) of the parts of the arena that need not be zero when the kernel starts."""
        buffers = {buffer_array(buffer): buffer for buffer in self.programs.buffers.values()}
        for name in self.arena.names():
            kind = buffers[name].kind if name in buffers else ""
            fresh = (kind == "moment" and self.config.initial is None) or (
                kind == "cache" and self.config.serving is None)
            if name not in ZERO_AT_FIRST and kind not in ZERO_KINDS and not fresh:
                yield self.arena.offset(name), self.arena.bytes_of(name)

    def state_parts(self) -> Iterator[tuple[int, int]]:
        """(offset, bytes) of weights, their masters and moments: what `weights` and `moments` read after a run."""
        for buffer in self.programs.buffers.values():
            if buffer.kind != "cache" and _is_state(buffer):
                name = buffer_array(buffer)
                yield self.arena.offset(name), self.arena.bytes_of(name)

    @property
    def state_range(self) -> tuple[int, int]:
        """(offset, bytes), in whole pages, that hold what is copied out while the kernel runs."""
        return self.shared_bytes, self._state_end - self.shared_bytes

    # --- layout ---------------------------------------------------------------------------------------------------

    def _reserve(self, game_bytes: int, snapshot_bytes: int) -> None:
        self._reserve_shared()
        self.shared_bytes = -(-self.arena.size // PAGE) * PAGE
        self.arena.pad_to(self.shared_bytes)
        self._reserve_buffers(state=True)
        self._state_end = -(-self.arena.size // PAGE) * PAGE
        self.arena.pad_to(self._state_end)
        self._reserve_private(game_bytes, snapshot_bytes)
        self._reserve_buffers(state=False)

    def _reserve_shared(self) -> None:
        arena, config = self.arena, self.config
        games, steps = config.games, self.schedule.own_steps
        arena.reserve("control", abi.CONTROL, 1)
        arena.reserve("prompts", np.int32, abi.PROMPT_SLOTS, config.model.context)
        arena.reserve("telemetry", abi.TELEMETRY, 1)
        arena.reserve("telemetry_after", abi.TELEMETRY, 1)  # a copy that a GPU's engine makes after all others
        arena.reserve("serve", abi.SERVE_STATE, 1)
        arena.reserve("queues", abi.QUEUE, len(abi.ROLES))
        arena.reserve("roles", np.uint32, abi.MAX_SMS)
        arena.reserve("seats", abi.SEAT, abi.MAX_SMS)
        arena.reserve("counters", np.uint64, len(self.programs.counters), abi.COUNTER_STRIDE)
        arena.reserve("losses", np.float32, steps)
        arena.reserve("step_end_ns", np.uint64, steps)
        batches = self.schedule.all_batches - self.schedule.first_batch
        arena.reserve("sweep_sums", np.float64, batches)
        arena.reserve("sweep_counts", np.uint64, batches)
        arena.reserve("served", abi.SERVED, abi.SERVED_RING)
        arena.reserve("frames", np.uint8, games, abi.FRAME_SLOTS, abi.FRAME_HEIGHT, abi.FRAME_WIDTH)
        arena.reserve("doom_status", abi.DOOM_STATUS, games, abi.FRAME_SLOTS)
        arena.reserve("doom_commands", abi.DOOM_COMMAND, games, abi.COMMAND_RING)
        arena.reserve("doom_seats", abi.DOOM_SEAT, games)
        arena.reserve("timeline", abi.TIMELINE_ENTRY, config.n_sms, config.timeline_entries)

    def _reserve_private(self, game_bytes: int, snapshot_bytes: int) -> None:
        arena, config, programs = self.arena, self.config, self.programs
        games = config.games
        arena.reserve("launch", abi.LAUNCH, 1)
        arena.reserve("operands", abi.OPERAND, len(programs.views))
        arena.reserve("tensor_maps", np.uint8, cuda_maps.first_maps(programs)[1], cuda_maps.MAP_BYTES)
        for name in abi.PROGRAMS:
            arena.reserve(f"tasks/{name}", abi.TASK, len(programs.programs[name].tasks))
        arena.reserve("train_tokens", np.int32, len(config.train_tokens))
        arena.reserve("valid_tokens", np.int32, len(config.valid_tokens))
        arena.reserve("train_windows", np.int64, self.schedule.own_steps, config.train.batch)
        arena.reserve("valid_windows", np.int64, *self._valid_windows.shape)
        arena.reserve("doom_games", np.uint8, games, game_bytes)
        arena.reserve("doom_snapshots", np.uint8, games, self._snapshot_slots, snapshot_bytes)
        arena.reserve("doom_wad", np.uint8, len(config.doom.blob) if config.doom and games else 0)
        arena.reserve("scratch", np.uint8, config.n_sms, self._scratch_bytes)

    def _reserve_buffers(self, state: bool) -> None:
        for buffer in self.programs.buffers.values():
            if _is_state(buffer) == state:
                self.arena.reserve(buffer_array(buffer), DTYPES[buffer.dtype], buffer.copies, *buffer.shape)

    def _fill_launch(self, head: np.ndarray) -> None:
        config, programs = self.config, self.programs
        launch = self["launch"]
        launch[:] = head
        launch["n_sms"] = config.n_sms
        launch["n_counters"] = len(programs.counters)
        launch["n_operands"] = len(programs.views)
        launch["n_games"] = config.games
        launch["snapshot_slots"] = self._snapshot_slots
        launch["scratch_bytes"] = self._scratch_bytes
        launch["timeline_entries"] = config.timeline_entries
        launch["schedule"] = self.schedule.row()
        launch["data"]["n_train"] = len(config.train_tokens)
        launch["data"]["n_valid"] = len(config.valid_tokens)
        fields = _offsets(abi.LAUNCH)
        for name in fields:
            if name in self.arena:
                self.arena.point(self.arena.offset("launch") + fields[name], name)
        data = self.arena.offset("launch") + fields["data"]
        for name, offset in _offsets(abi.DATA).items():
            if name in self.arena:
                self.arena.point(data + offset, name)
        for index, name in enumerate(abi.PROGRAMS):
            tasks = programs.programs[name].tasks
            self[f"tasks/{name}"][:] = tasks
            entry = self.arena.offset("launch") + fields["programs"] + index * abi.PROGRAM.itemsize
            self.arena.point(entry + _offsets(abi.PROGRAM)["tasks"], f"tasks/{name}")
            launch["programs"][0, index]["n_tasks"] = len(tasks)
            launch["programs"][0, index]["claims"] = programs.programs[name].claims

    def _fill_operands(self) -> None:
        operands = self["operands"]
        maps = cuda_maps.first_maps(self.programs)[0]
        for index, view in enumerate(self.programs.views):
            buffer = self.programs.buffers[view.buffer]
            rows, cols = buffer.shape
            row = operands[index]
            row["copy_bytes"] = rows * cols * np.dtype(DTYPES[buffer.dtype]).itemsize
            row["pitch"], row["rows"], row["cols"] = cols, rows, cols
            row["tensor_map"] = maps.get(index, abi.NONE_U32)
            row["copies"], row["rotation"] = buffer.copies, view.rotation
            row["dtype"], row["layout"] = abi.DTYPES.index(buffer.dtype), abi.LAYOUTS.index(buffer.layout)
            row["generation"], row["generations"] = view.generation, buffer.generations
            place = self.arena.offset("operands") + index * abi.OPERAND.itemsize
            self.arena.point(place + _offsets(abi.OPERAND)["base"], buffer_array(buffer))

    # --- contents -------------------------------------------------------------------------------------------------

    def _fill_data(self) -> None:
        config = self.config
        self["train_tokens"][:] = config.train_tokens
        self["valid_tokens"][:] = config.valid_tokens
        context, batch = config.model.context, config.train.batch
        self["train_windows"][:] = windows.train_windows(
            len(config.train_tokens), context, batch, self.schedule.own_steps, config.seed, config.first_step
        )
        self["valid_windows"][:] = self._valid_windows

    def _fill_weights(self) -> None:
        """Version `first_step`: the one given, or one drawn from the seed."""
        initial = self.config.initial
        if initial is None:
            for name, first in initial_weights(self._shapes(), self.config.train.init_std, self.config.seed):
                self._fill_copies(name, first)
            return
        for name, shape in self._shapes().items():
            self.buffer(f"{name}.m")[0] = _initial(initial.m, name, shape)
            self.buffer(f"{name}.v")[0] = _initial(initial.v, name, shape)
            self._fill_copies(name, _initial(initial.weights, name, shape))

    def _shapes(self) -> dict[str, tuple[int, int]]:
        return {name: self.programs.buffers[name].shape for name in self.programs.parameters}

    def _fill_copies(self, name: str, first: np.ndarray) -> None:
        """A parameter's rows, and what a target keeps of it beside them: the f4 master, the stream order."""
        buffers, version = self.programs.buffers, self.config.first_step
        rows = self.buffer(name)
        rows[version % len(rows)] = to_storage(first, rows.dtype)
        if f"{name}.master" in buffers:
            self.buffer(f"{name}.master")[0] = first
        if f"{name}.stream" in buffers:
            stream = self.buffer(f"{name}.stream")
            stream[version % len(stream)] = to_stream(to_storage(first, stream.dtype))

    def _fill_messages(self) -> None:
        """Tags of the generation before the first: nobody waits for them until they have gone all the way round."""
        for buffer in self.programs.buffers.values():
            if buffer.kind == "message":
                tag = self.config.first_token * buffer.generations % (1 << 32)
                self.buffer(buffer.name)[:] = tag << 32

    def _fill_control(self) -> None:
        config = self.config
        control, serve = self["control"], self["serve"]
        control["deadline_ns"] = round(self._deadline_s * 1e9)
        control["token_interval_ns"] = round(1e9 / config.tokens_per_s) if config.tokens_per_s else 0
        control["tic_interval_ns"] = round(1e9 / config.tics_per_s) if config.tics_per_s else 0
        control["jitter_seed"] = config.jitter_seed
        self["telemetry"]["applied"] = abi.NONE_U64
        roles = [role for role, count in enumerate(config.sms, abi.TRAIN) for _ in range(count)]
        self["roles"][: len(roles)] = roles
        serve["pin"] = abi.NONE_U64
        serve["end_of_text"] = config.tokenizer.end_of_text
        serve["vocab_used"] = config.tokenizer.size
        serve["n_streams"] = config.streams
        if config.doom and config.games:
            self["doom_wad"][:] = np.frombuffer(config.doom.blob, np.uint8)
            seats = self["doom_seats"]
            seats["behaviour"] = config.doom.behaviour
            starts = [config.doom.first_level(game) for game in range(config.games)]
            seats["episode"], seats["map"] = np.array(starts).T
            seats["skill"] = config.doom.skill
            seats["seed"] = config.seed + np.arange(config.games)
            seats["new_game"] = 1

    def _fill_clocks(self) -> None:
        """Where every clock, queue and counter of an unbroken run would stand: what comes before is done, no more."""
        config, schedule, telemetry, serve = self.config, self.schedule, self["telemetry"], self["serve"]
        telemetry["steps_done"] = serve["published"] = config.first_step
        telemetry["sweep_batches_done"] = schedule.first_batch
        telemetry["tokens_served"] = serve["tokens"] = serve["opened"] = config.first_token
        self._fill_streams()
        telemetry["frames"][0, : config.games] = self["doom_seats"]["tics"] = config.first_tic
        done = {"train": config.first_step, "sweep": schedule.first_batch, "decode": config.first_token,
                "doom": config.first_tic}
        for name, iterations in done.items():
            tasks = self.programs.programs[name].tasks
            self["queues"]["next"][ROLE_OF_PROGRAM[name]] += np.uint64(iterations * len(tasks))
            signals = tasks["signal"][tasks["signal"] != abi.NONE_U32]
            np.add.at(self["counters"][:, 0], signals, np.uint64(iterations))

    def _fill_streams(self) -> None:
        """All streams before their first token. The first ones tell, and have the first stories."""
        config, serve = self.config, self["serve"]
        streams = serve["streams"][0, : config.streams]
        numbers, telling = np.arange(config.streams), config.streams_telling
        streams["random_seed"] = config.seed + (numbers.astype(np.uint64) << np.uint64(32))
        streams["input_token"] = config.tokenizer.end_of_text
        streams["prompt_slot"] = abi.NONE_U32
        streams["temperature"] = config.sampling.temperature
        streams["top_k"], streams["top_p"] = config.sampling.top_k, config.sampling.top_p
        streams["telling"] = streams["keeps_telling"] = numbers < telling
        streams["story"] = config.first_story + numbers
        serve["stories"] = config.first_story + telling

    def _fill_serving(self, state: ServingState) -> None:
        """The stories so far: their entries of the log, one story behind the other, and what is next of each."""
        self["serve"]["stories"] = state.stories
        end = state.token - sum(len(stream.tokens) for stream in state.streams)
        for number, stream in enumerate(state.streams):
            self._fill_stream(number, stream)
            end += len(stream.tokens)
            self._fill_log(number, stream, end)

    def _fill_stream(self, number: int, state: StreamState) -> None:
        """Its state, its part of the caches, and the rest of its prompt."""
        stream, context = self["serve"]["streams"][0, number], self.config.model.context
        rows = len(state.tokens)
        stream["tokens"] = state.token
        if state.telling or not stream["telling"]:
            stream["story"], stream["telling"] = state.story, state.telling
        else:  # it rested, and is to tell by itself now
            stream["story"] = self["serve"]["stories"][0]
            self["serve"]["stories"] += 1
        stream["position"], stream["random_seed"] = rows, state.seed
        stream["temperature"] = state.sampling.temperature
        stream["top_k"], stream["top_p"] = state.sampling.top_k, state.sampling.top_p
        if rows:
            stream["input_token"] = state.tokens[-1]
        for which, caches in (("k", state.keys), ("v", state.values)):
            for layer in range(self.config.model.layers):
                name = f"layers.{layer}"
                cache = self.buffer(f"{name}.{which}_cache")[0]
                kept = _initial(caches, name, (rows, cache.shape[1]))
                if kept.dtype != cache.dtype:
                    raise OfaError(f"the cache to go on from holds {kept.dtype} and this run's {cache.dtype}; "
                                   "go on with the target that wrote it")
                cache[number * context : number * context + rows] = kept
        if len(state.prompt):
            # The stream's last slot: steering begins with its first, and by the time it comes here this prompt is over.
            slot = (number + 1) * abi.STREAM_PROMPTS - 1
            self["prompts"][slot, : len(state.prompt)] = state.prompt
            stream["prompt_slot"], stream["prompt_length"], stream["prompt_read"] = slot, len(state.prompt), 0

    def _fill_log(self, number: int, state: StreamState, end: int) -> None:
        log, rows = self["served"], len(state.tokens)
        at = np.arange(end - rows, end) % abi.SERVED_RING
        log["token"][at], log["version"][at], log["position"][at] = state.tokens, state.versions, np.arange(rows)
        log["story"][at], log["stream"][at] = state.story, number


def _is_state(buffer: Buffer) -> bool:
    """Whether it is copied out to go on from. Weights in stream order are not: they follow from the others."""
    return buffer.kind in ("weight", "master", "moment", "cache") and buffer.layout == "rows"


def initial_weights(shapes: Mapping[str, tuple[int, int]], deviation: float, seed: int
                    ) -> Iterator[tuple[str, np.ndarray]]:
    """f4 arrays by parameter: matrices normal with this deviation, gains ([1, n]) 1."""
    rng = np.random.default_rng([seed, 0x776569])
    for name, shape in shapes.items():
        if shape[0] == 1:
            yield name, np.ones(shape, np.float32)
        else:
            yield name, rng.standard_normal(shape, np.float32) * np.float32(deviation)


def _snapshot_slots(bytes_of_all: int) -> int:
    """Snapshots kept of each game, given what one of every game needs."""
    return min(MOST_SNAPSHOTS, SNAPSHOT_BYTES // bytes_of_all) if bytes_of_all else 0


def _offsets(dtype: np.dtype) -> dict[str, int]:
    assert dtype.fields is not None
    return {name: field[1] for name, field in dtype.fields.items()}


def _initial(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    found = arrays.get(name)
    if found is None or found.shape != shape:
        has = "none" if found is None else " x ".join(map(str, found.shape))
        raise OfaError(f"the weights to go on from are another model's: {name} should be "
                       f"{' x '.join(map(str, shape))} and is {has}")
    return found


def model_of_launch(config: RunConfig) -> np.ndarray:
    """abi.LAUNCH [1] with nothing but the model and the optimiser filled in."""
    launch = np.zeros(1, abi.LAUNCH)
    model, train = config.model, config.train
    shape = launch["model"]
    for name in ("layers", "width", "heads", "head_dim", "feed_forward", "context", "vocab"):
        shape[name] = getattr(model, name)
    shape["batch"] = train.batch
    shape["rope_base"], shape["norm_epsilon"] = model.rope_base, model.norm_epsilon
    optimizer = launch["optimizer"]
    for name in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "warmup_steps"):
        optimizer[name] = getattr(train, name)
    optimizer["final_fraction"], optimizer["total_steps"] = train.final_lr_fraction, train.steps
    return launch
