"""What benchmarks on a GPU have in common: runs of our engine, clock and power beside them, parts as processes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from gpu_runs import Options as RunOptions
from gpu_runs import Result, follow, hopper_engine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.cuda_nvml import Monitor
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.errors import OfaError
from ofa_tui.program.types import ProgramSet
from ofa_tui.program.work import program_work

PART_S = 480
ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "CUDA_MODULE_LOADING": "EAGER"}
"""Of a part. What is loaded at its first use waits for kernels that are resident, so for ever."""
WARM_S = 2.0
"""Before anything is timed: a burst runs at a higher clock."""
IDLE_TOKENS_PER_S = 0.01
"""The SMs are there and wait."""
SHARED_SMS = 2
"""Green contexts may share so many once a module with dynamic parallelism was loaded (the driver's manual)."""
RUN_S = 240

Given = TypeVar("Given")


class Gauges:
    """Clock and power over a time, read ten times a second; medians of them afterwards."""

    def __init__(self) -> None:
        self._monitor = Monitor(0)
        self._readings: list[dict[str, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Gauges:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(0.1):
            self._readings.append(self._monitor.read())

    def medians(self) -> dict[str, float]:
        """clock_mhz and power_w of the second half, where there are any."""
        late = self._readings[len(self._readings) // 2 :]
        return {name: float(np.median([reading[name] for reading in late]))
                for name in ("clock_mhz", "power_w") if late and all(name in reading for reading in late)}


def gauge_text(row: Mapping[str, Any]) -> str:
    """Of medians in a row, for people; begins with a comma where there is any."""
    units = {"clock_mhz": "MHz", "power_w": "W"}
    return "".join(f", {row[name]:.0f} {unit}" for name, unit in units.items() if name in row)


@contextmanager
def nothing() -> Iterator[None]:
    yield


# --- our engine ---------------------------------------------------------------------------------------------------


def run_ours(out: Path, sm90_cubin: Path | None, config: RunConfig, until: Callable[[Snapshot], bool],
             prepare: Callable[[ResidentEngine], None] = lambda _: None) -> tuple[list[Snapshot], Gauges]:
    """Every snapshot of a run that is stopped once `until` holds. `prepare` changes its memory before the start."""
    return watch(hopper_engine(RunOptions(out, None, sm90_cubin, None, None, out), config), until, prepare)


def watch(running: ResidentEngine, until: Callable[[Snapshot], bool],
          prepare: Callable[[ResidentEngine], None] = lambda _: None) -> tuple[list[Snapshot], Gauges]:
    """The same of an engine that has not been started."""
    try:
        prepare(running)
        running.start()
        with Gauges() as gauges:
            snapshots = follow(running, until, RUN_S)
        running.stop()
        snapshots.append(running.poll())
    finally:
        running.stop()
        if hasattr(running, "close"):
            running.close()
    if snapshots[-1].state == "aborted":
        raise OfaError(snapshots[-1].message)
    return snapshots, gauges


def warm_steps(milliseconds: np.ndarray) -> np.ndarray:
    """f8 [steps]: of steps that follow each other from the start of a run those after the first WARM_S seconds."""
    warm = int(np.searchsorted(np.cumsum(milliseconds), 1e3 * WARM_S)) + 1
    return milliseconds[warm:] if len(milliseconds) - warm >= 10 else milliseconds[len(milliseconds) // 2 :]


def weight_bytes(programs: ProgramSet) -> float:
    """What a pass of decoding reads of weights."""
    return sum(2.0 * work.elements.get("w", 0) for work in program_work(programs, programs.programs["decode"]))


# --- parts --------------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser, parts: Mapping[str, object], out: str) -> None:
    parser.add_argument("--part", action="append", choices=parts, help="repeatable; default: all")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"where results go (default: {out})")
    parser.add_argument("--sm90-cubin", type=Path, help="a compiled Hopper kernel to use as it is")
    parser.add_argument("--run", choices=parts, help=argparse.SUPPRESS)


def run_part(name: str, part: Callable[[Given], Result], options: Given, out: Path) -> int:
    """In the part's own process: its result as a file."""
    try:
        result = part(options)
    except Exception as error:
        traceback.print_exc()
        result = {"ok": False, "line": f"{type(error).__name__}: {error}"}
    (out / f"{name}.json").write_text(json.dumps(result, default=float) + "\n")
    return 0 if result["ok"] else 1


def spawn(name: str, out: Path) -> Result:
    """A part as a process of this script with these arguments, its output kept. What is there already is not measured
    again."""
    path = out / f"{name}.json"
    if path.is_file() and json.loads(path.read_text())["ok"]:
        return json.loads(path.read_text())
    path.unlink(missing_ok=True)
    command = [sys.executable, sys.argv[0], "--run", name, *sys.argv[1:]]
    with (out / f"{name}.log").open("wb") as log:
        try:
            subprocess.run(command, stdout=log, stderr=log, timeout=PART_S, env={**os.environ, **ENVIRONMENT})
        except subprocess.TimeoutExpired:
            return {"ok": False, "line": f"not done after {PART_S} s; {log.name} says how far it came"}
    if not path.is_file():
        return {"ok": False, "line": f"ended without a result; see {log.name}"}
    return json.loads(path.read_text())


def run_parts(names: list[str], out: Path, show: Callable[[dict[str, Any]], str]) -> dict[str, Result]:
    """One after the other, each with its rows and its line as soon as it is done."""
    results = {}
    for name in names:
        result = results[name] = spawn(name, out)
        for row in result.get("rows", ()):
            print("  " + show(row))
        print(f"{'ok  ' if result['ok'] else 'FAIL'} {name}: {result['line']}", flush=True)
    return results
