"""Runs ranges of fuzz cases in workers and starts a new one where a case kills or holds its worker."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ofa_tui import locations
from ofa_tui.engine.compiler import find_compiler
from ofa_tui.errors import OfaError

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0
_QUOTED = re.compile(r"'[^']*'|\b[A-Z0-9_\[\]\\^]{3,8}\b|\d+")


@dataclass(frozen=True)
class Failure:
    """A case that crashed its worker, ended in a traceback, or took longer than the deadline."""

    kind: str
    seed: int
    what: str


@dataclass
class Score:
    """What became of the cases of one kind."""

    kind: str
    cases: int = 0
    played: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    slowest_ms: float = 0.0
    slowest: int = -1

    def add(self, seed: int, ms: float, outcome: str) -> None:
        self.cases += 1
        if outcome == "played":
            self.played += 1
        else:
            self.refused[_QUOTED.sub("_", outcome)[:90]] += 1
        if ms > self.slowest_ms:
            self.slowest_ms, self.slowest = ms, seed


def compile_sanitized(folder: Path) -> Path:
    """The engine under AddressSanitizer and UBSan, a library in `folder`. Raises OfaError."""
    library = folder / "doom-sanitized.so"
    command = [
        *find_compiler().command, "-std=c++20", "-O2", "-g1", "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-pthread",
        f"-I{locations.cuda_sources()}", "-x", "c++", str(locations.cuda_sources() / "doom" / "host" / "library.cpp"),
        "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OfaError(f"{command[0]} cannot compile the engine with sanitizers: {done.stderr.strip()[:300]}")
    return library


def sanitizer_environment() -> dict[str, str]:
    """What a Python process needs to load that library. Raises OfaError where the compiler has no sanitizers."""
    runtime = subprocess.run([*find_compiler().command, "-print-file-name=libasan.so"], capture_output=True, text=True)
    path = runtime.stdout.strip()
    if not os.path.isabs(path):
        raise OfaError("the compiler has no sanitizer libraries; install them, or set CXX to g++")
    return {
        "LD_PRELOAD": path,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=4",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run_cases(library: Path, environment: dict[str, str], kind: str, first: int, end: int,
              on_case: Callable[[Score], None] = lambda score: None, deadline_s: float = DEADLINE_S) -> Score:
    """Runs cases first .. end - 1 of a kind with the compiled `library`."""
    score = Score(kind)
    seed = first
    while seed < end:
        seed = _run_worker(library, environment, score, seed, end, on_case, deadline_s)
    return score


def _run_worker(library: Path, environment: dict[str, str], score: Score, first: int, end: int,
                on_case: Callable[[Score], None], deadline_s: float) -> int:
    """Runs cases until one fails; returns the seed to go on with."""
    command = [sys.executable, "-m", "tests.doom.fuzz_worker", str(library), score.kind, str(first), str(end)]
    with tempfile.TemporaryFile() as errors:
        worker = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | environment | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
            stderr=errors)
        assert worker.stdout is not None
        pending, seed, late = b"", first, False
        with selectors.DefaultSelector() as selector:
            selector.register(worker.stdout, selectors.EVENT_READ)
            until = time.monotonic() + deadline_s
            while True:
                if not selector.select(max(until - time.monotonic(), 0)):
                    late = True
                    worker.kill()
                    break
                data = os.read(worker.stdout.fileno(), 1 << 16)
                if not data:
                    break
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    number, ms, outcome = line.decode("utf-8", "replace").split("\t", 2)
                    score.add(int(number), float(ms), outcome)
                    seed = int(number) + 1
                    until = time.monotonic() + deadline_s
                    on_case(score)
        status = worker.wait()
        worker.stdout.close()
        if not late and status == 0:
            return end
        errors.seek(0)
        report = errors.read().decode("utf-8", "replace")
    score.cases += 1
    score.failures.append(Failure(score.kind, seed, f"no end within {deadline_s:.0f} s" if late else shorten(report)))
    return seed + 1


def shorten(report: str) -> str:
    """The lines of a traceback or a sanitizer's report that say what and where."""
    lines = report.strip().splitlines()
    telling = [line for line in lines if "runtime error" in line or "ERROR: AddressSanitizer" in line]
    places = [line.strip() for line in lines if re.match(r"\s*#\d", line) and "doom" in line][:4]
    return "\n      ".join([*telling[:1], *places] if telling else lines[-6:])
