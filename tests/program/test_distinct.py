from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ofa_tui.program.distinct import distinct

INTEGERS = st.sampled_from([np.uint16, np.uint32, np.int64])


@given(hnp.arrays(INTEGERS, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)))
def test_each_value_once_ascending(values: np.ndarray) -> None:
    found = distinct(values)
    assert found.dtype == values.dtype and found.tolist() == sorted(set(values.ravel().tolist()))
