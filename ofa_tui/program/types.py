"""What the compiler hands to an engine: buffers, operands, counters and four arrays of tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig


@dataclass(frozen=True)
class Buffer:
    """A matrix in the engine's memory. `shape` is (rows, cols); vectors are (1, n) or (n, 1)."""

    name: str
    shape: tuple[int, int]
    dtype: str  # a name in abi.DTYPES
    kind: str  # "weight", "master", "moment", "gradient", "activation", "cache", "message"
    copies: int = 1
    layout: str = "rows"
    """A name in abi.LAYOUTS: where element (r, c) lies."""
    generations: int = 1
    """Times that an iteration writes a message buffer. Elements of a message carry the number of their generation,
    iteration * generations + generation; who reads one waits until all elements it reads have that number."""


@dataclass(frozen=True)
class View:
    """An operand before it has an address: the whole of `buffer`, read or written at version + `rotation`.

    Of a message buffer: the message of number `generation` in the iteration.
    """

    buffer: str
    rotation: int = 0
    generation: int = 0


@dataclass
class TaskProgram:
    """One iteration's tasks in claim order: `tasks` is abi.TASK [n]; `labels[i]` names task i for people."""

    name: str  # one of abi.PROGRAMS
    tasks: np.ndarray
    labels: list[str] = field(default_factory=list)
    claims: int = abi.CLAIM_TICKETS
    """How blocks come by its tasks, a number in abi.CLAIMS."""


@dataclass
class ProgramSet:
    """All that is compiled for one model, training set-up and target. Pure data: no addresses."""

    model: ModelConfig
    train: TrainConfig
    target: str  # "host" or "sm90"
    storage: str
    """Dtype of matrices, a name in abi.DTYPES: the target's, or f4 for programs of any target that the host runs."""
    games: int
    """Doom games, numbered from 0."""
    streams: int
    """Stories that decoding can tell at the same time."""
    buffers: dict[str, Buffer]
    views: list[View]  # the operand table, in order
    counters: list[str]  # a name for each counter
    programs: dict[str, TaskProgram]
    parameters: list[str] = field(default_factory=list)
    """Names of the weight buffers, in a fixed order. Moments are "<name>.m", ".v"; gradients, where they are stored,
    "<name>.grad"; on targets with masters the f4 weight is "<name>.master", its stream order "<name>.stream"."""
