"""The engine on an NVIDIA GPU: one launch of one block per SM, copies beside it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ofa_tui import abi, abi_header
from ofa_tui.engine import cuda_maps, cuda_nvml
from ofa_tui.engine.capture import Captured, Part
from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.cuda_compiler import Cubin, Variant
from ofa_tui.engine.cuda_copy import SharedCopy
from ofa_tui.engine.cuda_device import Gpu, GpuLost, open_gpu
from ofa_tui.engine.cuda_library import DriverLibrary
from ofa_tui.engine.library import check_layout
from ofa_tui.engine.memory import RunMemory, model_of_launch
from ofa_tui.engine.resident import ResidentEngine, run_info, wait_until_true
from ofa_tui.errors import OfaError
from ofa_tui.program.types import ProgramSet

ENTRY, FACTS = "megakernel", "kernel_facts"
START_TIMEOUT_S = 10.0
SILENT_S = 8.0
"""No sign of life of any SM for so long: the kernel is stuck, whatever its own deadlines say."""
LEAVE_S = 2.0
"""All blocks leave within that time of an abort, or one never will."""
LEAST_DEADLINE_S = 5.0
BATCH_BYTES = 1 << 26
"""State is copied out in pieces of this size, about a millisecond each: polls take turns with them."""


@dataclass(frozen=True)
class KernelFacts:
    """What kernel_facts (cuda/platform/device_facts.cuh) says of a cubin."""

    scratch_bytes: int
    game_bytes: int
    snapshot_bytes: int
    clock_ns: int
    asked_ns: int
    """The host's monotonic clock when the GPU's stood at clock_ns."""
    shared_bytes: int
    """The least that a block needs; 0 where the kernel lays out none itself."""


def default_deadline_s(config: RunConfig, variant: Variant) -> float:
    """The wait after which a run counts as stuck: a whole step at the slowest, at least a few seconds."""
    flops = 6.0 * config.model.parameter_count() * config.train.batch * config.model.context
    return max(LEAST_DEADLINE_S, flops / variant.flops)


class CudaEngine(ResidentEngine):
    """An Engine (see protocol.py) on a GPU.

    `programs` must be compiled for `config.model`, `config.train` and `config.games`, and for the target of the
    cubin's variant. Allocates everything; raises OfaError for what cannot be. `gpu` is the engine's from here on.
    """

    def __init__(self, programs: ProgramSet, config: RunConfig, cubin: Cubin, gpu: Gpu,
                 notes: tuple[str, ...] = ()) -> None:
        self._gpu = gpu
        self._release = weakref.finalize(self, gpu.close)
        try:
            self._build(programs, config, cubin, notes)
        except BaseException:
            self._release()
            raise

    def _build(self, programs: ProgramSet, config: RunConfig, cubin: Cubin, notes: tuple[str, ...]) -> None:
        config.check()
        facts = self._gpu.facts
        _check_fits(programs, config, cubin, self._gpu)
        with self._gpu.current():
            module = self._gpu.load(cubin.code)
            self._kernel = module.get_function(ENTRY)
            self._facts = _ask_kernel(self._gpu, module.get_function(FACTS), config)
            memory = RunMemory(
                programs, config, lambda head: self._facts.scratch_bytes, self._facts.game_bytes,
                self._gpu.free_bytes(), self._facts.snapshot_bytes, default_deadline_s(config, cubin.variant),
            )
            self._base = self._gpu.allocate(memory.arena.size)
            memory.arena.relocate(self._base)
            # One piece: two would share no page, but the driver refuses what touches pinned memory.
            state_bytes = memory.state_range[1] if config.copies_state else 0
            self._gpu.pin(memory.arena.part(0, memory.shared_bytes + state_bytes))
            self._block_threads = cubin.variant.block_threads
            self._dynamic_shared = _dynamic_shared(self._gpu, self._facts)
            self._gpu.allow_shared(self._kernel, self._dynamic_shared)
            if cubin.variant.tensor_maps and len(memory["tensor_maps"]):  # the driver makes them in a context only
                cuda_maps.fill(memory["tensor_maps"], memory["operands"], programs, DriverLibrary())
        self._copy = SharedCopy(self._gpu, memory, self._base)
        super().__init__(config, memory, run_info(config, "cuda", facts.name, notes), self._copy.load,
                         self._copy.load_after)
        self.cubin = cubin
        self.launches = 0
        self._over = False
        self._lost = ""
        self._fetched_last = self._fetched_state = False
        self._launched_s = 0.0
        self._alive: tuple[tuple[int, ...], float] = ((), 0.0)
        self._abort_seen_s: float | None = None
        self._monitor = cuda_nvml.Monitor(facts.index)

    def close(self) -> None:
        """Gives the GPU back. Only after `stop`; weights cannot be read any more."""
        if self.running:
            raise OfaError("the kernel is still running; stop it first")
        self._release()

    # --- start and end --------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        with self._lock:
            if not self._started or self._over:
                return False
            try:
                with self._gpu.current():
                    self._over = self._gpu.kernel_stream.is_done()
            except GpuLost as lost:
                self._lose_to(lost)
            return not self._over

    def _launch(self) -> None:
        with self._gpu.current():
            self._upload()
            self._launched_s = time.monotonic()
            self._kernel(
                self.memory["launch"][0], block=(self._block_threads, 1, 1), grid=(self._config.n_sms, 1),
                shared=self._dynamic_shared, stream=self._gpu.kernel_stream,
            )
            self.launches += 1
        if not wait_until_true(self._all_blocks_there, START_TIMEOUT_S) and not self._failure():
            arrived = int(self._telemetry["blocks_running"])
            self._lose(f"only {arrived} of {self._config.n_sms} blocks began within {START_TIMEOUT_S:g} s",
                       resident=True)
        if self._failure():
            raise OfaError(self._failure())

    def _upload(self) -> None:
        """The whole arena, with the GPU's clock at the launch as the zero of all times."""
        now_ns = self._facts.clock_ns + time.monotonic_ns() - self._facts.asked_ns
        self.memory["telemetry"]["started_ns"] = now_ns
        for offset, count in self.memory.initial_parts():
            if count:
                self._gpu.upload(self._base + offset, self.memory.arena.part(offset, count))

    def _all_blocks_there(self) -> bool:
        """Or already gone."""
        if not self.running:
            return True
        try:
            with self._gpu.current():
                self._copy.fetch_counters()
        except GpuLost as lost:
            self._lose_to(lost)
            return True
        return int(self._telemetry["blocks_running"]) >= self._config.n_sms or bool(self._telemetry["finished"])

    def _wait_for_end(self, timeout_s: float) -> bool:
        return wait_until_true(self._has_ended, timeout_s)

    def _has_ended(self) -> bool:
        """Looks at what the kernel says too: after an abort it must end soon, whatever time there is for a stop."""
        with self._lock:
            if self.running:
                self._refresh(ended=False)
            return not self.running

    def _give_up(self) -> None:
        self._lose("a block does not leave the task it is in", resident=True)

    def _lose(self, why: str, *, resident: bool) -> None:
        """The kernel cannot be talked to any more, or never ends: what it holds is left to the driver.

        `resident`: it may still be there.
        """
        if self._lost:
            return
        self._lost = why
        self._over = True
        if self._release.detach():
            self._gpu.abandon(resident)

    def _lose_to(self, lost: GpuLost) -> None:
        self._lose(f"the kernel was ended from outside, or does not answer: {lost}", resident=lost.silent)

    def _failure(self) -> str:
        return self._lost

    def _seconds_now(self) -> float:
        return time.monotonic() - self._launched_s if self._started else 0.0

    # --- steering -------------------------------------------------------------------------------------------------

    def _write_control(self, field: str, value: int | np.ndarray) -> None:
        with self._lock:
            self._control[field] = value
            if self.running:
                self._send(self._place_of(field))

    def _post(self, clock: int, row: np.ndarray) -> None:
        """First the event, then the number that covers it."""
        number = int(self._control["posted"][clock])
        slot = number % abi.EVENT_RING
        self._control["events"][clock][slot] = row[0]
        self._control["posted"][clock] = number + 1
        if not self.running:
            return
        event = self._place_of("events")[0] + (clock * abi.EVENT_RING + slot) * abi.EVENT.itemsize
        prompts = (self.memory.arena.offset("prompts"), self.memory["prompts"].nbytes)
        is_prompt = int(row["action"][0]) == abi.ACTIONS.index("prompt")
        self._send(*([prompts] if is_prompt else []), (event, abi.EVENT.itemsize), self._place_of("posted"))

    def _place_of(self, field: str) -> tuple[int, int]:
        """Offset and bytes of a field of the control block."""
        assert abi.CONTROL.fields is not None
        kind, offset = abi.CONTROL.fields[field][:2]
        return self.memory.arena.offset("control") + offset, kind.itemsize

    def _send(self, *places: tuple[int, int]) -> None:
        """Copies in this order, and waits for the last: what lies here may change again afterwards."""
        try:
            with self._gpu.current():
                for offset, count in places:
                    self._copy.send(offset, count)
                self._copy.finish_sending()
        except GpuLost as lost:
            self._lose_to(lost)

    # --- observation ----------------------------------------------------------------------------------------------

    def _refresh(self, ended: bool) -> None:
        if self._lost or self._fetched_last:
            return
        try:
            with self._gpu.current():
                if ended:
                    self._copy.fetch_all()
                    self._fetched_last = True
                else:
                    self._copy.fetch_new()
        except GpuLost as lost:
            self._lose_to(lost)
        if not ended:
            self._watch()

    def _watch(self) -> None:
        """The host's own deadlines, for a kernel that does not keep those inside it."""
        now = time.monotonic()
        sms = self._telemetry["sms"][: self._config.n_sms]
        life = (int(sms["heartbeat_ns"].max()), int(sms["tasks_done"].sum()))
        if life != self._alive[0]:
            self._alive = (life, now)
        elif now - self._alive[1] > SILENT_S:
            self._lose(f"no SM has given a sign of life for {SILENT_S:g} s", resident=True)
        if int(self._telemetry["abort"]["code"]):
            self._abort_seen_s = self._abort_seen_s or now
            if now - self._abort_seen_s > LEAVE_S:
                still = int(self._telemetry["blocks_running"])
                self._lose(f"{still} of {self._config.n_sms} blocks did not leave within {LEAVE_S:g} s of an abort",
                           resident=True)

    def _fetch_state(self) -> None:
        if self._lost:
            raise OfaError(f"the weights are lost: {self._lost}")
        if self._fetched_state:
            return
        if not self._release.alive:
            raise OfaError("the weights are gone: the engine was closed before they were read")
        with self._gpu.current():
            for offset, count in self.memory.state_parts():
                self._gpu.download(self.memory.arena.part(offset, count), self._base + offset)
        self._fetched_state = True

    # --- state ----------------------------------------------------------------------------------------------------

    def capture(self, step: int, wanted: Callable[[], bool] = lambda: True) -> Captured | None:
        if not self._config.copies_state:
            raise OfaError("this run has no memory set aside for checkpoints; start it with --checkpoint-every")
        return super().capture(step, wanted)

    def look(self) -> np.void:
        with self._lock:
            if self.running:
                try:
                    with self._gpu.current():
                        self._copy.fetch_counters()
                except GpuLost as lost:
                    self._lose_to(lost)
        return self._telemetry

    def read_parts(self, parts: Sequence[Part]) -> list[np.ndarray]:
        """In this process's arena, over what was there; before the launch what is there."""
        arrays = [self.memory[part.array][part.first : part.first + part.count] for part in parts]
        if self._started:
            for batch in _batches([array for array in arrays if array.nbytes]):
                self._fetch_batch(batch)
        return arrays

    def _fetch_batch(self, arrays: list[np.ndarray]) -> None:
        with self._lock:
            if self._lost or not self._release.alive:
                raise OfaError(f"the state is lost: {self._lost or 'the engine was closed before it was read'}")
            try:
                with self._gpu.current():
                    for array in arrays:
                        address = self._base + array.ctypes.data - self.memory.arena.address
                        if self._config.copies_state:
                            self._gpu.fetch_state(array, address)
                        else:
                            self._gpu.download(array, address)
                    self._gpu.finish(self._gpu.state_stream)
            except GpuLost as lost:
                self._lose_to(lost)
                raise OfaError(f"the state is lost: {lost}") from None

    def _device_readings(self) -> dict[str, float]:
        return self._monitor.read()


def _batches(arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """The bytes of contiguous arrays in order, as u1 [n], in lists of BATCH_BYTES; the last one has less."""
    batches: list[list[np.ndarray]] = [[]]
    room = BATCH_BYTES
    for array in arrays:
        left = array.reshape(-1).view(np.uint8)
        while len(left):
            if room == 0:
                batches.append([])
                room = BATCH_BYTES
            batches[-1].append(left[:room])
            left, room = left[room:], room - len(batches[-1][-1])
    return batches


def _check_fits(programs: ProgramSet, config: RunConfig, cubin: Cubin, gpu: Gpu) -> None:
    variant, facts = cubin.variant, gpu.facts
    if programs.target != variant.target:
        raise OfaError(f"the {variant.name} kernel runs programs for {variant.target}, not for {programs.target}")
    if not variant.runs_on(facts.capability):
        raise OfaError(f"the {variant.name} kernel does not run on {facts.name}; use --backend host")
    if config.n_sms > facts.n_sms:
        raise OfaError(f"{facts.name} has {facts.n_sms} SMs and {config.n_sms} were asked for; use fewer with --sms")


def _ask_kernel(gpu: Gpu, function: Any, config: RunConfig) -> KernelFacts:
    """Runs kernel_facts. Raises OfaError for a cubin of another version."""
    layout = abi_header.layout()
    answers = np.zeros(5 + len(layout), np.uint64)
    address = gpu.allocate(answers.nbytes)
    head = model_of_launch(config)[0]
    function(head, np.uint64(address), block=(1, 1, 1), grid=(1, 1), stream=gpu.kernel_stream)
    gpu.finish(gpu.kernel_stream, START_TIMEOUT_S)
    asked_ns = time.monotonic_ns()
    gpu.download(answers, address)
    scratch, game, snapshot, clock, *rest = (int(number) for number in answers)
    check_layout(rest[:-1], "the GPU kernel")
    return KernelFacts(scratch, game, snapshot, clock, asked_ns, rest[-1])


def _dynamic_shared(gpu: Gpu, facts: KernelFacts) -> int:
    """All that a block can have where the kernel lays it out itself; else half an SM's: no two blocks share one."""
    of_sm, most = gpu.shared_bytes()
    if facts.shared_bytes > most:
        raise OfaError(f"the kernel needs {facts.shared_bytes} bytes of shared memory a block; "
                       f"{gpu.facts.name} has {most}")
    return most if facts.shared_bytes else min(of_sm // 2, most - 4096)


def open_engine(programs: ProgramSet, config: RunConfig, cubin: Cubin, notes: tuple[str, ...] = (),
                index: int = 0) -> CudaEngine:
    """An engine on GPU `index` through PyCUDA. Raises OfaError."""
    return CudaEngine(programs, config, cubin, open_gpu(index), notes)
