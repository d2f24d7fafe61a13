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


@given(context=st.integers(1, 40), extra=st.integers(1, 300), batch=st.integers(1, 7), seed=st.integers(0, 2**31),
       far=st.sampled_from([0, 1, 17, 2**32 - 3, 2**40]), skip=st.integers(0, 40))  # fmt: skip
def test_a_run_that_goes_on_sees_the_windows_of_the_whole_run(context, extra, batch, seed, far, skip):
    """Those from `far` on, asked for at once or from a later step."""
    n = context + extra
    starts = train_windows(n, context, batch, 60, seed, far)
    assert np.array_equal(train_windows(n, context, batch, 60 - skip, seed, far + skip), starts[skip:])
    assert starts.min() >= 0 and starts.max() + context < n


@given(context=st.integers(1, 30), extra=st.integers(1, 100), seed=st.integers(0, 2**31), first=st.integers(0, 2**33))
def test_epochs_take_turns_at_the_offsets(context, extra, seed, first):
    """As many epochs in a row as there are offsets take every window of every offset, wherever they begin."""
    n = context + extra
    all_windows = n - context  # a window may begin at any token that leaves it its targets
    starts = train_windows(n, context, 1, all_windows, seed, first * all_windows)
    assert sorted(starts.reshape(-1).tolist()) == list(range(all_windows))


def test_the_first_epoch_is_pinned():
    """Recorded runs can be repeated: these are the windows that version 0.1 drew."""
    starts = train_windows(500, 24, 3, 4, seed=1)
    assert starts.tolist() == [[289, 241, 265], [313, 457, 1], [385, 25, 97], [217, 73, 49]]


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
