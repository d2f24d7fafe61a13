"""What programs are compiled for: a processor core, or a Hopper SM with a copy engine and tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from ofa_tui.errors import OfaError


@dataclass(frozen=True)
class Target:
    name: str
    storage: str
    """Dtype of matrices that products read and write; sums, statistics, moments and gains are always f4."""
    masters: bool
    """Weights are updated in an f4 copy of their own, inside the task that makes their gradient."""
    copy_engine: bool
    """Operands marked in ops.py are moved by bulk copies, whose accesses need proxy fences (see fences.py)."""
    streamed_decode: bool
    """Tokens are decoded by owned tasks that pass on messages, from weights in stream order."""
    shared_bytes: int
    """Shared memory that one task may use; 0: not limited."""


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("host", "f4", masters=False, copy_engine=False, streamed_decode=False, shared_bytes=0),
        Target("sm90", "bf16", masters=True, copy_engine=True, streamed_decode=True, shared_bytes=232_448),
    )
}


def target_called(name: str) -> Target:
    """Raises OfaError for an unknown name."""
    try:
        return TARGETS[name]
    except KeyError:
        known = ", ".join(TARGETS)
        raise OfaError(f"no program can be compiled for target {name!r}; the targets are: {known}") from None
