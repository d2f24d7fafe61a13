"""What each SM had done at any time of a recorded run, from its samples."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import OPCODES, OPS

OP_ROLES = {
    op.name: "doom" if op.name == "doom_tic" else "serve" if op.file in ("decode", "sample") else "train" for op in OPS
}
"""The role that runs each task type."""
KEEP_EVERY = 32


class SmHistory:
    """Integrates the samples: each tells how busy every SM was since the sample before, and all task types' shares."""

    def __init__(self, samples: Sequence[dict[str, Any]], n_sms: int, begin: float) -> None:
        """`samples` may grow; nothing is known of the time before `begin` (seconds)."""
        self._samples = samples
        self._n_sms = n_sms
        self._begin = begin
        self._times: list[float] = []
        # Sums up to the sample before each of these, always added in the same order.
        self._kept = {0: (np.zeros((n_sms, len(OPS))), np.zeros(n_sms))}
        self._newest = (0, self._kept[0])

    def at(self, seconds: float, roles: np.ndarray, resting: bool) -> np.ndarray:
        """abi.SM_STATUS [n_sms]: the same for the same time, whatever was asked before. `resting`: none works now."""
        self._times += [float(sample["seconds"]) for sample in self._samples[len(self._times) :]]
        index = bisect_left(self._times, seconds)
        op_ns, wait_ns = self._until(index)
        sms = np.zeros(self._n_sms, abi.SM_STATUS)
        sms["role"] = roles
        sms["heartbeat_ns"] = int(max(0.0, seconds) * 1e9)
        if self._samples:
            sample = self._samples[min(index, len(self._samples) - 1)]
            work, busy = self._rates(sample)
            elapsed_ns = max(0.0, seconds - self._start_of(index)) * 1e9
            op_ns, wait_ns = op_ns + elapsed_ns * work, wait_ns + elapsed_ns * (1 - busy)
            works = work.any(axis=1) & (not resting)
            sms["phase"] = np.where(works, abi.PHASE_RUNNING, 0)
            sms["opcode"] = np.where(works, work.argmax(axis=1), abi.NONE_U32)
        sms["op_ns"][:, : op_ns.shape[1]] = op_ns
        sms["wait_ns"] = wait_ns
        return sms

    def _start_of(self, index: int) -> float:
        """When the interval that sample `index` tells of began."""
        return max(self._begin, self._times[index - 1]) if index else self._begin

    def _until(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Nanoseconds in each task type, f8 [n_sms, ops], and waiting, f8 [n_sms], up to the sample before `index`."""
        first, sums = max(self._kept.items(), key=lambda kept: kept[0] if kept[0] <= index else -1)
        if first <= self._newest[0] <= index:
            first, sums = self._newest
        op_ns, wait_ns = sums
        for k in range(first, index):
            work, busy = self._rates(self._samples[k])
            elapsed_ns = max(0.0, self._times[k] - self._start_of(k)) * 1e9
            op_ns, wait_ns = op_ns + elapsed_ns * work, wait_ns + elapsed_ns * (1 - busy)
            if (k + 1) % KEEP_EVERY == 0:
                self._kept[k + 1] = (op_ns, wait_ns)
        self._newest = (index, (op_ns, wait_ns))
        return op_ns, wait_ns

    def _rates(self, sample: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """The share of its time each SM spent in each task type, f8 [n_sms, ops], and in tasks at all, f8 [n_sms]."""
        busy = np.zeros(self._n_sms)
        told = sample["busy"][: self._n_sms]
        busy[: len(told)] = told
        work = np.zeros((self._n_sms, len(OPS)))
        roles = sample["roles"][: self._n_sms]
        mixes = {role: _op_mix(sample, role) for role in set(roles)}
        for sm, role in enumerate(roles):
            work[sm] = busy[sm] * mixes[role]
        return work, busy


def _op_mix(sample: dict[str, Any], role: str) -> np.ndarray:
    """f8 [ops]: how a role's working time was divided among its task types; the shares add up to 1."""
    mix = np.zeros(len(OPS))
    for name, spent in sample["op_seconds"].items():
        if OP_ROLES.get(name) == role:
            mix[OPCODES[name]] = max(0.0, spent)
    return mix / (mix.sum() or 1.0)
