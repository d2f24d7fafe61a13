"""Stories, prompts, sampling and the weight version of each token."""

import itertools

import numpy as np
import pytest
from engine_runs import TARGETS, config, engine, wait_for
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.config import Sampling
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import sampling_event


def served(running, count):
    running.start()
    snapshots = wait_for(running, lambda s: s.tokens_served >= count)
    running.stop()
    snapshots.append(running.poll())
    return [token for s in snapshots for token in s.served], [a for s in snapshots for a in s.applied]


@pytest.mark.parametrize("target", TARGETS)
def test_stories_positions_and_versions_follow_on(kernel, target):
    """Every token is logged once; a story ends at the end-of-text token or with the context, then a new one begins."""
    running = engine(kernel, config(steps=100_000, sms=(2, 1, 0), jitter_seed=3, prompt="abcdefgh"), target)
    tokens, _ = served(running, 120)
    context = running.info.context
    assert [token.index for token in tokens] == list(range(len(tokens)))
    assert "".join(token.text for token in tokens[:8]) == "abcdefgh"
    assert [token.from_prompt for token in tokens[:9]] == [True] * 8 + [False]
    for before, after in itertools.pairwise(tokens):
        ended = before.token == 256 or before.position == context - 1
        assert after.first == ended and after.story == before.story + ended
        assert after.position == (0 if ended else before.position + 1)
        assert after.version >= before.version and after.seconds >= before.seconds
    assert tokens[-1].version > tokens[0].version
    assert max(token.token for token in tokens) < 257, "padding ids were sampled"


@pytest.mark.parametrize("target", TARGETS)
def test_tokens_repeat_with_the_seed_and_change_with_it(kernel, target):
    """On weights that stand still (a learning rate of 0) the tokens are a function of the sampling seed."""

    def story(seed: int, sms: tuple[int, int, int]) -> list[int]:
        events = (sampling_event(1.0, 0.9, 50, seed), Event("prompt", "token", text="ab"))
        running = engine(kernel, config(steps=100_000, learning_rate=0.0, sms=sms, events=events), target)
        tokens, _ = served(running, 40)
        return [token.token for token in tokens[:40]]

    one = story(5, (1, 1, 0))
    assert one[:2] == [97, 98]
    assert story(5, (1, 3, 0)) == one
    assert story(6, (1, 1, 0)) != one


@pytest.mark.parametrize("target", TARGETS)
def test_a_live_prompt_is_read_whole_and_reported(kernel, target):
    running = engine(kernel, config(steps=100_000, sms=(1, 1, 0)), target)
    running.start()
    wait_for(running, lambda s: s.tokens_served >= 5)
    running.post(Event("prompt", "token", text="hello"))
    snapshots = wait_for(running, lambda s: bool(s.applied))
    at = snapshots[-1].applied[0].at
    snapshots += wait_for(running, lambda s: s.tokens_served >= at + 8)
    running.stop()
    tokens = {token.index: token for s in snapshots for token in s.served}
    assert "".join(tokens[at + i].text for i in range(5)) == "hello"
    assert all(tokens[at + i].from_prompt == (i < 5) for i in range(6))
    assert tokens[at].first


@pytest.mark.parametrize("target", TARGETS)
def test_a_prompt_without_a_text_ends_a_story_and_the_prompt_that_is_being_read(kernel, target):
    """The story that follows is that of a fresh run: on weights that stand still, drawn greedily, the same tokens."""
    running = engine(kernel, config(steps=100_000, learning_rate=0.0, sms=(1, 1, 0), context=256), target)
    running.post(sampling_event(0.0, 1.0, 0, 1))
    running.post(Event("prompt", "token", text="x" * 200))
    running.post(Event("prompt", "token", when=50))
    running.post(Event("prompt", "token", when=70))
    tokens, applied = served(running, 100)
    first = -(-50 // abi.PASS_ROWS) * abi.PASS_ROWS
    assert [entry.at for entry in applied] == [0, 0, first, 70], "the first passes are full of the prompt"
    assert [token.from_prompt for token in tokens[:90]] == [True] * first + [False] * (90 - first)
    assert [token.index for token in tokens[:90] if token.first] == [0, first, 70]
    assert [tokens[at].story for at in (first - 1, first, 69, 70)] == [0, 1, 1, 2]
    told = 70 - first
    assert [token.token for token in tokens[first:70]] == [token.token for token in tokens[70 : 70 + told]]


@pytest.fixture(scope="module")
def sampler(kernel):
    """A run whose sample task is called by hand with logits of our own."""
    running = engine(kernel, config(vocab=320, sms=(1, 1, 0)))
    memory = running.memory
    program = abi.PROGRAMS.index("decode")
    task = len(memory.programs.programs["decode"].tasks) - 1

    def draw(logits: np.ndarray, sampling: Sampling, draws: int = 1, seed: int = 1) -> list[int]:
        serve = memory["serve"][0]
        serve["vocab_used"], serve["n_rows"], serve["tokens"] = len(logits), 1, 0
        serve["rows"]["prompt_token"][0] = -1
        stream = serve["streams"][0]
        stream["temperature"], stream["top_k"], stream["top_p"] = sampling.temperature, sampling.top_k, sampling.top_p
        stream["random_seed"], stream["tokens"] = seed, 0
        buffer = memory.buffer("decode.logits")[0, 0]
        buffer[:] = 50.0  # what lies beyond the tokenizer's ids must not count
        buffer[: len(logits)] = logits
        chosen = []
        for index in range(draws):
            serve["pin"], stream["position"] = 0, 0
            kernel.run_task(memory["launch"].ctypes.data, program, index, task)
            assert int(serve["pin"]) == abi.NONE_U64
            chosen.append(int(memory["served"][index % abi.SERVED_RING]["token"]))
        return chosen

    return draw


@settings(max_examples=60, deadline=None)
@given(
    logits=st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=300),
    temperature=st.floats(0.1, 3), top_k=st.integers(0, 40), top_p=st.floats(0.05, 1), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_a_sample_is_among_the_likeliest(sampler, logits, temperature, top_k, top_p, seed):
    """Each id drawn is one of the k likeliest (ties stay) and belongs to the smallest set that makes up p."""
    values = np.array(logits, np.float32)
    assert sampler(values, Sampling(0.0)) == [int(np.argmax(values))]
    chosen = sampler(values, Sampling(temperature, top_k, top_p), draws=8, seed=seed)
    assert all(0 <= token < len(values) for token in chosen)
    weights = np.exp((values.astype(np.float64) - values.max()) / temperature)
    order = np.sort(weights)[::-1]
    kth = order[top_k - 1] if 0 < top_k < len(order) else 0.0
    kept = order[order >= kth * (1 - 1e-4)]
    likelier = np.concatenate([[0.0], np.cumsum(kept)])
    for token in chosen:
        assert weights[token] >= kth * (1 - 1e-4)
        above = likelier[int(np.sum(kept > weights[token] * (1 + 1e-4)))]
        assert above <= top_p * kept.sum() * (1 + 1e-4), "enough likelier ids made up p without this one"


def test_samples_follow_the_softmax(sampler):
    """Frequencies of 4,000 draws against the probabilities: a chi-square of 5 degrees of freedom."""
    logits = np.array([0.0, 1.0, -1.0, 2.0, 0.5, 1.5], np.float32)
    counts = np.bincount(sampler(logits, Sampling(0.7, 0, 1.0), draws=4000), minlength=6)
    p = np.exp(logits / 0.7)
    expected = 4000 * p / p.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # one in a thousand
