"""What the compiler hands to an engine: buffers, operands, counters and four arrays of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ofa_tui.presets import ModelConfig, TrainConfig


@dataclass(frozen=True)
class Buffer:
    """A matrix in the engine's memory. `shape` is (rows, cols); vectors are (1, n) or (n, 1)."""

    name: str
    shape: tuple[int, int]
    dtype: str  # a name in abi.DTYPES
    kind: str  # "weight", "moment", "gradient", "activation", "cache"
    copies: int = 1


@dataclass(frozen=True)
class View:
    """An operand before it has an address: the whole of `buffer`, read or written at version + `rotation`."""

    buffer: str
    rotation: int = 0


@dataclass
class TaskProgram:
    """One iteration's tasks in claim order: `tasks` is abi.TASK [n]; `labels[i]` names task i for people."""

    name: str  # one of abi.PROGRAMS
    tasks: np.ndarray
    labels: list[str] = field(default_factory=list)


@dataclass
class ProgramSet:
    """All that is compiled for one model, training set-up and target. Pure data: no addresses."""

    model: ModelConfig
    train: TrainConfig
    target: str  # "host" or "sm90"
    buffers: dict[str, Buffer]
    views: list[View]  # the operand table, in order
    counters: list[str]  # a name for each counter
    programs: dict[str, TaskProgram]
    parameters: list[str] = field(default_factory=list)
    """Names of the weight buffers, in a fixed order; their gradients are "<name>.grad", moments "<name>.m", ".v"."""
