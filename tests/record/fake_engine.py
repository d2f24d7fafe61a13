"""An engine whose run is made up: everything a recorder sees, at any speed, with a clock that tests can hold."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event, Frame, RunInfo, ServedToken, Snapshot, StepLoss, SweepLoss
from ofa_tui.errors import AbortedError
from ofa_tui.program.ops import OPCODES
from ofa_tui.record.writer import RunWriter

PALETTE = np.stack([np.arange(256), np.arange(256)[::-1], np.arange(256) // 2], axis=1).astype(np.uint8)
WORDS = ["Once", " upon", " a", " time", " 狐", "", " “ran”", "\n"]


LENGTH = 8
"""Tokens of a story."""


class FrozenClock:
    """Moves by itself only where `sleep` is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeEngine:
    """Ten steps, five tokens and thirty-five frames a second on three SMs.

    Streams of text take turns; of several the last one tells a single story and rests.
    """

    def __init__(self, steps: int = 40, clock: Callable[[], float] = time.monotonic, abort_at: float = math.inf,
                 raising: bool = False, streams: int = 1):
        self.info = RunInfo("host", "made up", 3, "tiny", 1_000_000, steps, 1024, 128, 1, 7, end_of_text=5,
                            streams=streams, telling=max(1, streams - 1))
        self._told = [0] * streams
        self.posted: list[Event] = []
        self.stops = 0
        self.started = False
        self._clock = clock
        self._abort_at, self._raising = abort_at, raising
        self._shown = {"steps": 0, "sweeps": 0, "served": 0, "frames": 0}
        self._unapplied: list[Event] = []

    def start(self) -> None:
        self.started = True
        self._start = self._clock()

    def post(self, event: Event) -> None:
        self.posted.append(event)
        self._unapplied.append(event)

    def pause(self, paused: bool) -> None: ...

    def hold_games(self, held: bool) -> None: ...

    def step_tics(self, count: int) -> None: ...

    def stop(self, timeout_s: float = 10.0) -> None:
        self.stops += 1

    def weights(self) -> dict[str, np.ndarray]:
        return {}

    def _new(self, name: str, count: int) -> range:
        first = self._shown[name]
        self._shown[name] = max(first, count)
        return range(first, self._shown[name])

    def poll(self) -> Snapshot:
        seconds = self._clock() - self._start
        if seconds >= self._abort_at and self._raising:
            raise AbortedError("SM 1 waited too long")
        steps = min(self.info.steps, int(seconds * 10))
        sms = np.zeros(3, abi.SM_STATUS)
        sms["role"] = [abi.TRAIN, abi.SERVE, abi.DOOM]
        for sm, (op, share) in enumerate([("matmul", 0.75), ("sample", 0.25), ("doom_tic", 0.1)]):
            sms["op_ns"][sm, OPCODES[op]] = int(seconds * share * 1e9)
        clocks = {"step": steps, "token": int(seconds * 5), "tic": int(seconds * 35)}
        applied = [AppliedEvent(event, max(event.when, clocks[event.clock]))
                   for event in self._unapplied if event.when <= clocks[event.clock]]
        self._unapplied = [event for event in self._unapplied if event.when > clocks[event.clock]]
        state = "finished" if steps == self.info.steps else "running"
        return Snapshot(
            seconds=seconds,
            state="aborted" if seconds >= self._abort_at else "stopped" if self.stops else state,
            steps_done=steps,
            version=steps,
            tokens_served=int(seconds * 5),
            losses=[StepLoss(s, float(loss_of(s)), 1e-3 / (s + 1), (s + 1) / 10) for s in self._new("steps", steps)],
            sweeps=[SweepLoss(s * 10, float(loss_of(s * 10)) + 0.1, 64, s * 10 == self.info.steps)
                    for s in self._new("sweeps", steps // 10 + 1) if s],
            served=[self._token(i) for i in self._new("served", int(seconds * 5))],
            frames=[frame_of(n + 1) for n in self._new("frames", int(seconds * 35))][-abi.FRAME_SLOTS:],
            roles=sms["role"].copy(),
            sms=sms,
            applied=applied,
            train_tokens_per_s=10_240.0,
            step_ms=100.0,
            served_per_s=5.0,
            frames_per_s=35.0,
            device={"cpu_percent": 50.0},
            message="SM 1 waited too long" if seconds >= self._abort_at else "",
        )


    def _token(self, index: int) -> ServedToken:
        streams = self.info.streams
        stream = index % streams
        if streams > 1 and stream == streams - 1 and self._told[stream] == LENGTH:
            stream = 0
        story, position = divmod(self._told[stream], LENGTH)
        self._told[stream] += 1
        return ServedToken(
            index, 10 + index, WORDS[position % len(WORDS)], index * 2, story * streams + stream, position, index < 3,
            position == 0, index / 5, stream,
        )  # fmt: skip


def loss_of(step: int) -> np.float32:
    return np.float32(7 * math.exp(-step / 20) + 1 / 3)


def frame_of(number: int) -> Frame:
    """Every third frame is mostly like the one before, the others are all new; the palette changes now and then."""
    rng = np.random.default_rng(number // 3)
    pixels = rng.integers(0, 256, (200, 320), np.uint8)
    pixels[number % 200] = number % 256
    index = 1 if number % 10 == 0 else 0
    status = np.zeros(1, abi.DOOM_STATUS)
    status["tic"], status["health"] = number, 100 - number % 50
    return Frame(number, pixels, PALETTE if index == 0 else 255 - PALETTE, index, status[0])


def record_fake(
    folder: Path, seconds: float = 4.0, events: list[Event] | None = None, late_s: float = 0.0,
    streams: int = 1,
) -> FakeEngine:
    """A recording of a run of `seconds`, made in no time at all; it begins `late_s` after the launch."""
    clock = FrozenClock()
    engine = FakeEngine(clock=clock, streams=streams)
    writer = RunWriter(folder, {"settings": {"seed": 7}}, engine.info, frame_every_s=1.0)
    for event in events or []:
        engine.post(event)
    engine.start()
    clock.sleep(late_s)
    if late_s:
        engine.poll()
    while clock.now < 100.0 + seconds - 1e-9:
        clock.sleep(1 / 70)
        writer.write(engine.poll())
    writer.finish("finished")
    return engine
