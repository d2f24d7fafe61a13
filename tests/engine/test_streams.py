"""Several stories at once: none of them knows of the others, whoever serves, and prompts are read in chunks."""

import random

import pytest
from engine_runs import TARGETS, config, engine, wait_for

from ofa_tui import abi
from ofa_tui.engine.config import Sampling
from ofa_tui.engine.protocol import Event, ServedToken
from ofa_tui.engine.steering import sampling_event

STREAMS, EACH = 4, 60
PROMPTS = ("abcdefghijklmnop", "b", "zzyyxxww", "the fox")


def still(**changes):
    """Weights that stand still, and are far enough from 0 for texts to differ."""
    return config(steps=100_000, learning_rate=0.0, init_std=0.3, sweep_every=0, **changes)


def served_by(running, done) -> list[ServedToken]:
    running.start()
    snapshots = wait_for(running, done)
    running.stop()
    snapshots.append(running.poll())
    assert snapshots[-1].state == "stopped", snapshots[-1].message
    tokens = [token for s in snapshots for token in s.served]
    assert [token.index for token in tokens] == list(range(len(tokens)))
    return tokens


def told(token: ServedToken) -> tuple[int, int, bool, bool]:
    return token.token, token.position, token.from_prompt, token.first


@pytest.mark.parametrize("target", TARGETS)
def test_each_stream_tells_what_it_would_tell_alone(kernel, target):
    events = [(sampling_event(0.9, 0.95, 40, 10 + number, stream=number),
               Event("prompt", "token", target=number, text=prompt)) for number, prompt in enumerate(PROMPTS)]
    alone = []
    for number, prompt in enumerate(PROMPTS):
        one = engine(kernel, still(sms=(1, 1, 0), sampling=Sampling(0.9, 40, 0.95), prompt=prompt), target)
        one.memory["serve"]["streams"]["random_seed"][0, 0] = 10 + number + (number << 32)
        alone.append(served_by(one, lambda s: s.tokens_served >= EACH))
    assert len({tuple(map(told, tokens[:EACH])) for tokens in alone}) == STREAMS
    for serving, jitter in ((1, 0), (3, 7)):
        run = still(sms=(1, serving, 0), streams=STREAMS, jitter_seed=jitter,
                    events=tuple(event for both in events for event in both))
        tokens = served_by(engine(kernel, run, target), lambda s: s.tokens_served >= STREAMS * EACH + 20)
        for number in range(STREAMS):
            own = [told(token) for token in tokens if token.stream == number]
            assert own[:EACH] == list(map(told, alone[number]))[: min(EACH, len(own))] and len(own) > EACH // 2
        stories = {token.story: token.stream for token in tokens}
        assert all(stories[token.story] == token.stream for token in tokens), "a story is of one stream"


@pytest.mark.parametrize("target", TARGETS)
def test_a_prompt_is_read_in_chunks_beside_a_story(kernel, target):
    """Of a pass's rows one goes to each stream that tells, the rest to who reads a prompt."""
    run = still(sms=(1, 1, 0), streams=2, telling=1, context=64, events=(
        Event("prompt", "token", target=1, text="x" * 40),))
    running = engine(kernel, run, target)
    tokens = served_by(running, lambda s: s.tokens_served >= 60)
    chunk = abi.PASS_ROWS - 1
    rows = [[0] + [1] * min(chunk, 41 - read) for read in range(0, 41, chunk)]
    expected = [stream for row in rows for stream in row]
    assert [token.stream for token in tokens[: len(expected)]] == expected
    assert sum(token.from_prompt for token in tokens) == 40
    assert [token.from_prompt for token in tokens if token.stream == 1][:41] == [True] * 40 + [False]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", [1, 2])
def test_streams_rest_until_a_prompt_comes_and_after_their_story(kernel, target, seed):
    """Prompts that come and are broken off at random: every story is the beginning of what its prompt alone gives."""
    rng = random.Random(seed)
    run = still(sms=(1, 2, 0), streams=3, telling=1, sampling=Sampling(0.0), jitter_seed=seed, events=tuple(
        Event(rng.choice(("prompt", "prompt", "end_story")), "token", when, rng.choice((1, 2)),
              text=rng.choice(PROMPTS))
        for when in sorted(rng.randrange(400) for _ in range(24))
    ))
    running = engine(kernel, run, target)
    tokens = served_by(running, lambda s: s.tokens_served >= 600)
    whole = {
        prompt: [token.token for token in served_by(engine(kernel, still(
            sms=(1, 1, 0), sampling=Sampling(0.0), prompt=prompt), target), lambda s: s.tokens_served >= 24)][:24]
        for prompt in ("", *PROMPTS)
    }
    stories: dict[int, list[ServedToken]] = {}
    for token in tokens:
        stories.setdefault(token.story, []).append(token)
    prompted = 0
    for story in stories.values():
        assert len({token.stream for token in story}) == 1
        assert [token.position for token in story] == list(range(len(story)))
        text = [token.token for token in story]
        match = [prompt for prompt, known in whole.items() if known[: len(text)] == text[: len(known)]]
        assert match, (story[0].stream, text)
        prompted += any(token.from_prompt for token in story)
        assert story[0].stream == 0 or story[0].from_prompt, "a stream that rests begins nothing by itself"
    assert prompted > 8
    assert tokens[-1].stream == 0, "after the last prompt's story the others rest"


def test_streams_are_checked(kernel):
    running = engine(kernel, config(streams=2, sms=(1, 1, 0)))
    for event, words in ((Event("prompt", "token", target=2, text="a"), "there is no stream 2"),
                         (Event("end_story", "token", target=-1), "there is no stream -1"),
                         (sampling_event(1.0, 1.0, 0, 1, stream=7), "there is no stream 7")):
        with pytest.raises(Exception, match=words):
            running.post(event)
