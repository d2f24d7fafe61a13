"""The state of a run, copied out while its kernel runs on.

Training is held before a step and serving before a token, each only while its own part is copied: then weights and
moments are those of one version, and the cache is that of a whole number of tokens (see abi.HOLD_NUMBERS).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.config import RunState, Sampling, ServingState, StreamState, TrainState
from ofa_tui.engine.memory import RunMemory, buffer_array

FAR_S, NEAR_S = 0.02, 0.001
"""Pauses between two looks at a step that is far away, and at one that comes next."""
LOOKS = 2
STEP, TOKEN = abi.COPIED_CLOCKS.index("step"), abi.COPIED_CLOCKS.index("token")


@dataclass(frozen=True)
class Part:
    """Entries of an array of the arena along its first axis."""

    array: str
    first: int
    count: int


class Source(Protocol):
    """What an engine lets a copier do. See ResidentEngine, whose methods these are."""

    memory: RunMemory

    @property
    def running(self) -> bool: ...

    def write_hold(self, clock: int, word: int) -> None:
        """Sets CONTROL.hold of a clock."""
        ...

    def look(self) -> np.void:
        """The abi.TELEMETRY of this moment, up to its counters."""
        ...

    def held(self, clock: int) -> int:
        """TELEMETRY.held of a clock as `look` found it; what it covers can be read."""
        ...

    def read_parts(self, parts: Sequence[Part]) -> list[np.ndarray]:
        """Copies, which stay as they are until the next call."""
        ...

    def serving_sms(self) -> bool:
        """Whether an SM serves at this moment. One that is to, but is not there yet, does not."""
        ...


@dataclass(frozen=True, eq=False)
class Captured:
    state: RunState
    """Its arrays stay as they are until the next capture."""
    held_s: float
    """How long training stood still for it."""


class Copier:
    """Copies one run's state again and again. For one thread at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._holds = 0

    def capture(self, step: int, wanted: Callable[[], bool]) -> Captured | None:
        """The state before the first step from `step` on. Waits for it; None when it is not `wanted` any more, or the
        run ended first."""
        with self._hold(STEP, step) as word:
            if not self._wait(STEP, word, step, wanted):
                return None
            began = time.monotonic()
            with self._hold(TOKEN, 0) as token_word:
                if not self._wait_for_serving(token_word):
                    return None
                serving = self._serving()
            state = self._state(serving)
        return Captured(state, time.monotonic() - began)

    def settled(self) -> RunState:
        """The state of a run that has not begun, or has ended between two steps."""
        return self._state(self._serving())

    # --- holds ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _hold(self, clock: int, first: int) -> Iterator[int]:
        self._holds += 1
        word = first * abi.HOLD_NUMBERS + 1 + self._holds % (abi.HOLD_NUMBERS - 1)
        self._source.write_hold(clock, word)
        try:
            yield word
        finally:
            self._source.write_hold(clock, 0)

    def _wait(self, clock: int, word: int, step: int, wanted: Callable[[], bool]) -> bool:
        """Whether training stands still; after its last step it does so for ever."""
        while wanted() and self._source.running:
            telemetry = self._source.look()
            if self._source.held(clock) == word or int(telemetry["finished"]):
                return True
            time.sleep(NEAR_S if int(telemetry["steps_done"]) + 1 >= step else FAR_S)
        return False

    def _wait_for_serving(self, word: int) -> bool:
        """Whether serving stands still. Where no SM serves it does, since a token in flight is finished by those who
        began it, and an SM that comes finds the hold: also one that is to serve, but waits in a training step that is
        itself held. Asked twice, so that an SM that began a token just before the hold has shown its role."""
        absent = 0
        while self._source.running:
            self._source.look()
            if self._source.held(TOKEN) == word:
                return True
            absent = 0 if self._source.serving_sms() else absent + 1
            if absent == LOOKS:
                return True
            time.sleep(NEAR_S / 2)
        return False

    # --- copies ---------------------------------------------------------------------------------------------------

    def _state(self, serving: ServingState) -> RunState:
        telemetry = self._source.look()
        step = int(telemetry["steps_done"])
        schedule = self._source.memory.schedule
        batches = schedule.all_batches if step == schedule.steps else schedule.batches_until(step)
        due = int(telemetry["sweep_batches_done"]) < batches
        return RunState(step, due, self._training(step), serving)

    def _training(self, version: int) -> TrainState:
        memory = self._source.memory
        buffers, names = memory.programs.buffers, memory.programs.parameters
        weights = [f"{name}.master" if f"{name}.master" in buffers else name for name in names]
        kept = [*weights, *(f"{name}.m" for name in names), *(f"{name}.v" for name in names)]
        copies = self._source.read_parts([
            Part(buffer_array(buffers[name]), version % buffers[name].copies, 1) for name in kept
        ])
        arrays = [copy[0] for copy in copies]
        n = len(names)
        return TrainState(*(dict(zip(names, arrays[i * n : (i + 1) * n], strict=True)) for i in range(3)))

    def _serving(self) -> ServingState:
        memory = self._source.memory
        (state,) = self._source.read_parts([Part("serve", 0, 1)])
        serve = state[0].copy()
        streams = serve["streams"][: int(serve["n_streams"])]
        entries = _newest_entries(self._source, int(serve["tokens"]))
        layers = [f"layers.{layer}" for layer in range(memory.config.model.layers)]
        copies = self._source.read_parts([
            Part(buffer_array(memory.programs.buffers[f"{layer}.{which}_cache"]), 0, 1)
            for which in "kv" for layer in layers
        ])
        caches = [copy[0] for copy in copies]
        keys = dict(zip(layers, caches[: len(layers)], strict=True))
        values = dict(zip(layers, caches[len(layers) :], strict=True))
        return ServingState(
            token=int(serve["tokens"]), stories=int(serve["stories"]),
            streams=tuple(_stream_state(memory, number, stream, entries, keys, values)
                          for number, stream in enumerate(streams)),
        )


def _stream_state(memory: RunMemory, number: int, stream: np.void, entries: np.ndarray, keys: dict[str, np.ndarray],
                  values: dict[str, np.ndarray]) -> StreamState:
    rows = int(stream["position"])
    own = entries[entries["stream"] == number]
    own = own[len(own) - rows :]
    first = number * memory.config.model.context

    def cut(caches: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {layer: cache[first : first + rows] for layer, cache in caches.items()}

    return StreamState(
        token=int(stream["tokens"]), story=int(stream["story"]), telling=bool(stream["telling"]),
        tokens=own["token"].copy(), versions=own["version"].copy(), keys=cut(keys), values=cut(values),
        prompt=_rest_of_prompt(memory, stream), seed=int(stream["random_seed"]),
        sampling=Sampling(float(stream["temperature"]), int(stream["top_k"]), float(stream["top_p"])),
    )


def _newest_entries(source: Source, end: int) -> np.ndarray:
    """abi.SERVED [n]: the newest entries of the ring, with all those of the stories that are being told. A stream that
    tells has a token in every pass, and what a run goes on from is no longer than that either (memory.py)."""
    first = max(0, end - min(abi.SERVED_RING, 2 * source.memory.config.model.context * abi.PASS_ROWS))
    start = first % abi.SERVED_RING
    fits = min(end - first, abi.SERVED_RING - start)
    return np.concatenate(source.read_parts([Part("served", start, fits), Part("served", 0, end - first - fits)]))


def _rest_of_prompt(memory: RunMemory, stream: np.void) -> np.ndarray:
    """The host wrote the prompts, so that its own copy of them is good on every target."""
    slot = int(stream["prompt_slot"])
    if slot == abi.NONE_U32:
        return np.zeros(0, np.int32)
    return memory["prompts"][slot][int(stream["prompt_read"]) : int(stream["prompt_length"])].copy()
