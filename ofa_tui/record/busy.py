"""How busy each SM was between two snapshots."""

from __future__ import annotations

import numpy as np

from ofa_tui.program.ops import OPS


def busy_shares(before: np.ndarray | None, now: np.ndarray, seconds: float) -> np.ndarray:
    """f8 [n_sms] in 0..1: time inside tasks, waits left out, as a share of the interval.

    `before` and `now` are abi.SM_STATUS [n_sms]; without a `before` the interval began at the launch. A task's time
    counts when it ends, so that a task longer than the interval shows late.
    """
    if seconds <= 0:
        return np.zeros(len(now))
    return np.clip(_op_ns(before, now).sum(axis=1) / (seconds * 1e9), 0.0, 1.0)


def op_seconds(before: np.ndarray | None, now: np.ndarray) -> dict[str, float]:
    """Seconds that all SMs together spent in each task type between the two, task types without any left out."""
    totals = _op_ns(before, now).sum(axis=0) / 1e9
    return {op.name: round(float(spent), 6) for op, spent in zip(OPS, totals, strict=True) if spent > 0}


def _op_ns(before: np.ndarray | None, now: np.ndarray) -> np.ndarray:
    """f8 [n_sms, n_ops]"""
    current = now["op_ns"].astype(np.float64)
    return current if before is None else np.maximum(current - before["op_ns"].astype(np.float64), 0.0)
