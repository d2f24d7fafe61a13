"""The oracle itself: its gradients against finite differences, its model against plain facts."""

import math

import numpy as np
import pytest

from ofa_tui.presets import ModelConfig, TrainConfig, preset
from tests.oracle import reference

MODEL = ModelConfig(layers=2, width=12, heads=2, feed_forward=20, context=7, vocab=11)


@pytest.fixture
def batch():
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, MODEL.vocab, (3, MODEL.context))
    targets = rng.integers(0, MODEL.vocab, (3, MODEL.context))
    targets[2, 4:] = -1
    return tokens, targets


@pytest.mark.parametrize("name", sorted(reference.parameter_shapes(MODEL)))
def test_gradient_is_the_slope_of_the_loss(name, batch):
    params = reference.random_parameters(MODEL, seed=2, std=0.4)
    _, gradients = reference.loss_and_gradients(params, *batch, MODEL)
    rng = np.random.default_rng(3)
    for _ in range(3):
        direction = rng.standard_normal(params[name].shape)
        step = 1e-5
        above, below = ({**params, name: params[name] + sign * step * direction} for sign in (1, -1))
        slope = (reference.loss_and_gradients(above, *batch, MODEL)[0]
                 - reference.loss_and_gradients(below, *batch, MODEL)[0]) / (2 * step)
        assert slope == pytest.approx((gradients[name] * direction).sum(), rel=1e-6, abs=1e-9)


def test_attention_looks_only_back_and_only_at_distances():
    params = reference.random_parameters(MODEL, seed=4, std=0.4)
    tokens = np.random.default_rng(5).integers(0, MODEL.vocab, (1, MODEL.context))
    changed = tokens.copy()
    changed[0, 4] = (changed[0, 4] + 1) % MODEL.vocab
    before, after = (reference.logits(params, t, MODEL)[0] for t in (tokens, changed))
    np.testing.assert_array_equal(before[:4], after[:4])
    assert np.abs(before[4:] - after[4:]).min() > 0
    same = reference.logits(params, np.full((1, MODEL.context), 3), MODEL)[0]
    np.testing.assert_allclose(same, np.broadcast_to(same[0], same.shape), atol=1e-12)


def test_uncounted_targets_change_nothing(batch):
    params = reference.random_parameters(MODEL, seed=6)
    tokens, targets = batch
    loss, _ = reference.loss_and_gradients(params, tokens, targets, MODEL)
    rows = [reference.loss_and_gradients(params, tokens[b : b + 1], targets[b : b + 1], MODEL)[0] for b in range(3)]
    counts = (targets >= 0).sum(axis=1)
    assert loss == pytest.approx(np.dot(rows, counts) / counts.sum(), rel=1e-12)
    assert loss == pytest.approx(math.log(MODEL.vocab), rel=0.02)


def test_learning_rate_follows_the_published_line():
    train = preset("model-s").train
    for t in (0, 1, 199, 200, 2000, 3999):
        expected = 6e-4 * min(1, (t + 1) / 200) * (0.1 + 0.45 * (1 + math.cos(math.pi * t / 4000)))
        assert reference.learning_rate(t, train) == pytest.approx(expected, rel=1e-12)


def test_first_adamw_update_is_the_sign_of_the_gradient_and_decay(batch):
    train = TrainConfig(batch=3, steps=10, learning_rate=0.01, warmup_steps=0, epsilon=0.0, weight_decay=0.5)
    params = reference.random_parameters(MODEL, seed=7)
    _, gradients = reference.loss_and_gradients(params, *batch, MODEL)
    zeros = reference.zeros_like(params)
    with np.errstate(invalid="ignore"):
        after, _, _ = reference.adamw_step(params, gradients, zeros, zeros, 0, train)
    head, gain = params["head"], params["norm"]
    np.testing.assert_allclose(after["head"], head - 0.01 * (np.sign(gradients["head"]) + 0.5 * head), rtol=1e-9)
    np.testing.assert_allclose(after["norm"], gain - 0.01 * np.sign(gradients["norm"]), rtol=1e-9)
