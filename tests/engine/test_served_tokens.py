"""Tokens that are served while the weights change are those of the version they are logged with."""

from dataclasses import replace

import numpy as np
import pytest
from engine_runs import TARGETS, config, engine, wait_for
from test_checkpoint_state import frozen, going_on

from ofa_tui import abi
from ofa_tui.engine.config import Sampling, StreamState
from ofa_tui.engine.protocol import Event, ServedToken
from tests.oracle import reference

FEW = 6
"""Tokens of a stream that have to be logged with the checkpoint's version."""


class Told:
    """A stream's story, told on by the oracle from where a checkpoint left it."""

    def __init__(self, state: StreamState, end_of_text: int, weights: dict[str, np.ndarray], model) -> None:
        self._state, self._weights, self._model = state, weights, model
        self._keys, self._values = ({name: array.astype(np.float64) for name, array in cache.items()}
                                    for cache in (state.keys, state.values))
        self._input = int(state.tokens[-1]) if len(state.tokens) else end_of_text
        self._prompt, self._drawn = state.prompt.tolist(), state.token
        self.logits: list[np.ndarray] = []

    def next_token(self, ids: int) -> int:
        logits = reference.decode(self._weights, self._input, self._keys, self._values, self._model)
        self.logits.append(logits)
        weights = np.exp((logits[:ids] - logits[:ids].max()) / self._state.sampling.temperature)
        drawn = int(np.searchsorted(np.cumsum(weights), weights.sum() * reference.random_unit(
            self._state.seed, self._drawn), side="right"))
        self._input = self._prompt.pop(0) if self._prompt else drawn
        self._drawn += 1
        return self._input


def of_version(tokens: list[ServedToken], state, version: int) -> dict[int, list[ServedToken]]:
    """By stream, the tokens of the stories that a checkpoint has, from there on, logged with its version."""
    stories = {number: stream.story for number, stream in enumerate(state.serving.streams)}
    return {number: [token for token in tokens if token.stream == number and token.story == story
                     and token.version == version and token.index >= state.serving.token]
            for number, story in stories.items()}


@pytest.mark.parametrize("target", TARGETS)
def test_tokens_of_a_checkpoints_version_are_told_again(kernel, target):
    """By the oracle, with the cache whose rows older versions have made, and by a run that goes on from it."""
    run = config(steps=100_000, batch=24, sms=(1, 2, 0), streams=2, sampling=Sampling(1.0, 0, 1.0), copies_state=True,
                 init_std=0.3, events=(Event("prompt", "token", 40, target=1, text="the fox and the"),))
    running = engine(kernel, run, target)
    running.start()
    tokens: list[ServedToken] = []
    for step in range(4, 400, 3):  # until one is copied when a step leaves time for a few tokens
        state = frozen(running.capture(step).state)
        snapshots = wait_for(running, lambda s, version=state.step: s.version > version)
        tokens += [token for snapshot in snapshots for token in snapshot.served]
        told = of_version(tokens, state, state.step)
        older = [stream for stream in state.serving.streams if len(set(stream.versions.tolist())) > 1]
        if older and all(len(own) >= FEW for own in told.values()):
            break
    else:
        pytest.fail("no version was served long enough")
    running.stop()

    model, ids, end = run.model, run.tokenizer.size, run.tokenizer.end_of_text
    oracle = [Told(stream, end, state.train.weights, model) for stream in state.serving.streams]
    for number, own in told.items():
        assert [oracle[number].next_token(ids) for _ in own] == [token.token for token in own], number

    again = engine(kernel, replace(going_on(run, state), events=()), target)
    memory, program = again.memory, abi.PROGRAMS.index("decode")
    seen = [0, 0]
    for number in range(min(map(len, told.values()))):
        for task in range(len(memory.programs.programs["decode"].tasks)):
            kernel.run_task(memory["launch"].ctypes.data, program, run.first_token + state.serving.token + number, task)
        serve = memory["serve"][0]
        for row in range(int(serve["n_rows"])):
            stream = int(serve["rows"][row]["stream"])
            if seen[stream] < len(oracle[stream].logits):
                wanted = oracle[stream].logits[seen[stream]]
                error = np.linalg.norm(memory.buffer("decode.logits")[0, row] - wanted) / np.linalg.norm(wanted)
                assert error < 1e-4, (stream, seen[stream])
            seen[stream] += 1
    assert min(seen) >= FEW
