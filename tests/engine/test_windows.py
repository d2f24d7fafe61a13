"""The order of the data: every window once an epoch, every held-out token once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.engine.windows import train_windows, valid_windows


@given(context=st.integers(1, 40), extra=st.integers(1, 500), batch=st.integers(1, 7), steps=st.integers(0, 60),
       seed=st.integers(0, 2**31))  # fmt: skip
def test_an_epoch_takes_every_window_once(context, extra, batch, steps, seed):
    n = context + extra
    starts = train_windows(n, context, batch, steps, seed)
    assert starts.shape == (steps, batch) and starts.dtype == np.int64
    assert np.array_equal(starts, train_windows(n, context, batch, steps, seed))
    left = starts.reshape(-1).tolist()
    while left:
        offset = left[0] % context
        count = (n - 1 - offset) // context
        epoch, left = left[:count], left[count:]
        assert {start % context for start in epoch} == {offset}
        assert len(set(epoch)) == len(epoch)
        assert min(epoch) >= 0 and max(epoch) + context < n, "each token of a window has a target"


@given(context=st.integers(1, 40), n=st.integers(0, 600), batch=st.integers(1, 7))
def test_held_out_windows_cover_every_target_once(context, n, batch):
    starts = valid_windows(n, context, batch)
    assert starts.shape[1] == batch
    rows = starts.reshape(-1)
    full = rows[rows >= 0]
    assert (rows[: len(full)] >= 0).all(), "empty rows only at the end"
    assert len(rows) - len(full) < batch
    targets = np.concatenate([np.arange(s + 1, min(s + context + 1, n)) for s in full]) if len(full) else []
    assert sorted(targets) == list(range(1, n))
