"""Tile choices are pure functions with the limits that tasks and counters set."""

from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.program import tiles


def test_row_blocks_of_the_presets():
    assert tiles.row_block(8, 128) == 128
    assert tiles.row_block(12, 64) == 128
    assert tiles.row_block(8, 512) == 128
    assert tiles.row_block(1, 128) == 32  # one short sequence still makes four blocks


@given(st.integers(1, 64), st.integers(1, 2048))
def test_a_row_block_divides_the_batch_and_fits_sequences(batch, context):
    block = tiles.row_block(batch, context)
    assert batch * context % block == 0
    assert block % context == 0 or context % block == 0
    assert batch * context // block <= tiles.MOST_BLOCKS


@given(st.integers(1, 60_000), st.integers(1, 255))
def test_column_tiles_are_whole_vectors_and_nearly_equal(columns, row_blocks):
    tile = tiles.column_tile(columns, row_blocks)
    pieces = -(-columns // tile)
    assert tile % tiles.COLUMN_STEP == 0 and tile <= 128
    assert pieces * tile - columns < pieces * tiles.COLUMN_STEP


def test_weight_tiles_make_enough_tasks():
    for rows, columns in ((128, 128), (384, 128), (512, 128), (128, 512), (50_432, 768)):
        tile_rows, tile_columns = tiles.weight_tile(rows, columns)
        assert -(-rows // tile_rows) * -(-columns // tile_columns) >= tiles.TASKS_PER_WEIGHT
    assert tiles.weight_tile(8, 8) == (32, 32)
