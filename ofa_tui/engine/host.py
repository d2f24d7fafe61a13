"""The engine on the CPU: the kernel as a library, a virtual SM per thread."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import psutil

from ofa_tui import abi
from ofa_tui.engine import compiler
from ofa_tui.engine.abort_report import abort_text
from ofa_tui.engine.config import RunConfig, TrainState
from ofa_tui.engine.library import KernelLibrary, load_kernel
from ofa_tui.engine.memory import RunMemory
from ofa_tui.engine.protocol import Event, RunInfo, Snapshot
from ofa_tui.engine.steering import Steering
from ofa_tui.engine.telemetry import TelemetryReader
from ofa_tui.errors import OfaError
from ofa_tui.program.types import ProgramSet

START_TIMEOUT_S = 10.0
DEVICE_EVERY_S = 1.0


class HostEngine:
    """An Engine (see protocol.py) on this machine's processor.

    `programs` must be compiled for `config.model`, `config.train` and `config.games`. Compiles and loads the kernel
    and builds the run's memory; raises OfaError for what cannot be.
    """

    def __init__(
        self,
        programs: ProgramSet,
        config: RunConfig,
        on_compile: compiler.OnProgress | None = None,
        library: KernelLibrary | None = None,
    ) -> None:
        config.check()
        self._config = config
        self._programs = programs
        self._library = library or load_kernel(on_compile)
        self.memory = RunMemory(
            programs, config, self._library.scratch_bytes, self._library.doom_game_bytes(),
            psutil.virtual_memory().available,
        )
        self._control = self.memory["control"][0]
        self._telemetry = self.memory["telemetry"][0]
        self._launch = self.memory["launch"].ctypes.data
        self._reader = TelemetryReader(self.memory, config, self._library.load_acquire)
        self._steering = Steering(config, self.memory["roles"][: config.n_sms])
        if config.prompt:
            self._steering.add(Event("prompt", "token", text=config.prompt))
        self._feed()
        self._thread: threading.Thread | None = None
        self._exit_code = 0
        self._ended_s: float | None = None
        self._lock = threading.Lock()
        self._process = psutil.Process()
        self._device: dict[str, float] = {}
        self._device_read_s = -DEVICE_EVERY_S
        self.info = _run_info(config)

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        with self._lock:
            if self._thread is not None:
                raise OfaError("this run was started before; build a new engine for another run")
            self._thread = threading.Thread(target=self._run, name="kernel", daemon=True)
            self._thread.start()
        give_up = time.monotonic() + START_TIMEOUT_S
        while self.running and int(self._telemetry["blocks_running"]) < self._config.n_sms:
            if int(self._telemetry["finished"]) or time.monotonic() > give_up:
                break
            time.sleep(0.001)
        if self._exit_code:
            raise OfaError(
                f"the system refuses {self._config.n_sms} threads ({os.strerror(self._exit_code)}); "
                "use fewer SMs with --sms"
            )

    def _run(self) -> None:
        self._exit_code = self._library.run(self._launch)
        self._ended_s = self._seconds_now()

    def _seconds_now(self) -> float:
        started = self._reader.started_ns
        return (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - started) / 1e9 if started else 0.0

    # --- steering -------------------------------------------------------------------------------------------------

    def post(self, event: Event) -> None:
        with self._lock:
            self._steering.add(event)
            self._feed()

    def _feed(self) -> None:
        self._steering.feed(
            self._control, self.memory["prompts"],
            lambda clock, row: self._library.post(self._launch, clock, row),
        )

    def pause(self, paused: bool) -> None:
        self._control["pause"] = int(paused)

    def step_tics(self, count: int) -> None:
        self._control["single_tics"] = (int(self._control["single_tics"]) + count) % (abi.NONE_U32 + 1)

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ends the run at its next boundaries; after `timeout_s` at once, inside a step if need be.

        The newest complete weight version is intact either way. Raises OfaError if a block does not even leave then.
        """
        if self._thread is None:
            return
        self._control["stop"] = 1
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._control["abort"] = 1
            self._thread.join(max(timeout_s, 5.0))
        if self._thread.is_alive():
            raise OfaError("the kernel does not leave the task it is in; end the process to stop it")

    def weights(self) -> dict[str, np.ndarray]:
        if self.running:
            raise OfaError("weights can be read only after the run was stopped")
        return self.memory.weights(int(self.memory["serve"]["published"][0]))

    def train_state(self) -> TrainState:
        """What another run can go on from, with `first_step` set to this run's steps done. Only after `stop`."""
        weights = self.weights()
        if self._state(ended=True)[0] == "aborted":
            raise OfaError("this run ended inside a step, so that its moments are not those of one version")
        return TrainState(weights, self.memory.moments("m"), self.memory.moments("v"))

    # --- observation ----------------------------------------------------------------------------------------------

    def poll(self) -> Snapshot:
        with self._lock:
            ended = not self.running
            state, message = self._state(ended)
            applied = self._steering.collect(self._telemetry)
            self._feed()
            seconds = self._ended_s if self._ended_s is not None else self._seconds_now()
            losses, sweeps = self._reader.losses(), self._reader.sweeps()
            served, frames = self._reader.served(), self._reader.frames()
            commands = self._reader.commands()
            sms = self._reader.sms()
            training = state == "running"
            step_ms = self._reader.step_ms(seconds) if training else 0.0
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
                commands=commands,
                roles=sms["role"].copy(),
                sms=sms,
                applied=applied,
                train_tokens_per_s=self.info.tokens_per_step / step_ms * 1e3 if step_ms else 0.0,
                step_ms=step_ms,
                served_per_s=0.0 if ended else served_per_s,
                frames_per_s=0.0 if ended else frames_per_s,
                device=self._read_device(seconds),
                message=message,
            )

    def _state(self, ended: bool) -> tuple[str, str]:
        aborted = int(self._telemetry["abort"]["code"]) or (ended and self._control["abort"])
        if aborted:
            return "aborted", abort_text(self._telemetry, self._programs, self._config.n_sms)
        if ended and self._thread is not None:
            return "stopped", ""
        if self._control["pause"]:
            return "paused", ""
        return ("finished" if self._telemetry["finished"] else "running"), ""

    def _read_device(self, seconds: float) -> dict[str, float]:
        if seconds - self._device_read_s >= DEVICE_EVERY_S:
            self._device_read_s = seconds
            self._device = {
                "cpu_percent": self._process.cpu_percent(),
                "rss_bytes": float(self._process.memory_info().rss),
            }
        return self._device


def _run_info(config: RunConfig) -> RunInfo:
    return RunInfo(
        backend="host",
        device=f"{compiler.processor_name()} ({os.cpu_count()} cores)",
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
    )
