"""Lines of kernel.log that are read back: what changed, and when to the millisecond."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ofa_tui import abi
from ofa_tui.engine.protocol import SweepLoss

_ROLES, _SWEEP = "roles", "held-out loss"


@dataclass(frozen=True)
class Change:
    """New roles of all SMs, or (without any) a sweep that came."""

    seconds: float
    roles: tuple[int, ...] = ()


def roles_line(seconds: float, roles: Iterable[int]) -> str:
    return f"{seconds:.3f} s: {_ROLES} {' '.join(f'{sm}:{abi.ROLES[role]}' for sm, role in enumerate(roles))}"


def sweep_line(seconds: float, sweep: SweepLoss) -> str:
    return f"{seconds:.3f} s: {_SWEEP} {sweep.loss:.4f} after step {sweep.step}"


def parse_change(line: str) -> Change | None:
    """None for lines that tell of something else. Raises ValueError for one that is damaged."""
    time, found, text = line.partition(" s: ")
    if not found or not text.startswith((_ROLES, _SWEEP)):
        return None
    seconds = float(time)
    if not math.isfinite(seconds):
        raise ValueError("no time")
    if text.startswith(_SWEEP):
        return Change(seconds)
    roles = tuple(abi.ROLES.index(part.partition(":")[2]) for part in text.split()[1:])
    if not roles:
        raise ValueError("no roles")
    return Change(seconds, roles)
