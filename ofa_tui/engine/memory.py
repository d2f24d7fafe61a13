"""One piece of memory with everything a run needs, and the Launch that points into it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.engine import windows
from ofa_tui.engine.config import RunConfig, deadline_s
from ofa_tui.errors import OfaError
from ofa_tui.program.types import Buffer, ProgramSet

ALIGNMENT = 128
IMAGE_MAGIC = 0x31474D4941464F
DTYPES = {"f4": np.float32, "bf16": np.uint16, "i4": np.int32, "u1": np.uint8, "f8": np.float64, "u8": np.uint64,
          "packet": np.uint64}


class Arena:
    """Named arrays in one allocation, and the pointers between them as offsets, so that it can be moved."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, np.dtype, tuple[int, ...]]] = {}
        self._pointers: list[tuple[int, int]] = []
        self._bytes = 0
        self._memory = np.zeros(0, np.uint8)

    def reserve(self, name: str, dtype: np.dtype | type, *shape: int) -> None:
        """Room for an array, zero at first. Only before `allocate`."""
        kind = np.dtype(dtype)
        self._places[name] = (self._bytes, kind, shape)
        size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        self._bytes += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT

    @property
    def size(self) -> int:
        return self._bytes

    def allocate(self) -> None:
        raw = np.zeros(self._bytes + ALIGNMENT, np.uint8)
        shift = -raw.ctypes.data % ALIGNMENT
        self._memory = raw[shift : shift + self._bytes]

    @property
    def address(self) -> int:
        return self._memory.ctypes.data

    def offset(self, name: str) -> int:
        return self._places[name][0]

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> np.ndarray:
        offset, dtype, shape = self._places[name]
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return self._memory[offset : offset + size].view(dtype).reshape(shape)

    def point(self, field_offset: int, target: str) -> None:
        """Makes the u8 at `field_offset` the address of array `target`."""
        self._pointers.append((field_offset, self.offset(target)))
        address = self.address + self.offset(target)
        self._memory[field_offset : field_offset + 8].view(np.uint64)[0] = address

    def save_image(self, path: Path, launch: str) -> None:
        """Writes a relocatable image for cuda/platform/host_main.cpp."""
        header = struct.pack("<4Q", IMAGE_MAGIC, len(self._pointers), self.offset(launch), self._bytes)
        with path.open("wb") as out:
            out.write(header)
            out.write(np.array(self._pointers, np.uint64).tobytes())
            out.write(self._memory.tobytes())


def buffer_array(buffer: Buffer) -> str:
    """Name of a program buffer's array in the arena."""
    return f"buffer/{buffer.name}"


def schedule(config: RunConfig) -> np.ndarray:
    """abi.SCHEDULE [1] of a run from step 0. Without held-out text there are no sweeps."""
    train = config.train
    final = windows.valid_windows(len(config.valid_tokens), config.model.context, train.batch)
    between = min(train.sweep_batches, len(final))
    row = np.zeros(1, abi.SCHEDULE)
    row["steps"] = train.steps
    row["sweep_every"] = train.sweep_every if between else 0
    row["sweep_batches"] = between
    row["final_batches"] = len(final)
    return row


def sweep_iterations(row: np.void) -> int:
    """Batches of all sweeps of a schedule."""
    sweeps = (int(row["steps"]) - 1) // int(row["sweep_every"]) if row["sweep_every"] else 0
    return sweeps * int(row["sweep_batches"]) + int(row["final_batches"])


class RunMemory:
    """The arena of a run, filled in: initial weights, data order, programs, control block, game seats."""

    def __init__(self, programs: ProgramSet, config: RunConfig, scratch_bytes: Callable[[np.ndarray], int],
                 game_bytes: int, available_bytes: int) -> None:
        """`scratch_bytes` says what each SM needs, given an abi.LAUNCH with its model filled in."""
        self.programs = programs
        self.config = config
        self.schedule = schedule(config)
        self.arena = arena = Arena()
        head = np.zeros(1, abi.LAUNCH)
        _fill_model(head, config)
        self._scratch_bytes = -(-scratch_bytes(head) // ALIGNMENT) * ALIGNMENT
        self._reserve(game_bytes)
        if arena.size > available_bytes:
            raise OfaError(
                f"preset {config.preset} needs {arena.size / 1e9:.1f} GB of memory and "
                f"{available_bytes / 1e9:.1f} GB are free; choose a smaller preset"
            )
        arena.allocate()
        self._fill_launch(head)
        self._fill_operands()
        self._fill_data()
        self._fill_weights()
        self._fill_control()

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arena[name]

    def buffer(self, name: str) -> np.ndarray:
        """A program buffer, [copies, rows, cols]."""
        return self.arena[buffer_array(self.programs.buffers[name])]

    def weights(self, version: int) -> dict[str, np.ndarray]:
        """f4 copies of every parameter of a weight version."""
        return {
            name: self.buffer(name)[version % self.programs.buffers[name].copies].astype(np.float32)
            for name in self.programs.parameters
        }

    # --- layout ---------------------------------------------------------------------------------------------------

    def _reserve(self, game_bytes: int) -> None:
        arena, config, programs = self.arena, self.config, self.programs
        model, games, steps = config.model, config.games, config.train.steps
        arena.reserve("launch", abi.LAUNCH, 1)
        arena.reserve("control", abi.CONTROL, 1)
        arena.reserve("telemetry", abi.TELEMETRY, 1)
        arena.reserve("serve", abi.SERVE_STATE, 1)
        arena.reserve("queues", abi.QUEUE, len(abi.ROLES))
        arena.reserve("roles", np.uint32, abi.MAX_SMS)
        arena.reserve("counters", np.uint64, len(programs.counters), abi.COUNTER_STRIDE)
        arena.reserve("operands", abi.OPERAND, len(programs.views))
        for name in abi.PROGRAMS:
            arena.reserve(f"tasks/{name}", abi.TASK, len(programs.programs[name].tasks))
        arena.reserve("losses", np.float32, steps)
        arena.reserve("step_end_ns", np.uint64, steps)
        sweeps = sweep_iterations(self.schedule[0])
        arena.reserve("sweep_sums", np.float64, sweeps)
        arena.reserve("sweep_counts", np.uint64, sweeps)
        arena.reserve("train_tokens", np.int32, len(config.train_tokens))
        arena.reserve("valid_tokens", np.int32, len(config.valid_tokens))
        arena.reserve("train_windows", np.int64, steps, config.train.batch)
        arena.reserve("valid_windows", np.int64, int(self.schedule["final_batches"][0]), config.train.batch)
        arena.reserve("served", abi.SERVED, abi.SERVED_RING)
        arena.reserve("prompts", np.int32, abi.PROMPT_SLOTS, model.context)
        arena.reserve("frames", np.uint8, games, abi.FRAME_SLOTS, abi.FRAME_HEIGHT, abi.FRAME_WIDTH)
        arena.reserve("doom_status", abi.DOOM_STATUS, games, abi.FRAME_SLOTS)
        arena.reserve("doom_commands", abi.DOOM_COMMAND, games, abi.COMMAND_RING)
        arena.reserve("doom_seats", abi.DOOM_SEAT, games)
        arena.reserve("doom_games", np.uint8, games, game_bytes)
        arena.reserve("doom_wad", np.uint8, len(config.doom.blob) if config.doom and games else 0)
        arena.reserve("scratch", np.uint8, config.n_sms, self._scratch_bytes)
        for buffer in programs.buffers.values():
            arena.reserve(buffer_array(buffer), DTYPES[buffer.dtype], buffer.copies, *buffer.shape)

    def _fill_launch(self, head: np.ndarray) -> None:
        config, programs = self.config, self.programs
        launch = self["launch"]
        launch[:] = head
        launch["n_sms"] = config.n_sms
        launch["n_counters"] = len(programs.counters)
        launch["n_operands"] = len(programs.views)
        launch["n_games"] = config.games
        launch["scratch_bytes"] = self._scratch_bytes
        launch["schedule"] = self.schedule
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
        for index, view in enumerate(self.programs.views):
            buffer = self.programs.buffers[view.buffer]
            rows, cols = buffer.shape
            row = operands[index]
            row["copy_bytes"] = rows * cols * np.dtype(DTYPES[buffer.dtype]).itemsize
            row["pitch"], row["rows"], row["cols"] = cols, rows, cols
            row["tensor_map"] = abi.NONE_U32
            row["copies"], row["rotation"] = buffer.copies, view.rotation
            row["dtype"] = abi.DTYPES.index(buffer.dtype)
            place = self.arena.offset("operands") + index * abi.OPERAND.itemsize
            self.arena.point(place + _offsets(abi.OPERAND)["base"], buffer_array(buffer))

    # --- contents -------------------------------------------------------------------------------------------------

    def _fill_data(self) -> None:
        config = self.config
        self["train_tokens"][:] = config.train_tokens
        self["valid_tokens"][:] = config.valid_tokens
        context, batch = config.model.context, config.train.batch
        self["train_windows"][:] = windows.train_windows(
            len(config.train_tokens), context, batch, config.train.steps, config.seed
        )
        self["valid_windows"][:] = windows.valid_windows(len(config.valid_tokens), context, batch)

    def _fill_weights(self) -> None:
        """Version 0: matrices normal with the preset's deviation, gains 1."""
        rng = np.random.default_rng([self.config.seed, 0x776569])
        for name in self.programs.parameters:
            first = self.buffer(name)[0]
            if self.programs.buffers[name].shape[0] == 1:
                first[:] = 1.0
            else:
                first[:] = rng.standard_normal(first.shape, np.float32) * np.float32(self.config.train.init_std)

    def _fill_control(self) -> None:
        config = self.config
        control, serve = self["control"], self["serve"]
        control["deadline_ns"] = round(deadline_s(config) * 1e9)
        control["token_interval_ns"] = round(1e9 / config.tokens_per_s) if config.tokens_per_s else 0
        control["tic_interval_ns"] = round(1e9 / config.tics_per_s) if config.tics_per_s else 0
        control["jitter_seed"] = config.jitter_seed
        self["telemetry"]["applied"] = abi.NONE_U64
        roles = [role for role, count in enumerate(config.sms, abi.TRAIN) for _ in range(count)]
        self["roles"][: len(roles)] = roles
        serve["pin"] = abi.NONE_U64
        serve["random_seed"] = config.seed
        serve["input_token"] = serve["end_of_text"] = config.tokenizer.end_of_text
        serve["prompt_slot"] = abi.NONE_U32
        serve["vocab_used"] = config.tokenizer.size
        serve["temperature"] = config.sampling.temperature
        serve["top_k"], serve["top_p"] = config.sampling.top_k, config.sampling.top_p
        if config.doom and config.games:
            self["doom_wad"][:] = np.frombuffer(config.doom.blob, np.uint8)
            seats = self["doom_seats"]
            seats["behaviour"] = config.doom.behaviour
            seats["episode"], seats["map"] = config.doom.episode, config.doom.map
            seats["skill"] = config.doom.skill
            seats["seed"] = config.seed + np.arange(config.games)
            seats["new_game"] = 1


def _offsets(dtype: np.dtype) -> dict[str, int]:
    assert dtype.fields is not None
    return {name: field[1] for name, field in dtype.fields.items()}


def _fill_model(launch: np.ndarray, config: RunConfig) -> None:
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
