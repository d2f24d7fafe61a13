"""The kernel's numbers against a float64 reference that shares no code with it."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine_runs import TARGETS, config, engine, finish, text_tokens

from ofa_tui import abi

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))
import reference


def relative(measured: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference over the norm of what is expected."""
    return float(np.linalg.norm(measured - expected) / np.linalg.norm(expected))


def with_uneven_gains(running):
    """Gains that are not 1, so that one that is ignored shows."""
    rng = np.random.default_rng(5)
    for name in running.memory.programs.parameters:
        if "norm" in name:
            gain = running.memory.buffer(name)[0]
            gain[:] = 1 + 0.1 * rng.standard_normal(gain.shape)
    return {name: array.astype(np.float64) for name, array in running.memory.weights(0).items()}


@pytest.mark.parametrize("target", TARGETS)
def test_three_steps_equal_the_reference(kernel, target):
    """Loss, every gradient that is stored and every updated parameter of three steps, within 1e-4 relative norm."""
    params = m = v = None
    for steps in (1, 2, 3):
        run = config(valid_tokens=np.zeros(0, np.int32), sms=(2, 0, 0))
        schedule = replace(run.train, steps=steps)
        running = engine(kernel, replace(run, train=schedule), target)
        # The rate follows the length of the whole run: that of three steps, whichever prefix is run.
        running.memory["launch"]["optimizer"]["total_steps"] = 3
        train = replace(run.train, steps=3)
        if params is None:
            params = with_uneven_gains(running)
            m, v = reference.zeros_like(params), reference.zeros_like(params)
        else:
            with_uneven_gains(running)
        finish(running)

        step = steps - 1
        starts = running.memory["train_windows"][step][:, None] + np.arange(run.model.context)
        tokens, targets = run.train_tokens[starts], run.train_tokens[starts + 1]
        loss, grads = reference.loss_and_gradients(params, tokens, targets, run.model)
        assert running.memory["losses"][step] == pytest.approx(loss, rel=1e-4)
        for name, grad in grads.items():
            if f"{name}.grad" in running.memory.programs.buffers:
                measured = running.memory.buffer(f"{name}.grad")[0]
                assert relative(measured, grad) < 1e-4, f"gradient of {name}, step {step}"
        params, m, v = reference.adamw_step(params, grads, m, v, step, train)
        weights = running.weights()
        for name, expected in params.items():
            assert relative(weights[name], expected) < 1e-4, f"{name} after step {step}"


@pytest.mark.parametrize(("target", "shape"), [
    ("host", {}), ("sm90", {}), ("sm90", {"width": 128, "feed_forward": 256, "layers": 3}),
], ids=["host", "sm90", "sm90, heads of two units"])  # fmt: skip
def test_decode_logits_equal_the_training_forward(kernel, target, shape):
    """A pass after the other with the cache, and all at once in a held-out batch: the same logits within 1e-4."""
    context = 24
    tokens = text_tokens(context + 1, seed=3)
    tokens[0] = 256  # a story begins with the end-of-text token
    run = config(batch=1, steps=2, learning_rate=3e-2, valid_tokens=tokens, sms=(2, 0, 0), **shape)
    running = engine(kernel, run, target)
    with_uneven_gains(running)
    finish(running)
    memory = running.memory
    forward = memory.buffer("logits")[0].copy()

    stream = memory["serve"]["streams"][0, 0]
    stream["prompt_slot"], stream["prompt_length"] = 0, context
    memory["prompts"][0] = tokens[1:]
    memory["control"]["stop"] = 0
    decode = abi.PROGRAMS.index("decode")
    launch = memory["launch"].ctypes.data
    for number, first in enumerate(range(0, context, abi.PASS_ROWS)):
        for task in range(len(running.memory.programs.programs["decode"].tasks)):
            kernel.run_task(launch, decode, number, task)
        for row, logits in enumerate(memory.buffer("decode.logits")[0]):
            assert relative(logits, forward[first + row]) < 1e-4, f"position {first + row}"
    served = memory["served"][:context]
    assert served["token"].tolist() == tokens[1:].tolist()
    assert (served["version"] == 2).all() and (served["flags"] & abi.SERVED_PROMPT).all()


def test_held_out_loss_counts_every_token_once(kernel):
    """The last sweep, with a short last window and empty rows, equals the reference on the trained weights."""
    run = config(steps=2, valid_tokens=text_tokens(24 * 4 + 9, seed=2))
    running = engine(kernel, run)
    sweeps = [sweep for snapshot in finish(running) for sweep in snapshot.sweeps]
    assert [sweep.complete for sweep in sweeps] == [True]
    weights = {name: array.astype(np.float64) for name, array in running.weights().items()}
    total, count = 0.0, 0
    for start in range(0, len(run.valid_tokens) - 1, run.model.context):
        window = run.valid_tokens[start : start + run.model.context + 1]
        loss, _ = reference.loss_and_gradients(weights, window[None, :-1], window[None, 1:], run.model)
        total, count = total + loss * (len(window) - 1), count + len(window) - 1
    assert sweeps[0].tokens == count == len(run.valid_tokens) - 1
    assert sweeps[0].loss == pytest.approx(total / count, rel=1e-4)
