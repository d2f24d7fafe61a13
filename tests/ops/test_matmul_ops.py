"""The matrix products against float64, for shapes that no model has."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from task_rig import TaskRig, matrix

ERROR = 1e-5
sizes = st.integers(1, 70)


@pytest.fixture(scope="module")
def rig(kernel):
    return TaskRig(kernel)


def gelu(u):
    return 0.5 * u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3)))


def gelu_slope(u):
    h = 1e-5
    return (gelu(u + h) - gelu(u - h)) / (2 * h)


def check(out, tile, expected, scale):
    """`out`, all 7 before, holds `expected` in the tile and nothing new around it; `scale` is that of the sums."""
    row, rows, col, cols = tile
    inside = np.zeros(out.shape, bool)
    inside[row : row + rows, col : col + cols] = True
    assert np.abs(out - expected)[inside].max() < ERROR * scale
    assert np.all(out[~inside] == 7)


@settings(max_examples=60, deadline=None)
@given(m=sizes, n=sizes, k=st.integers(1, 600), before=st.integers(0, 9), after=st.integers(0, 9),
       seed=st.integers(0, 99))
@example(m=300, n=290, k=270, before=5, after=3, seed=0)
@example(m=513, n=33, k=257, before=0, after=0, seed=0)
def test_products_of_any_shape(rig, m, n, k, before, after, seed):
    """A tile of m x n in the middle of its output, from factors with odd pitches."""
    rng = np.random.default_rng(seed)
    rows, cols = before + m + after, after + n + before
    tile = (before, m, after, n)
    x, w, w_t, x_t = matrix(rng, rows, k), matrix(rng, cols, k), matrix(rng, k, cols), matrix(rng, k, rows)
    skip = matrix(rng, rows, cols)
    y, u, a = (np.full((rows, cols + 1), 7, np.float32)[:, :cols] for _ in range(3))
    product, scale = x.astype(float) @ w.T, k**0.5
    rig.run("matmul", [x, w, y], tile)
    check(y, tile, product, scale)
    y[:] = 7
    rig.run("matmul_residual", [x, w, skip, y], tile)
    check(y, tile, product + skip, scale)
    rig.run("matmul_gelu", [x, w, u, a], tile)
    check(u, tile, product, scale)
    check(a, tile, gelu(product), scale)
    y[:] = 7
    rig.run("matmul_dx", [x, w_t, y], tile)
    check(y, tile, x.astype(float) @ w_t, scale)
    y[:] = 7
    rig.run("matmul_dx_gelu", [x, w_t, skip, y], tile)
    check(y, tile, (x.astype(float) @ w_t) * gelu_slope(skip.astype(float)), scale)
    y[:] = 7
    rig.run("matmul_dw", [x_t, w_t, y], tile)
    check(y, tile, x_t.T.astype(float) @ w_t, scale)


@settings(max_examples=30, deadline=None)
@given(rows=sizes, cols=st.integers(1, 300), k=st.integers(1, 90), before=st.integers(0, 9), tile=st.integers(0, 2),
       seed=st.integers(0, 99))
def test_statistics_of_a_product(rig, rows, cols, k, before, tile, seed):
    """Each row's largest output of the tile and the sum of exp(output - largest), beside those of other tiles."""
    rng = np.random.default_rng(seed)
    col = 256 * tile
    cols = min(cols, 256)
    x, w = matrix(rng, before + rows, k), matrix(rng, col + cols, k)
    y = np.full((before + rows, col + cols), 7, np.float32)
    statistics = np.full((before + rows, 8), 7, np.float32)
    area = before, rows, col, cols
    rig.run("matmul_statistics", [x, w, y, statistics], area)
    check(y, area, x.astype(float) @ w.T, k**0.5)
    written = y[before:, col:].astype(float)
    largest = written.max(axis=1)
    expected = np.stack([largest, np.exp(written - largest[:, None]).sum(axis=1)], axis=1)
    check(statistics, (before, rows, 2 * tile, 2), np.pad(expected, ((before, 0), (2 * tile, 6 - 2 * tile))), cols**0.5)


@pytest.mark.parametrize("op, x_shape, w_shape", [
    ("matmul", (100, 333), (90, 333)),
    ("matmul_dx", (100, 333), (333, 90)),
    ("matmul_dw", (333, 100), (333, 90)),
])
def test_bits_do_not_depend_on_the_tile(rig, op, x_shape, w_shape):
    """Every output is one chain of multiply-adds over k, whatever is computed beside it."""
    rng = np.random.default_rng(3)
    x, w = matrix(rng, *x_shape), matrix(rng, *w_shape)
    whole, parts = np.zeros((100, 90), np.float32), np.zeros((100, 90), np.float32)
    rig.run(op, [x, w, whole], (0, 100, 0, 90))
    for row in range(0, 100, 23):
        for col in range(0, 90, 37):
            rig.run(op, [x, w, parts], (row, min(23, 100 - row), col, min(37, 90 - col)))
    assert np.array_equal(whole, parts)
