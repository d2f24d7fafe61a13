"""What a machine could do at most: from assets/limits.toml for GPUs, measured here for this processor."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ofa_tui import locations
from ofa_tui.engine.protocol import RunInfo

PRODUCT, COPIED = 384, 1 << 23
"""Rows of square matrices; elements of a copy, more than a cache holds."""
MEASURE_S = 0.5


@dataclass(frozen=True)
class Limits:
    flop_s_of_sm: float
    """Matrix products on one SM, in FLOP/s."""
    bytes_s_of_sm: float
    bytes_s_of_all: float
    """Main memory, by one SM and by all together."""
    source: str

    def bytes_s(self, sms: int) -> float:
        return min(sms * self.bytes_s_of_sm, self.bytes_s_of_all)


def limits_of(device: str) -> Limits | None:
    """Those of a GPU by its name; None for one that nobody has written down."""
    table = tomllib.loads((locations.assets() / "limits.toml").read_text(encoding="utf-8"))
    for row in table["gpu"]:
        if row["name"] in device:
            return Limits(row["tflop_s"] * 1e12 / row["sms"], row["sm_gb_s"] * 1e9, row["gb_s"] * 1e9, row["source"])
    return None


def machine_limits(info: RunInfo) -> Limits | None:
    """Those of the machine a run is on, which is this one; takes a second where they are measured."""
    return measure_host() if info.backend == "host" else limits_of(info.device)


def measure_host() -> Limits:
    """Of this processor, in about a second: numpy's product of f4 matrices, and copies of memory.

    A virtual SM is a core. Rounds are short and the best one counts, so that other work on the machine does not lower
    the limit.
    """
    cores = os.cpu_count() or 1
    a, b, out = (np.ones((PRODUCT, PRODUCT), np.float32) for _ in range(3))
    given, taken = np.ones(COPIED, np.float32), np.ones(COPIED, np.float32)
    flop_s = 2.0 * PRODUCT**3 / _best(lambda: np.matmul(a, b, out=out))
    bytes_s = 2.0 * given.nbytes / _best(lambda: np.copyto(taken, given))
    return Limits(flop_s / cores, bytes_s, bytes_s,
                  f"measured just now: numpy's product of f4 matrices on {cores} cores {flop_s / 1e9:,.0f} GFLOP/s, a "
                  f"copy of memory {bytes_s / 1e9:,.1f} GB/s; what stays in a cache may be faster")


def _best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of all rounds that fit into MEASURE_S."""
    times: list[float] = []
    until = time.perf_counter() + MEASURE_S
    while not times or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
