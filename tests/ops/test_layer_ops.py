"""Norm, attention, embedding and cross-entropy against float64 NumPy."""

import sys
from pathlib import Path

import numpy as np
import pytest
from task_rig import TaskRig, matrix, relative

from ofa_tui.presets import ModelConfig

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))
import reference

ERROR = 2e-6


@pytest.mark.parametrize("rows, width, with_skip", [(3, 48, True), (7, 131, True), (5, 16, False), (4, 1, False)])
def test_norm_and_its_gradient(kernel, rows, width, with_skip):
    rng = np.random.default_rng(width)
    rig, blocks = TaskRig(kernel), 3
    x, dy, skip = (matrix(rng, rows * blocks, width) for _ in range(3))
    gain = matrix(rng, 1, width)
    y, dx, rstd = np.zeros_like(x), np.zeros_like(x), np.zeros((rows * blocks, 1), np.float32)
    dgain = np.zeros((blocks, width), np.float32)
    for block in range(blocks):
        tile = (block * rows, rows, 0, width)
        rig.run("norm", [x, gain, y, rstd], tile)
        rig.run("norm_backward", [dy, x, rstd, gain, skip if with_skip else None, dx, dgain], tile)
    wide = x.astype(float)
    scale = 1 / np.sqrt((wide**2).mean(axis=1, keepdims=True) + rig.model.norm_epsilon)
    normal, scaled = wide * scale, dy.astype(float) * gain
    assert relative(rstd, scale) < ERROR
    assert relative(y, normal * gain) < ERROR
    through = scale * (scaled - normal * (scaled * normal).mean(axis=1, keepdims=True))
    assert np.abs(dx - through - (skip if with_skip else 0)).max() < 1e-5 * np.abs(scaled).max()
    assert relative(dgain, (dy * normal).reshape(blocks, rows, width).sum(axis=1)) < ERROR


@pytest.mark.parametrize("context, head_dim", [(1, 2), (33, 24), (64, 32), (150, 10), (260, 64)])
def test_attention_and_its_gradient(kernel, context, head_dim):
    """Contexts below, at and beyond the blocks of keys and queries."""
    rng = np.random.default_rng(context)
    heads, batch = 2, 2
    model = ModelConfig(1, heads * head_dim, heads, 4 * head_dim, context, 61)
    rig, rows, width = TaskRig(kernel, model, batch), batch * context, model.width
    qkv, do = matrix(rng, rows, 3 * width), matrix(rng, rows, width)
    o, dqkv, lse = np.zeros_like(do), np.zeros_like(qkv), np.zeros((rows, heads), np.float32)
    for op, operands in (("attention", [qkv, o, lse]), ("attention_backward", [qkv, o, lse, do, dqkv])):
        for sequence in range(batch):
            for head in range(heads):
                rig.run(op, operands, (sequence * context, context, head * head_dim, head_dim))
    wide, shape = qkv.astype(float), (batch, context)
    expected, expected_lse = reference._attention(wide, shape, model)
    assert relative(o, expected) < ERROR
    assert np.abs(lse - expected_lse).max() < 1e-5
    assert relative(dqkv, reference._attention_backward(wide, do.astype(float), shape, model)) < ERROR


def test_attention_ignores_the_future(kernel):
    """Later rows of q, k and v change no bit of earlier outputs, even where those are tiny."""
    rng = np.random.default_rng(4)
    model = ModelConfig(1, 16, 1, 64, 50, 61)
    rig, qkv = TaskRig(kernel, model, 1), matrix(rng, 50, 48)
    qkv[:, 32:] *= 1e-30
    outputs = []
    for factor in (1, 1e30):
        qkv[37:] *= np.float32(factor)
        o, lse = np.zeros((50, 16), np.float32), np.zeros((50, 1), np.float32)
        rig.run("attention", [qkv, o, lse], (0, 50, 0, 16))
        outputs.append(np.concatenate([o, lse], axis=1)[:37])
    assert np.array_equal(*outputs)


def test_embedding_and_its_gradient(kernel):
    rng = np.random.default_rng(5)
    tokens = rng.integers(0, 61, 121)
    rig = TaskRig(kernel, tokens=tokens)
    rows, width = 120, rig.model.width
    table, dx = matrix(rng, 61, width), matrix(rng, rows, width)
    x, dtable = np.zeros_like(dx), np.full((61, width), 7, np.float32)
    for row in range(0, rows, 50):
        rig.run("embed", [table, x], (row, min(50, rows - row), 0, width))
    assert np.array_equal(x, table[tokens[:-1]])
    for row in range(0, 61, 32):
        rig.run("embed_backward", [dx, dtable], (row, min(32, 61 - row), 0, width))
    in_row_order = np.zeros_like(table)
    for row, token in enumerate(tokens[:-1]):
        in_row_order[token] += dx[row]
    assert np.array_equal(dtable, in_row_order)


@pytest.mark.parametrize("vocab", [2, 61, 320])
def test_cross_entropy_and_its_gradient(kernel, vocab):
    """The last sequence runs past the end of the text: its rows without a target count for nothing."""
    rng = np.random.default_rng(vocab)
    model = ModelConfig(1, 48, 2, 96, 40, vocab)
    tokens = rng.integers(0, vocab, 101)
    rig, rows, counted = TaskRig(kernel, model, 3, tokens), 120, 100
    logits = matrix(rng, rows, vocab) * np.float32(10)
    logits[5] += 1000
    losses, sweep_losses = np.full((rows, 1), 7, np.float32), np.full((rows, 1), 7, np.float32)
    wide = logits.astype(float)
    rig.run("cross_entropy_loss", [logits, sweep_losses], (0, rows, 0, vocab))
    for row in range(0, rows, 32):
        rig.run("cross_entropy", [logits, losses], (row, min(32, rows - row), 0, vocab))
    shifted = wide - wide.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    at = np.arange(counted), tokens[1:]
    expected = np.zeros(rows)
    expected[:counted] = -log_p[at]
    gradient = np.exp(log_p)
    gradient[at] -= 1
    gradient[counted:] = 0
    assert np.array_equal(losses, sweep_losses)
    assert np.abs(losses[:, 0] - expected).max() < 1e-4
    assert relative(logits, gradient / counted) < ERROR


@pytest.mark.parametrize("vocab", [2, 256, 320, 700])
def test_cross_entropy_from_statistics(kernel, vocab):
    """The same losses and gradients as in three passes over the logits, from pairs of any column tile."""
    rng = np.random.default_rng(vocab)
    model = ModelConfig(1, 48, 2, 96, 40, vocab)
    rig, rows = TaskRig(kernel, model, 3, rng.integers(0, vocab, 101)), 120
    logits = matrix(rng, rows, vocab) * np.float32(10)
    logits[5] += 1000
    tiles = [logits[:, first : first + 256] for first in range(0, vocab, 256)]
    pairs = [(tile.max(axis=1), np.exp(tile - tile.max(axis=1, keepdims=True)).sum(axis=1)) for tile in tiles]
    statistics = np.stack([part for pair in pairs for part in pair], axis=1).astype(np.float32)
    losses, sweep_losses, expected = (np.full((rows, 1), 7, np.float32) for _ in range(3))
    in_three_passes = logits.copy()
    rig.run("cross_entropy", [in_three_passes, expected], (0, rows, 0, vocab))
    rig.run("cross_entropy_loss_statistics", [logits, statistics, sweep_losses], (0, rows, 0, vocab))
    for row in range(0, rows, 32):
        rig.run("cross_entropy_statistics", [logits, statistics, losses], (row, min(32, rows - row), 0, vocab))
    assert np.array_equal(losses, sweep_losses)
    assert np.abs(losses - expected).max() < 1e-4
    assert relative(logits, in_three_passes) < ERROR
