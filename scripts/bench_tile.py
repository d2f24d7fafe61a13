"""Our fp32 matrix products and NumPy's, on one core and the same data; measured by bench_host.py."""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1", VECLIB_MAXIMUM_THREADS="1")

import ctypes
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ofa_tui import locations
from ofa_tui.engine.compiler import find_compiler, run_compiler
from ofa_tui.errors import OfaError

KINDS = ("x w^T", "x w", "x^T w")
FLOP_PER_TURN = 5e10


def compile_products(folder: Path, flags: tuple[str, ...] = ("-march=native",)) -> ctypes.CDLL:
    """The library of bench_tile.cc, compiled into `folder`. Raises OfaError."""
    output = str(folder / "tile.so")
    source = str(Path(__file__).resolve().with_name("bench_tile.cc"))
    arguments = ["-std=c++20", "-O3", *flags, "-shared", "-fPIC", f"-I{locations.cuda_sources()}"]
    run_compiler([*find_compiler().command, *arguments, source, "-o", output], folder)
    library = ctypes.CDLL(output)
    library.scratch_bytes.restype = ctypes.c_uint64
    return library


class Product:
    """Product KINDS[kind] with outputs [m, n] and inner products of length k. Raises OfaError if it is not NumPy's."""

    def __init__(self, library: ctypes.CDLL, kind: int, m: int, n: int, k: int) -> None:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((k, m) if kind == 2 else (m, k)).astype(np.float32)
        w = rng.standard_normal((n, k) if kind == 0 else (k, n)).astype(np.float32)
        self._ours, self._theirs = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
        self._scratch = np.empty(library.scratch_bytes() + 64, np.uint8)
        self._factors = x, w
        self._times = max(1, round(FLOP_PER_TURN / (2 * m * n * k)))
        a, b = x.T if kind == 2 else x, w.T if kind == 0 else w
        pointers = [array.ctypes.data for array in (x, w, self._ours)]
        pointers.append(self._scratch.ctypes.data + -self._scratch.ctypes.data % 64)
        arguments = (kind, m, n, k, *map(ctypes.c_void_p, pointers), self._times)
        self._calls: dict[str, Callable[[], object]] = {
            "ofa-tui": lambda: library.product(*arguments),
            "NumPy": lambda: [np.matmul(a, b, out=self._theirs) for _ in range(self._times)],
        }
        self.milliseconds("ofa-tui"), self.milliseconds("NumPy")
        if not np.allclose(self._ours, self._theirs, atol=1e-3 * k**0.5):
            most = float(np.abs(self._ours - self._theirs).max())
            raise OfaError(f"{KINDS[kind]} of {m} x {n} x {k} is wrong: it differs from NumPy's by up to {most:.2g}")

    def milliseconds(self, whose: str) -> float:
        """Processor time of one product."""
        started = time.thread_time()
        self._calls[whose]()
        return 1e3 * (time.thread_time() - started) / self._times
