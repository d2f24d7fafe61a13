"""Tile sizes, chosen by pure functions of the shapes.

A row block is the unit in which the training step's tasks wait for each other: rows r * row_block and on of every
[BT, ...] activation. It is a multiple or a divisor of the context, so that attention, which owns one sequence and
one head, joins whole row blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofa_tui.presets import ModelConfig, TrainConfig

PREFERRED_ROWS = (128, 256)
"""Row blocks between these keep a tile's operands in a core's second-level cache."""
FEWEST_BLOCKS = 4
MOST_BLOCKS = 255
"""A wait covers at most 255 counters (abi.TASK), and some tasks wait for every row block."""
COLUMN_STEP = 32
"""Tile widths are multiples of two 16-lane vectors."""
TASKS_PER_STAGE = 8
TASKS_PER_WEIGHT = 8
DECODE_TASKS = 16
DECODE_ELEMENTS = 16_384
ADAMW_ELEMENTS = 32_768
MOST_ADAMW_TASKS = 30_000
"""They share one counter, whose target is a u2."""


@dataclass(frozen=True)
class Tiling:
    """The tile choices that shape buffers and counters."""

    row_block: int
    row_blocks: int
    blocks_joined: int
    """Row blocks that one sequence spans (1 when a row block holds whole sequences)."""
    group_rows: int
    """Rows that share one attention counter: whole sequences and whole row blocks."""
    adamw_elements: int


def choose_tiling(model: ModelConfig, train: TrainConfig) -> Tiling:
    rows = train.batch * model.context
    block = row_block(train.batch, model.context)
    return Tiling(
        row_block=block,
        row_blocks=rows // block,
        blocks_joined=max(1, model.context // block),
        group_rows=max(block, model.context),
        adamw_elements=max(ADAMW_ELEMENTS, -(-model.parameter_count() // MOST_ADAMW_TASKS)),
    )


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
