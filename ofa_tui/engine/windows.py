"""Which tokens each step trains on and each held-out batch measures: pure functions of sizes and a seed."""

from __future__ import annotations

import math

import numpy as np


def train_windows(
    n_tokens: int, context: int, batch: int, steps: int, seed: int, first_step: int = 0
) -> np.ndarray:
    """First token of every training sequence of `steps` steps from `first_step` on, i8 [steps, batch].

    An epoch starts at an offset in [0, context) and takes every whole, non-overlapping window from there on, in random
    order and without repetition; then the next epoch begins, in the middle of a batch if it falls there. Needs more
    than `context` tokens; each window has a target for its last token.

    The epochs before `first_step` are not made: each has its own random numbers, and since epochs take turns at the
    offsets, how many windows lie before an epoch is arithmetic.
    """
    if n_tokens <= context:
        raise ValueError(f"{n_tokens} tokens hold no window of {context} with its targets")
    offsets = _offsets(min(context, n_tokens - context), seed)
    counts = (n_tokens - 1 - offsets) // context
    ends = np.cumsum(counts)
    rounds, inside = divmod(first_step * batch, int(ends[-1]))
    turn = int(np.searchsorted(ends, inside, side="right"))
    skipped = inside - int(ends[turn] - counts[turn])
    epoch = rounds * len(offsets) + turn
    taken: list[np.ndarray] = [np.zeros(0, np.int64)]
    left = skipped + steps * batch
    while left > 0:
        turn = epoch % len(offsets)
        order = _random(seed, epoch, len(offsets))[0].permutation(counts[turn])
        taken.append(order[:left] * context + offsets[turn])
        left -= len(order)
        epoch += 1
    return np.concatenate(taken)[skipped:].reshape(steps, batch)


def _random(seed: int, epoch: int, n_offsets: int) -> tuple[np.random.Generator, int]:
    """The epoch's generator and the first number it draws: that of epoch 0 is its offset."""
    generator = np.random.default_rng([seed, 0x77696E, epoch])
    return generator, int(generator.integers(n_offsets))


def _offsets(n: int, seed: int) -> np.ndarray:
    """Offsets of epochs 0 to n - 1, and of every n epochs after them: each of [0, n) once, neighbours far apart."""
    stride = next(s for s in range(round(0.618 * n), 2 * n) if math.gcd(s, n) == 1)
    return (_random(seed, 0, n)[1] + stride * np.arange(n, dtype=np.int64)) % n


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
