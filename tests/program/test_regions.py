"""The table of regions against the interpreter's own, tile by tile and for many tiles at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.program.ops import OPS
from ofa_tui.program.regions import REGIONS
from tests.program.cells import rectangles

SHAPE = (96, 1056)
"""Both extents are multiples of 3."""


@st.composite
def tiles(draw, unit):
    """(row0, rows, col0, cols), of a unit (half, halves, first column of the head, head size)."""
    if unit:
        halves, size = draw(st.integers(1, 2)), 4 * draw(st.integers(1, 4))
        return draw(st.integers(0, halves - 1)), halves, size * draw(st.integers(0, 3)), size
    return draw(st.integers(0, 40)), draw(st.integers(1, 40)), draw(st.integers(0, 600)), draw(st.integers(1, 300))


def covered(rects):
    """bool [rows, columns] as bytes: the elements inside."""
    inside = np.zeros((2 * SHAPE[0], 2 * SHAPE[1]), bool)
    for first_row, end_row, first_column, end_column in rects:
        inside[first_row:end_row, first_column:end_column] = True
    return inside.tobytes()


@pytest.mark.parametrize("name", REGIONS)
@given(data=st.data())
def test_regions_are_those_of_the_interpreter(name, data):
    region = REGIONS[name]
    drawn = data.draw(st.lists(tiles(region.unit), min_size=1, max_size=4))
    many = region.rectangles(tuple(np.array(drawn).T), SHAPE)
    for number, tile in enumerate(drawn):
        one = region.rectangles(tile, SHAPE)
        at_once = [[int(np.broadcast_to(edge, len(drawn))[number]) for edge in rectangle] for rectangle in many]
        assert covered(one) == covered(at_once) == covered(rectangles(name, tile, *SHAPE))


@pytest.mark.parametrize("name", [name for name, region in REGIONS.items() if len(region.tile_axes) < 2])
@given(data=st.data())
def test_a_region_depends_on_no_axis_that_it_does_not_name(name, data):
    region, (row0, rows, col0, cols) = REGIONS[name], data.draw(tiles(False))
    other = data.draw(tiles(False))
    changed = ((row0, rows) if "rows" in region.tile_axes else other[:2],
               (col0, cols) if "columns" in region.tile_axes else other[2:])
    same = region.rectangles((*changed[0], *changed[1]), SHAPE)
    assert covered(same) == covered(region.rectangles((row0, rows, col0, cols), SHAPE))


def test_every_operand_has_a_region_that_is_known():
    assert {access.region for op in OPS for access in op.accesses} == set(REGIONS)
