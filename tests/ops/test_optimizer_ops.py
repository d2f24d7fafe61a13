"""AdamW on a tile and on a gain, over steps in the warm-up and after it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from task_rig import TaskRig, matrix, relative

from ofa_tui.engine.layouts import to_stream
from ofa_tui.presets import TrainConfig
from ofa_tui.program.ops import ADAMW_DECAY

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))
import reference

ERROR = 2e-6
TRAIN = TrainConfig(batch=3, steps=90, learning_rate=3e-3, warmup_steps=20, weight_decay=0.3)


@pytest.mark.parametrize("flags, name", [(ADAMW_DECAY, "matrix"), (0, "norm")])
@pytest.mark.parametrize("step", [0, 3, 19, 20, 89])
def test_adamw(kernel, flags, name, step):
    rng = np.random.default_rng(step)
    rig = TaskRig(kernel)
    rig.set_optimizer(TRAIN)
    grad, p, m, v = (matrix(rng, 9, 37) for _ in range(4))
    np.abs(v, out=v)
    wide = [{name: array.astype(float)} for array in (p, grad, m, v)]
    expected = [part[name] for part in reference.adamw_step(*wide, step, TRAIN)]
    before, p_next = m.copy(), np.full_like(p, 7)
    rig.run("adamw", [grad, p, p_next, m, v], (2, 6, 0, 37), flags, step)
    for measured, wanted in zip((p_next, m, v), expected, strict=True):
        assert relative(measured[2:8], wanted[2:8]) < ERROR
    assert relative(p_next[2:8] - p[2:8], expected[0][2:8] - p[2:8]) < 1e-4
    assert np.all(p_next[:2] == 7) and np.array_equal(m[8:], before[8:])


@pytest.mark.parametrize("rows, cols", [(16, 16), (48, 80), (144, 272)])
def test_gradient_and_update_in_one(kernel, rows, cols):
    """matmul_dw_adamw has the bits of matmul_dw and adamw, and writes the next weights in stream order too."""
    rng = np.random.default_rng(rows)
    rig = TaskRig(kernel)
    rig.set_optimizer(TRAIN)
    dy, x = matrix(rng, 70, rows), matrix(rng, 70, cols)
    p, m, v, grad, p_next, w = (matrix(rng, rows, cols) for _ in range(6))
    np.abs(v, out=v)
    master, m_fused, v_fused, stream = p.copy(), m.copy(), v.copy(), np.zeros((rows, cols), np.float32)
    tiles = [(row, min(128, rows - row), col, min(256, cols - col))
             for row in range(0, rows, 128) for col in range(0, cols, 256)]
    for tile in tiles:
        rig.run("matmul_dw", [dy, x, grad], tile)
        rig.run("adamw", [grad, p, p_next, m, v], tile, ADAMW_DECAY, 3)
        rig.run("matmul_dw_adamw", [dy, x, master, m_fused, v_fused, w, stream], tile, ADAMW_DECAY, 3)
    for fused, separate in ((master, p_next), (w, p_next), (m_fused, m), (v_fused, v)):
        assert relative(fused, separate) < 1e-6
    assert np.array_equal(master, w)
    assert np.array_equal(stream, to_stream(w))


def test_stream_order_is_that_of_matrix_instructions():
    """Lane l of the warp that holds block (i, j) has the eight elements that mma.m16n8k16 asks of it."""
    matrix = np.arange(48 * 32).reshape(48, 32)
    lanes = to_stream(matrix).reshape(3, 2, 32, 8)
    for i, j, lane in np.ndindex(3, 2, 32):
        row, col = 16 * i + lane // 4, 16 * j + 2 * (lane % 4)
        expected = [matrix[row + r, col + c + e] for c in (0, 8) for r in (0, 8) for e in (0, 1)]
        assert lanes[i, j, lane].tolist() == expected


@pytest.mark.parametrize("scratch_rows", [1, 7, 1000])
def test_update_of_the_token_table(kernel, scratch_rows):
    """embed_adamw is embed_backward and adamw, also where scratch memory holds few rows of gradients at a time."""
    rng = np.random.default_rng(scratch_rows)
    rig = TaskRig(kernel, tokens=rng.integers(0, 20, 121))
    rig.set_optimizer(TRAIN)
    width = rig.model.width
    rig.launch["scratch_bytes"] = min(int(rig.launch["scratch_bytes"][0]), scratch_rows * width * 4 + 3)
    dx = matrix(rng, 120, width)
    p, m, v, grad, p_next, table = (matrix(rng, 61, width) for _ in range(6))
    np.abs(v, out=v)
    master, m_fused, v_fused = p.copy(), m.copy(), v.copy()
    for row in range(0, 61, 32):
        tile = row, min(32, 61 - row), 0, width
        rig.run("embed_backward", [dx, grad], tile)
        rig.run("adamw", [grad, p, p_next, m, v], tile, ADAMW_DECAY)
        rig.run("embed_adamw", [dx, master, m_fused, v_fused, table], tile, ADAMW_DECAY)
    assert np.all(grad[20:] == 0)
    for fused, separate in ((master, p_next), (table, p_next), (m_fused, m), (v_fused, v)):
        assert relative(fused, separate) < 1e-6


def test_gain_sums_its_parts_in_order(kernel):
    rng = np.random.default_rng(1)
    rig = TaskRig(kernel)
    rig.set_optimizer(TRAIN)
    parts = matrix(rng, 5, 37)
    p, m, v = (matrix(rng, 1, 37) for _ in range(3))
    np.abs(v, out=v)
    in_order = parts[0].copy()
    for part in parts[1:]:
        in_order += part
    wide = [{"norm": array.astype(float)} for array in (p, in_order[None], m, v)]
    expected = reference.adamw_step(*wide, 5, TRAIN)[0]["norm"]
    p_next, grad = np.zeros_like(p), np.zeros_like(p)
    rig.run("adamw_gain", [parts, p, p_next, m, v, grad], (0, 1, 0, 37), step=5)
    assert np.array_equal(grad[0], in_order)
    assert relative(p_next, expected) < ERROR
