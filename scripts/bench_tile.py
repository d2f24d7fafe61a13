"""Our fp32 matrix products on one core against NumPy's, in turns on the same data.

usage: bench_tile.py [--rounds N]

Times are the processor time of one thread, best of all rounds. The last line is the smallest ratio ours / NumPy over
all shapes and the three products.
"""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1", VECLIB_MAXIMUM_THREADS="1")

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ofa_tui import locations
from ofa_tui.engine.compiler import find_compiler

SHAPES = ((256, 256, 256), (1024, 768, 768), (128, 128, 128), (128, 128, 512), (128, 64, 1024))
"""(m, n, k): two of general interest and the tiles of the small presets."""
FLOP_PER_CALL = 2e8


def compile_products(folder: Path) -> ctypes.CDLL:
    output = str(folder / "tile.so")
    source = str(Path(__file__).with_name("bench_tile.cc"))
    flags = ["-std=c++20", "-O3", "-march=native", "-shared", "-fPIC", f"-I{locations.cuda_sources()}"]
    subprocess.run([*find_compiler().command, *flags, source, "-o", output], check=True)
    library = ctypes.CDLL(output)
    library.scratch_bytes.restype = ctypes.c_uint64
    return library


def seconds(call: Callable[[], None]) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started


def compare(library: ctypes.CDLL, kind: int, m: int, n: int, k: int, rounds: int) -> tuple[float, float]:
    """GFLOP/s of ours and of NumPy for product `kind` of bench_tile.cc."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((k, m) if kind == 2 else (m, k)).astype(np.float32)
    w = rng.standard_normal((n, k) if kind == 0 else (k, n)).astype(np.float32)
    ours, theirs = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    scratch = np.empty(library.scratch_bytes() + 64, np.uint8)
    pointers = [array.ctypes.data for array in (x, w, ours)] + [scratch.ctypes.data + -scratch.ctypes.data % 64]
    a, b = x.T if kind == 2 else x, w.T if kind == 0 else w
    times = max(1, round(FLOP_PER_CALL / (2 * m * n * k)))

    def run_ours() -> None:
        library.product(kind, m, n, k, *map(ctypes.c_void_p, pointers), times)

    def run_numpy() -> None:
        for _ in range(times):
            np.matmul(a, b, out=theirs)

    best = [min(pair) for pair in zip(*((seconds(run_ours), seconds(run_numpy)) for _ in range(rounds)), strict=True)]
    assert np.allclose(ours, theirs, atol=1e-3 * k**0.5)
    return tuple(2e-9 * m * n * k * times / s for s in best)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        library = compile_products(Path(folder))
        ratios = []
        print("product        m     n     k   GFLOP/s   NumPy   ratio")
        for m, n, k in SHAPES:
            for kind, name in enumerate(("x w^T", "x w", "x^T w")):
                ours, theirs = compare(library, kind, m, n, k, rounds)
                ratios.append(ours / theirs)
                print(f"{name:10} {m:5} {n:5} {k:5} {ours:9.1f} {theirs:7.1f} {ratios[-1]:7.2f}", flush=True)
        print(f"ratio {min(ratios):.2f}")


if __name__ == "__main__":
    main()
