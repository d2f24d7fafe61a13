"""Which tokens each step trains on and each held-out batch measures: pure functions of sizes and a seed."""

from __future__ import annotations

import numpy as np


def train_windows(n_tokens: int, context: int, batch: int, steps: int, seed: int) -> np.ndarray:
    """First token of every training sequence, i8 [steps, batch].

    An epoch starts at a random offset in [0, context) and takes every whole, non-overlapping window from there on,
    in random order and without repetition; then the next epoch begins, in the middle of a batch if it falls there.
    Needs more than `context` tokens; each window has a target for its last token.
    """
    if n_tokens <= context:
        raise ValueError(f"{n_tokens} tokens hold no window of {context} with its targets")
    rng = np.random.default_rng([seed, 0x77696E])
    wanted = steps * batch
    epochs: list[np.ndarray] = []
    have = 0
    while have < wanted:
        offset = int(rng.integers(min(context, n_tokens - context)))
        count = (n_tokens - 1 - offset) // context
        epochs.append(rng.permutation(count).astype(np.int64) * context + offset)
        have += count
    return np.concatenate(epochs)[:wanted].reshape(steps, batch) if wanted else np.zeros((0, batch), np.int64)


def valid_windows(n_tokens: int, context: int, batch: int) -> np.ndarray:
    """First token of every non-overlapping held-out window, i8 [batches, batch], in one fixed shuffled order.

    The last window may be shorter than `context` tokens; rows left over in the last batch are -1. Shuffled, so that
    the first batches, which the sweeps between steps use, are a fair sample.
    """
    count = -(-(n_tokens - 1) // context) if n_tokens > 1 else 0
    starts = np.random.default_rng(0x76616C).permutation(count).astype(np.int64) * context
    batches = -(-count // batch)
    padded = np.full(batches * batch, -1, np.int64)
    padded[:count] = starts
    return padded.reshape(batches, batch)
