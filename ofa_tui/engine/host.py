"""The engine on the CPU: the kernel as a library, a virtual SM per thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

import numpy as np
import psutil

from ofa_tui.engine import compiler
from ofa_tui.engine.capture import Part
from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.library import KernelLibrary, load_kernel
from ofa_tui.engine.memory import RunMemory
from ofa_tui.engine.resident import ResidentEngine, run_info
from ofa_tui.errors import OfaError
from ofa_tui.program.types import ProgramSet

START_TIMEOUT_S = 10.0


class HostEngine(ResidentEngine):
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
        notes: tuple[str, ...] = (),
    ) -> None:
        config.check()
        if programs.storage != "f4":
            raise OfaError(f"these programs keep matrices as {programs.storage}; the CPU runs those with f4: "
                           "compile them with storage=\"f4\"")
        self._library = library or load_kernel(on_compile)
        memory = RunMemory(
            programs, config, self._library.scratch_bytes, self._library.doom_game_bytes(),
            psutil.virtual_memory().available, self._library.doom_snapshot_bytes(),
        )
        device = f"{compiler.processor_name()} ({os.cpu_count()} cores)"
        super().__init__(config, memory, run_info(config, "host", device, notes), self._library.load_acquire)
        self._launch_address = memory["launch"].ctypes.data
        self._thread: threading.Thread | None = None
        self._exit_code = 0
        self._process = psutil.Process()
        self._feed()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _launch(self) -> None:
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
        self._exit_code = self._library.run(self._launch_address)
        self._ended_s = self._seconds_now()

    def _seconds_now(self) -> float:
        started = self._reader.started_ns
        return (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - started) / 1e9 if started else 0.0

    def _wait_for_end(self, timeout_s: float) -> bool:
        if self._thread is not None:
            self._thread.join(timeout_s)
        return not self.running

    def _give_up(self) -> None:
        """Its threads end with the process."""

    def _write_control(self, field: str, value: int | np.ndarray) -> None:
        self._control[field] = value

    def _post(self, clock: int, row: np.ndarray) -> None:
        self._library.post(self._launch_address, clock, row)

    def _refresh(self, ended: bool) -> None:
        """The kernel writes into these arrays."""

    def _fetch_state(self) -> None:
        """It is there."""

    def look(self) -> np.void:
        self._reader.counter("steps_done")  # for its order: the weights it counts can be read
        return self._telemetry

    def read_parts(self, parts: Sequence[Part]) -> list[np.ndarray]:
        return [self.memory[part.array][part.first : part.first + part.count].copy() for part in parts]

    def _device_readings(self) -> dict[str, float]:
        return {
            "cpu_percent": self._process.cpu_percent(),
            "rss_bytes": float(self._process.memory_info().rss),
        }
