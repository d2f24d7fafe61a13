"""AdamW on a tile and on a gain, over steps in the warm-up and after it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from task_rig import TaskRig, matrix, relative

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
