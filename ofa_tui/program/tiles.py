"""Tile sizes, chosen by pure functions of the shapes.

A row block is the unit in which the training step's tasks wait for each other: rows r * row_block and on of every
[BT, ...] activation.
"""

from __future__ import annotations

import math
from typing import Protocol

from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.targets import Target

PREFERRED_ROWS = (128, 256)
"""Row blocks between these keep a tile's operands in a core's second-level cache."""
FEWEST_BLOCKS = 4
MOST_BLOCKS = 255
"""A wait covers at most 255 counters (abi.TASK), and some tasks wait for every row block."""
COLUMN_STEP = 32
"""Tile widths are multiples of two 16-lane vectors."""
TASKS_PER_STAGE = 8
TASKS_PER_WEIGHT = 4
DECODE_TASKS = 16
DECODE_ELEMENTS = 16_384
ADAMW_ELEMENTS = 32_768
MOST_ADAMW_TASKS = 30_000
"""They share one counter, whose target is a u2."""


class Tiling(Protocol):
    """The tile choices of one target for one model and batch."""

    row_block: int
    """Rows that tasks of a training step wait for together."""
    wave_rows: int
    """Rows by which the nodes of a wave take turns."""
    columns_first: bool
    """In a wave, all rows of a turn for one column tile before the next column tile."""

    def rows_of(self, op: str) -> int:
        """Rows of a task that owns all columns of its rows."""

    def column_tile(self, columns: int) -> int:
        """Width of the tiles of a [BT, columns] product."""

    def weight_tile(self, rows: int, columns: int) -> tuple[int, int]:
        """Tile of a weight's gradient."""

    def table_stripe(self, rows: int) -> int:
        """Rows of the token table that one task owns."""

    def adamw_stripe(self, columns: int) -> int:
        """Rows of a weight with `columns` columns that one optimiser task owns."""

    def decode_tile(self, columns: int, depth: int) -> int:
        """Output columns of a decode task that reads `columns` x `depth` weights in all."""

    def sequences_per_group(self) -> int:
        """Sequences whose attention tasks share a counter."""


def choose_tiling(model: ModelConfig, train: TrainConfig, target: Target) -> Tiling:
    return Sm90Tiling(model, train) if target.name == "sm90" else HostTiling(model, train)


class HostTiling:
    """Tiles that fit a core's caches; a row block is a multiple or a divisor of the context."""

    columns_first = False

    def __init__(self, model: ModelConfig, train: TrainConfig) -> None:
        self.row_block = self.wave_rows = row_block(train.batch, model.context)
        self._blocks = train.batch * model.context // self.row_block
        self._sequences = max(1, self.row_block // model.context)
        self._adamw_elements = max(ADAMW_ELEMENTS, -(-model.parameter_count() // MOST_ADAMW_TASKS))

    def rows_of(self, op: str) -> int:
        return self.row_block

    def column_tile(self, columns: int) -> int:
        return column_tile(columns, self._blocks)

    def weight_tile(self, rows: int, columns: int) -> tuple[int, int]:
        return weight_tile(rows, columns)

    def table_stripe(self, rows: int) -> int:
        return table_stripe(rows)

    def adamw_stripe(self, columns: int) -> int:
        return adamw_stripe(columns, self._adamw_elements)

    def decode_tile(self, columns: int, depth: int) -> int:
        return decode_tile(columns, depth)

    def sequences_per_group(self) -> int:
        return self._sequences


SM90_TILE = (128, 256)
"""Rows and columns of a tile of a product: two warpgroups of 64 x 256 sums in registers."""
SM90_ROWS = {"norm": 32, "norm_backward": 32, "embed": 32}
SM90_LOGIT_ROWS = 8
"""Rows of a cross-entropy task: a row of logits is 100 KB in model-s."""
SM90_WAVE_BLOCKS = 8
"""Row blocks whose logits are complete before their cross-entropy: the head's product is faster the more rows share a
weight tile, and the longest tasks of a step, the gradient of its input, should start early."""
SM90_DECODE_ROWS = 32
"""Weight rows of a streamed task: two 16-row operands of mma.m16n8k16, 48 KiB of model-s."""


class Sm90Tiling:
    """Tiles of 128 x 256; sequences may begin inside a row block."""

    columns_first = True

    def __init__(self, model: ModelConfig, train: TrainConfig) -> None:
        self._rows = train.batch * model.context
        self.row_block = SM90_TILE[0]
        self.wave_rows = SM90_WAVE_BLOCKS * self.row_block

    def rows_of(self, op: str) -> int:
        return math.gcd(self._rows, SM90_ROWS.get(op, SM90_LOGIT_ROWS))

    def column_tile(self, columns: int) -> int:
        return min(columns, SM90_TILE[1])

    def weight_tile(self, rows: int, columns: int) -> tuple[int, int]:
        return min(rows, SM90_TILE[0]), min(columns, SM90_TILE[1])

    def table_stripe(self, rows: int) -> int:
        return min(rows, SM90_TILE[0])

    def adamw_stripe(self, columns: int) -> int:
        raise AssertionError("weights are updated where their gradient is made")

    def decode_tile(self, columns: int, depth: int) -> int:
        return min(columns, SM90_DECODE_ROWS)

    def sequences_per_group(self) -> int:
        return 1


def row_block(batch: int, context: int) -> int:
    """Rows of a row block for `batch` sequences of `context` tokens.

    Among the divisors of batch * context that divide the context or are multiples of it, the one nearest to
    PREFERRED_ROWS; with fewer than FEWEST_BLOCKS blocks a smaller one is better.
    """
    rows = batch * context
    candidates = [d for d in _divisors(context) if rows // d <= MOST_BLOCKS]
    candidates += [context * d for d in _divisors(batch) if rows // (context * d) <= MOST_BLOCKS]
    low, high = PREFERRED_ROWS

    def badness(block: int) -> tuple[float, int]:
        outside = max(low / block, block / high, 1.0)
        missing = max(FEWEST_BLOCKS / (rows // block), 1.0)
        return outside * missing, block

    return min(candidates, key=badness)


def column_tile(columns: int, row_blocks: int) -> int:
    """Width of the tiles of a [BT, columns] product: 128 or, where that makes few tasks, 64; split evenly."""
    widest = 128 if row_blocks * -(-columns // 128) >= TASKS_PER_STAGE else 64
    return _even_split(columns, widest)


def weight_tile(rows: int, columns: int) -> tuple[int, int]:
    """Tile (rows, columns) of a weight gradient: from 128 x 128 down until there are TASKS_PER_WEIGHT tasks."""
    tile_rows, tile_columns = 128, 128
    while -(-rows // tile_rows) * -(-columns // tile_columns) < TASKS_PER_WEIGHT:
        if tile_rows <= COLUMN_STEP and tile_columns <= COLUMN_STEP:
            break
        if tile_rows >= tile_columns:
            tile_rows //= 2
        else:
            tile_columns //= 2
    return _even_split(rows, tile_rows), _even_split(columns, tile_columns)


def decode_tile(columns: int, depth: int) -> int:
    """Output columns of a decode task that reads `columns` x `depth` weights in all."""
    wanted = max(-(-columns // DECODE_TASKS), -(-DECODE_ELEMENTS // depth))
    return _round_up(min(wanted, columns), COLUMN_STEP)


def table_stripe(rows: int) -> int:
    """Rows of the token table that one embedding-gradient task owns."""
    return _round_up(-(-rows // TASKS_PER_WEIGHT), COLUMN_STEP)


def adamw_stripe(columns: int, elements: int) -> int:
    """Whole rows of a weight with `columns` columns that hold about `elements` elements."""
    return max(1, elements // columns)


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _round_up(n: int, step: int) -> int:
    return -(-n // step) * step


def _even_split(length: int, widest: int) -> int:
    """The tile length that cuts `length` into as few pieces as `widest` does, of nearly equal size."""
    pieces = -(-length // widest)
    return _round_up(-(-length // pieces), COLUMN_STEP)
