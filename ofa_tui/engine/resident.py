"""What the engines of a real kernel share, wherever it runs: events in, snapshots out, the end of a run."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.abort_report import abort_text, sm_lines
from ofa_tui.engine.capture import Captured, Copier, Part
from ofa_tui.engine.config import RunConfig, RunState, TrainState
from ofa_tui.engine.memory import RunMemory
from ofa_tui.engine.protocol import Event, RunInfo, Saved, Snapshot
from ofa_tui.engine.steering import Steering
from ofa_tui.engine.telemetry import LoadAcquire, TelemetryReader
from ofa_tui.errors import OfaError
from ofa_tui.program.types import ProgramSet

DEVICE_EVERY_S = 1.0


class ResidentEngine(ABC):
    """An Engine (see protocol.py) but for what depends on where the kernel runs.

    The arrays of `memory` are what the kernel sees, or the engine's newest copy of them. Entry points take a lock:
    they may be called from several threads.
    """

    def __init__(self, config: RunConfig, memory: RunMemory, info: RunInfo, load: LoadAcquire,
                 load_after: LoadAcquire | None = None) -> None:
        """`load` and `load_after` are the reader's; see TelemetryReader."""
        self._config = config
        self._programs: ProgramSet = memory.programs
        self.memory = memory
        self.info = info
        self._control = memory["control"][0]
        self._telemetry = memory["telemetry"][0]
        self._reader = TelemetryReader(memory, config, load, load_after)
        self._steering = Steering(config, memory["roles"][: config.n_sms])
        if config.prompt:
            self._steering.add(Event("prompt", "token", text=config.prompt))
        self._copier = Copier(self)
        self._lock = threading.RLock()
        self._started = False
        self._saved: list[Saved] = []
        self._ended_s: float | None = None
        self._device: dict[str, float] = {}
        self._device_read_s = -DEVICE_EVERY_S

    @property
    def programs(self) -> ProgramSet:
        return self._programs

    # --- what depends on the place --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether the kernel is there."""

    @abstractmethod
    def _launch(self) -> None:
        """Starts the kernel; returns when all blocks are there. Raises OfaError."""

    @abstractmethod
    def _write_control(self, field: str, value: int | np.ndarray) -> None:
        """Sets a field of abi.CONTROL for the kernel."""

    @abstractmethod
    def _post(self, clock: int, row: np.ndarray) -> None:
        """Appends an abi.EVENT [1] to a clock's ring, whose next place is free."""

    @abstractmethod
    def _refresh(self, ended: bool) -> None:
        """Brings the arrays up to date, for the last time if the kernel has `ended`."""

    @abstractmethod
    def _wait_for_end(self, timeout_s: float) -> bool:
        """Whether the kernel left within that time."""

    @abstractmethod
    def _give_up(self) -> None:
        """The kernel will never end."""

    @abstractmethod
    def look(self) -> np.void:
        """The abi.TELEMETRY of this moment, up to its counters."""

    @abstractmethod
    def read_parts(self, parts: Sequence[Part]) -> list[np.ndarray]:
        """Copies of parts of the arena, which stay as they are until the next call."""

    @abstractmethod
    def _device_readings(self) -> dict[str, float]:
        """Snapshot.device."""

    @abstractmethod
    def _fetch_state(self) -> None:
        """After the end: brings weights and moments to `memory`."""

    @abstractmethod
    def _seconds_now(self) -> float:
        """Since the launch."""

    def _failure(self) -> str:
        """Why the kernel did not come to an end of its own, where that is not in its abort record."""
        return ""

    # --- life cycle -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        with self._lock:
            if self._started:
                raise OfaError("this run was started before; build a new engine for another run")
            self._started = True
            self._launch()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ends the run at its next boundaries; after `timeout_s` at once, inside a step if need be.

        The newest complete weight version is intact either way. Raises OfaError if a block does not even leave then.
        """
        if not self._started:
            return
        if self.running:
            self._write_control("stop", 1)
        if not self._wait_for_end(timeout_s):
            self._write_control("abort", 1)
            if not self._wait_for_end(max(timeout_s, 5.0)):
                self._give_up()
                raise OfaError("the kernel does not leave the task it is in; end the process to stop it")

    def weights(self) -> dict[str, np.ndarray]:
        version = self._settled_version()
        return self.memory.weights(version)

    def train_state(self) -> TrainState:
        """What another run can go on from, with `first_step` set to this run's steps done. Only after `stop`."""
        version = self._settled_version()
        if self._started and self._state(ended=True)[0] == "aborted":
            raise OfaError("this run ended inside a step, so that its moments are not those of one version")
        return TrainState(self.memory.exact_weights(version), self.memory.moments("m"), self.memory.moments("v"))

    def _settled_version(self) -> int:
        if self.running:
            raise OfaError("weights can be read only after the run was stopped")
        with self._lock:
            if self._started:
                self._refresh(ended=True)
                self._fetch_state()
        return int(self.memory["serve"]["published"][0])

    # --- state ----------------------------------------------------------------------------------------------------

    def capture(self, step: int, wanted: Callable[[], bool] = lambda: True) -> Captured | None:
        """The run's state before its first step from `step` on, copied while the kernel runs. Blocks until then.

        None when the run ended first, or is not `wanted` any more. For one thread at a time. What is given out holds
        until the next call.
        """
        return self._copier.capture(step, wanted)

    @property
    def can_copy_state(self) -> bool:
        """Whether `capture` may be called."""
        return self._config.copies_state

    def settled_state(self) -> RunState:
        """The state before `start`, or after `stop`. Raises OfaError where the run ended inside a step."""
        self._settled_version()
        if self._started and self._state(ended=True)[0] == "aborted":
            raise OfaError("this run ended inside a step, so that its moments are not those of one version")
        return self._copier.settled()

    def report(self, saved: Saved) -> None:
        """What became of a checkpoint: the next snapshot says it."""
        with self._lock:
            self._saved.append(saved)

    def write_hold(self, clock: int, word: int) -> None:
        self._control["hold"][clock] = word
        self._write_control("hold", self._control["hold"])

    def serving_sms(self) -> bool:
        """Whether an SM serves at this moment. One that is to, but is not there yet, does not."""
        (telemetry,) = self.read_parts([Part("telemetry", 0, 1)])
        return bool((telemetry["sms"]["role"][0, : self._config.n_sms] == abi.SERVE).any())

    def held(self, clock: int) -> int:
        return self._reader.counter("held", clock)

    # --- steering -------------------------------------------------------------------------------------------------

    def post(self, event: Event) -> None:
        with self._lock:
            self._steering.add(event)
            self._feed()

    def _feed(self) -> None:
        tic = abi.CLOCKS.index("tic")
        posted = int(self._control["posted"][tic])
        self._steering.feed(self._control, self.memory["prompts"], self._post)
        # Games that are held look for events only when they are told to; for one at a time.
        self._count_up("passes", int(self._control["posted"][tic]) - posted)

    def pause(self, paused: bool) -> None:
        self._write_control("pause", int(paused))
        self._count_up("passes", 1)

    def hold_games(self, held: bool) -> None:
        self._write_control("hold_games", int(held))
        self._count_up("passes", 1)

    def step_tics(self, count: int) -> None:
        self._count_up("single_tics", count)

    def _count_up(self, field: str, count: int) -> None:
        if count:
            self._write_control(field, (int(self._control[field]) + count) % (abi.NONE_U32 + 1))

    # --- observation ----------------------------------------------------------------------------------------------

    def poll(self) -> Snapshot:
        with self._lock:
            ended = not self.running
            if self._started:
                self._refresh(ended)
            state, message = self._state(ended)
            taken = [self._reader.counter("events_taken", clock) for clock in range(len(abi.CLOCKS))]
            applied = self._steering.collect(taken, self._telemetry["applied"])
            if not ended:
                self._feed()
            elif self._started and self._ended_s is None:
                self._ended_s = self._seconds_now()
            seconds = self._ended_s if self._ended_s is not None else self._seconds_now()
            losses, sweeps = self._reader.losses(), self._reader.sweeps()
            served, frames, others = self._reader.served(), self._reader.frames(), self._reader.other_frames()
            commands = self._reader.commands()
            sms = self._reader.sms()
            saved, self._saved = self._saved, []
            step_ms = self._reader.step_ms(seconds) if state == "running" else 0.0
            served_per_s, frames_per_s = self._reader.serve_and_frame_rates(seconds)
            return Snapshot(
                seconds=seconds,
                state=state,
                steps_done=self._reader.counter("steps_done"),
                version=int(self.memory["serve"]["published"][0]),
                tokens_served=self._reader.counter("tokens_served"),
                losses=losses,
                sweeps=sweeps,
                served=served,
                frames=frames,
                others=others,
                commands=commands,
                games_held=bool(self._control["hold_games"]),
                roles=sms["role"].copy(),
                sms=sms,
                timeline=self._reader.timeline(),
                applied=applied,
                saved=saved,
                train_tokens_per_s=self.info.tokens_per_step / step_ms * 1e3 if step_ms else 0.0,
                step_ms=step_ms,
                served_per_s=0.0 if ended else served_per_s,
                frames_per_s=0.0 if ended else frames_per_s,
                device=self._read_device(seconds),
                message=message,
            )

    def _state(self, ended: bool) -> tuple[str, str]:
        recorded = int(self._telemetry["abort"]["code"]) != 0
        failure = self._failure()
        if failure:
            report = abort_text(self._telemetry, self._programs, self._config.n_sms) if recorded else "\n".join(
                sm_lines(self._telemetry, self._config.n_sms))
            return "aborted", f"{failure}\n{report}"
        if recorded or (ended and self._control["abort"]):
            return "aborted", abort_text(self._telemetry, self._programs, self._config.n_sms)
        if ended and self._started:
            return "stopped", ""
        if self._control["pause"]:
            return "paused", ""
        return ("finished" if self._telemetry["finished"] else "running"), ""

    def _read_device(self, seconds: float) -> dict[str, float]:
        if seconds - self._device_read_s >= DEVICE_EVERY_S:
            self._device_read_s = seconds
            self._device = self._device_readings()
        return self._device


def run_info(config: RunConfig, backend: str, device: str, notes: tuple[str, ...] = ()) -> RunInfo:
    return RunInfo(
        backend=backend,
        device=device,
        n_sms=config.n_sms,
        preset=config.preset,
        parameters=config.model.parameter_count(),
        steps=config.train.steps,
        tokens_per_step=config.train.batch * config.model.context,
        context=config.model.context,
        games=config.games,
        seed=config.seed,
        doom_missing="" if config.games else config.doom_missing,
        wad=config.doom.wad if config.doom else "",
        notes=notes,
        end_of_text=config.tokenizer.end_of_text,
        streams=config.streams,
        telling=config.streams_telling,
    )


def wait_until_true(condition, timeout_s: float, pause_s: float = 0.001) -> bool:
    """Whether `condition()` came true within that time; it is asked at least once."""
    give_up = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(pause_s)
    return True
