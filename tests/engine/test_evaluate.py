"""Evaluating a checkpoint and sweeping inside a run are the same number."""

import math

import numpy as np
import pytest
from engine_runs import TARGETS, config, engine, finish, start_slowly, text_tokens, wait_for

from ofa_tui.checkpoint.checkpoint import Checkpoint, Described, Identity, tensors_of
from ofa_tui.checkpoint.evaluate import Measured, count_bytes, evaluate
from ofa_tui.checkpoint.tensors import write_tensors
from ofa_tui.data.tokenizers import ByteTokenizer, train_bpe
from ofa_tui.errors import OfaError

EVERY_BATCH = 1000


def saved(state, run, target, path) -> Checkpoint:
    write_tensors(path, *tensors_of(state, Described(Identity.of(run, target, "f4"), run.train, run.tokenizer, {})))
    return Checkpoint(path)


@pytest.mark.parametrize("target", TARGETS)
def test_a_checkpoint_measures_as_the_run_did(kernel, tmp_path, target):
    """The sweep over all windows after step 2, and the last one: bit for bit on the same programs, else closely."""
    run = config(steps=4, sweep_every=2, sweep_batches=EVERY_BATCH, sms=(2, 1, 0), copies_state=True)
    running = engine(kernel, run, target)
    start_slowly(running)
    checkpoints = [saved(running.capture(2).state, run, target, tmp_path / "two")]
    snapshots = wait_for(running, lambda s: s.state == "finished")
    running.stop()
    sweeps = {sweep.step: sweep for snapshot in snapshots for sweep in snapshot.sweeps}
    checkpoints.append(saved(running.settled_state(), run, target, tmp_path / "four"))
    batches = []

    def on_batch(done: int, of: int) -> None:
        batches.append((done, of))

    for checkpoint, threads in zip(checkpoints, (1, 3), strict=True):
        measured = evaluate(checkpoint, run.valid_tokens, kernel, threads, on_batch)
        expected = sweeps[checkpoint.step]
        assert measured.step == checkpoint.step and measured.tokens == expected.tokens == len(run.valid_tokens) - 1
        assert measured.loss == (expected.loss if target == "host" else pytest.approx(expected.loss, abs=1e-6))
    assert all(0 <= done <= of == 3 for done, of in batches)


def test_the_mean_counts_every_token_once(kernel, tmp_path):
    """Against the run's sweep of each window alone: whole windows, and a last one that is shorter."""
    run = config(steps=1, sweep_every=0, batch=1)
    running = engine(kernel, run)
    finish(running)
    checkpoint = saved(running.settled_state(), run, "host", tmp_path / "one")
    tokens, context = text_tokens(24 * 3 + 8, 5), run.model.context
    parts = [tokens[first : first + context + 1] for first in range(0, len(tokens) - 1, context)]
    each = [evaluate(checkpoint, part, kernel, 2) for part in parts]
    whole = evaluate(checkpoint, tokens, kernel, 2)
    assert [one.tokens for one in each] == [24, 24, 24, 7] and whole.tokens == 79
    assert whole.loss == pytest.approx(sum(one.loss * one.tokens for one in each) / 79, rel=1e-12)
    with pytest.raises(OfaError, match="fewer than two tokens"):
        evaluate(checkpoint, tokens[:1], kernel, 1)


def test_bytes_are_those_of_the_text():
    text = "once there was a fox, naïve as ever"
    for tokenizer in (ByteTokenizer(), train_bpe(300, [text * 50])):
        tokens = tokenizer.encode_documents([text, text])
        assert count_bytes(tokenizer, tokens) == 2 * len(text.encode())
    assert Measured(1, math.log(2), 8, 4).bits_per_byte == pytest.approx(2.0)
    assert count_bytes(ByteTokenizer(), np.array([256, 256])) == 0 and Measured(1, 1.0, 2, 0).bits_per_byte is None
