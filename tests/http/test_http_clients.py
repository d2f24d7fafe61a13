"""OpenAI's own client against a run on the host engine, checked with the run's log of served tokens.

Every answer must be the text of the one story that begins with its prompt: the log knows nothing of requests.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import openai
import pytest
from http_runs import OWN, Run, new_prompt, served_run, wait_until

from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import sampling_event
from ofa_tui.http.broker import WAITING
from tests.engine.engine_runs import TARGETS

MODEL = "small"
END_OF_TEXT = 256


def text_of(run: Run, prompt: str, count: int) -> str:
    """The first `count` sampled tokens of the prompt's story, all of them there."""
    wait_until(lambda: len(run.story_of(prompt)) >= count)
    return "".join(token.text for token in run.story_of(prompt)[:count])


def check(run: Run, prompt: str, answer: openai.types.Completion, max_tokens: int) -> None:
    """Text, reason, counts and weights of an answer without stop texts are those of its story."""
    (choice,), usage = answer.choices, answer.usage
    story = run.story_of(prompt)[: usage.completion_tokens]
    assert choice.text == "".join(token.text for token in story)
    assert usage.prompt_tokens == len(prompt) and usage.total_tokens == len(prompt) + usage.completion_tokens
    assert answer.system_fingerprint == f"weights-{story[-1].version}"
    ended, full = story[-1].token == END_OF_TEXT, story[-1].position == run.engine.info.context - 1
    assert choice.finish_reason == ("stop" if ended else "length")
    assert ended or full or len(story) == max_tokens


@pytest.fixture(scope="module")
def run(kernel):
    """A run for all tests that leave it as it was. Its training is soon over, and it goes on serving."""
    with served_run(kernel) as run:
        yield run


def test_the_model_is_listed(run):
    (listed,) = run.client().models.list().data
    assert listed == run.client().models.retrieve(MODEL)
    assert listed.id == MODEL and listed.object == "model"
    with pytest.raises(openai.NotFoundError):
        run.client().models.retrieve("other")


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("target", TARGETS)
def test_clients_at_once_never_get_each_others_text(kernel, target, streams):
    """Rounds of requests of random shapes, some of which leave early; each gets its own story and nothing else."""
    chance = random.Random(5)

    async def ask(run: Run, client: openai.AsyncOpenAI, prompt: str, options: dict[str, Any]) -> None:
        count = options["max_tokens"]
        if chance.random() < 0.4:
            check(run, prompt, await client.completions.create(model=MODEL, prompt=prompt, **options), count)
            return
        leaves_after = chance.choice([1, 1000])
        stream = await client.completions.create(model=MODEL, prompt=prompt, stream=True, **options)
        said, reason = "", None
        async for chunk in stream:
            said += chunk.choices[0].text
            reason = chunk.choices[0].finish_reason
            leaves_after -= 1
            if not leaves_after:
                await stream.close()
                break
        story = run.story_of(prompt)
        assert reason or not leaves_after, "a stream that nobody left has an end"
        assert "".join(token.text for token in story).startswith(said)
        if reason == "length":
            assert said == "".join(token.text for token in story[:count])

    async def round_of(run: Run) -> None:
        async with run.async_client() as client:
            await asyncio.gather(*(
                ask(run, client, new_prompt(), {"max_tokens": chance.choice([1, 5, 30, 200]),
                                                "temperature": chance.choice([0, 0.7, 2]), "seed": number})
                for number in range(6)
            ))

    with served_run(kernel, target=target, steps=100_000, streams=streams, telling=1) as run:
        for _ in range(5):
            asyncio.run(round_of(run))
            run.client().completions.create(model=MODEL, prompt=new_prompt(), max_tokens=1)


def test_an_answer_is_the_text_of_its_story(run):
    """Up to a limit of tokens, to the end of what the model can read, and of a story without a prompt."""
    for count in (1, 20, 1000):
        prompt = new_prompt()
        answer = run.client().completions.create(model=MODEL, prompt=prompt, max_tokens=count)
        check(run, prompt, answer, count)
    unprompted = run.client().completions.create(model=MODEL, prompt="", max_tokens=8)
    assert unprompted.usage.prompt_tokens == 0 and 1 <= unprompted.usage.completion_tokens <= 8


def test_a_stream_says_the_same_in_pieces_and_ends_with_what_it_took(kernel):
    with served_run(kernel, tokens_per_s=20) as run:
        prompt = new_prompt()
        chunks = list(run.client().completions.create(
            model=MODEL, prompt=prompt, max_tokens=40, stream=True, stream_options={"include_usage": True}
        ))
        *said, last, usage = chunks
        assert len(said) > 1, "the text did not come as it was written"
        assert len({chunk.id for chunk in chunks}) == 1
        assert [chunk.choices[0].finish_reason for chunk in said] == [None] * len(said)
        assert last.choices[0].finish_reason in ("length", "stop") and not usage.choices
        text = "".join(chunk.choices[0].text for chunk in said)
        assert text == text_of(run, prompt, usage.usage.completion_tokens)


def test_a_stop_text_ends_an_answer_and_is_not_in_it(run):
    """The letters follow a pattern that training has found by the time one of these stands in every story."""
    prompt = new_prompt()
    answer = run.client().completions.create(
        model=MODEL, prompt=prompt, max_tokens=40, stop=["e", "q", "k", "x"], temperature=0
    )
    story = "".join(token.text for token in run.story_of(prompt)[: answer.usage.completion_tokens])
    said = answer.choices[0].text
    assert not set(said) & set("eqkx")
    if answer.choices[0].finish_reason == "stop":
        assert story[: len(said)] == said and story[len(said)] in "eqkx" and len(story) == len(said) + 1


def test_what_cannot_be_is_refused_in_openais_form(run):
    client = run.client()
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model=MODEL, prompt="a", best_of=2)
    assert refused.value.param == "best_of" and refused.value.code == "unsupported_parameter"
    with pytest.raises(openai.BadRequestError, match="100 tokens; the model can read 63"):
        client.completions.create(model=MODEL, prompt="x" * 100)
    with pytest.raises(openai.BadRequestError, match="100 tokens"):
        client.completions.create(model=MODEL, prompt="x" * 100, stream=True)
    with pytest.raises(openai.NotFoundError, match="no model 'other'"):
        client.completions.create(model="other", prompt="a")
    with pytest.raises(openai.NotFoundError, match="/v1/completions"):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "a"}])
    with pytest.raises(openai.APIStatusError) as refused:
        client.completions.create(model=MODEL, prompt="x" * 2_000_000)
    assert refused.value.status_code == 413
    with pytest.raises(openai.APIStatusError) as refused:
        client.get("/completions", cast_to=object)
    assert refused.value.status_code == 405


def test_a_request_after_a_bad_one_gets_its_answer(run):
    client, prompt = run.client(), new_prompt()
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model=MODEL, prompt="x" * 100, temperature=1.7)
    check(run, prompt, client.completions.create(model=MODEL, prompt=prompt, max_tokens=5), 5)


def test_the_token_opens_every_path(kernel):
    with served_run(kernel, token="secret") as run:
        for wrong in ("none", "secre"):
            with pytest.raises(openai.AuthenticationError) as refused:
                run.client(api_key=wrong).models.list()
            assert refused.value.code == "invalid_api_key"
            with pytest.raises(openai.AuthenticationError):
                run.client(api_key=wrong).completions.create(model=MODEL, prompt="a")
        assert run.client(api_key="secret").models.list().data[0].id == MODEL
        run.client(api_key="secret").completions.create(model=MODEL, prompt="a", max_tokens=1)


def test_a_full_queue_refuses_and_those_who_leave_make_room(kernel):
    """The run is paused, so one request has the turn, WAITING others wait, and nobody gets anywhere."""

    async def script(run: Run) -> None:
        async with run.async_client() as client:
            def ask(prompt: str) -> asyncio.Task[openai.types.Completion]:
                return asyncio.create_task(client.completions.create(model=MODEL, prompt=prompt, max_tokens=3))

            first = new_prompt()
            asked = {first: ask(first)}
            await asyncio.to_thread(wait_until, lambda: any(event.text == first for event in run.posted))
            asked |= {prompt: ask(prompt) for prompt in (new_prompt() for _ in range(WAITING + 1))}
            (refused,), _ = await asyncio.wait(asked.values(), return_when=asyncio.FIRST_COMPLETED)
            assert isinstance(refused.exception(), openai.RateLimitError)
            assert refused.exception().code == "rate_limit_exceeded"
            asked = {prompt: answer for prompt, answer in asked.items() if answer is not refused}
            leaver = list(asked)[5]
            asked.pop(leaver).cancel()
            while True:  # the place is free as soon as the server has seen the client go
                late = new_prompt()
                asked[late] = ask(late)
                done, _ = await asyncio.wait([asked[late]], timeout=2)
                if not done:
                    break
                assert isinstance(asked.pop(late).exception(), openai.RateLimitError)
            run.engine.pause(False)
            for prompt, answer in asked.items():
                check(run, prompt, await answer, 3)
            told = {event.text for event in run.posted} - {""}
            assert told == set(asked), "somebody who was refused or has left got a turn"

    with served_run(kernel) as run:
        run.engine.pause(True)
        asyncio.run(script(run))


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_its_story(kernel, stream):
    """Another's turn comes at once, long before the story that nobody reads would have been over."""

    async def leave(run: Run, prompt: str) -> None:
        async with run.async_client() as client:
            asking = client.completions.create(model=MODEL, prompt=prompt, max_tokens=50, stream=stream)
            if stream:
                async for _ in await asking:
                    break
                return
            task = asyncio.create_task(asking)
            await asyncio.to_thread(wait_until, lambda: any(e.event.text == prompt for e in run.applied))
            task.cancel()

    with served_run(kernel, tokens_per_s=20, context=256) as run:
        left, prompt = new_prompt(), new_prompt()
        asyncio.run(leave(run, left))
        answer = run.client().completions.create(model=MODEL, prompt=prompt, max_tokens=2)
        check(run, prompt, answer, 2)
        begun = {entry.event.text: entry.at for entry in run.applied}
        assert begun[prompt] - begun[left] < 40


def test_the_run_goes_on_with_stories_of_its_own_as_it_drew_them(kernel):
    """After a request its story ends, and sampling is again what it was, be it changed meanwhile or not."""
    other = sampling_event(0.3, 0.5, 7, 4)
    with served_run(kernel) as run:
        run.client().completions.create(model=MODEL, prompt=new_prompt(), max_tokens=2, temperature=0, top_p=0.9)
        wait_until(lambda: len(run.applied) == 4)
        run.engine.post(other)
        wait_until(lambda: len(run.applied) == 5)
        run.client().completions.create(model=MODEL, prompt=new_prompt(), max_tokens=2, extra_body={"top_k": 3})
        wait_until(lambda: len(run.applied) == 9)
        sampling = [(e.event.target, e.event.args[:3]) for e in run.applied if e.event.action == "sampling"]
        own, theirs = (OWN.target, OWN.args[:3]), (other.target, other.args[:3])
        assert sampling[1:3] == [own, theirs] and sampling[4] == theirs
        assert sampling[0] not in (own, theirs) and sampling[3] == (4, (*other.args[:2], 3))
        ends = [entry.at for entry in run.applied if entry.event.action == "end_story"]
        wait_until(lambda: run.tokens[-1].index > ends[-1])
        tokens = {token.index: token for token in run.tokens}
        assert len(ends) == 2 and all(tokens[at].first and not tokens[at].from_prompt for at in ends)


def test_each_stream_that_rests_tells_a_request_and_the_first_that_is_free_the_next(kernel):
    """All at the same time, beside the run's own story, which no request touches; then they rest again."""

    async def script(run: Run) -> None:
        async with run.async_client() as client:
            async def ask(prompt: str, count: int) -> None:
                check(run, prompt, await client.completions.create(
                    model=MODEL, prompt=prompt, max_tokens=count, temperature=0.7), count)

            short, longer, late = [new_prompt() for _ in range(2)], new_prompt(), new_prompt()
            await asyncio.gather(*(ask(prompt, 5) for prompt in short), ask(longer, 40), ask(late, 5))
            streams = {prompt: run.story_of(prompt)[0].stream for prompt in (*short, longer, late)}
            told = {streams[prompt] for prompt in (*short, longer, late)}
            assert told == {1, 2, 3} and streams[late] != streams[longer]
            at = {entry.event.text: entry.at for entry in run.applied if entry.event.action == "prompt"}
            last = run.story_of(longer)[-1].index
            assert all(begun < last for begun in at.values()), "somebody waited for the longest answer"

    with served_run(kernel, tokens_per_s=40, context=256, streams=4, telling=1) as run:
        wait_until(lambda: len(run.tokens) > 60)  # the model has learnt by now not to end a story at once
        asyncio.run(script(run))
        wait_until(lambda: sum(entry.event.action == "end_story" for entry in run.applied) >= 3)
        ends = max(entry.at for entry in run.applied)
        wait_until(lambda: run.tokens[-1].index > ends + 20)
        assert {token.stream for token in run.tokens if token.index >= ends} == {0}
        own = {token.stream for token in run.tokens if not token.from_prompt and token.index < 3}
        assert own == {0}, "a stream did not rest before its first request"


def test_a_prompt_from_the_keys_ends_a_requests_story_in_words(kernel):
    with served_run(kernel, tokens_per_s=50) as run:
        prompt, typed = new_prompt(), new_prompt()
        stream = run.client().completions.create(model=MODEL, prompt=prompt, max_tokens=50, stream=True)
        said = next(iter(stream)).choices[0].text
        run.engine.post(Event("prompt", "token", text=typed))
        with pytest.raises(openai.APIError, match="another prompt"):
            for chunk in stream:
                said += chunk.choices[0].text
        assert said == "".join(token.text for token in run.story_of(prompt))
        wait_until(lambda: len(run.story_of(typed)) > 5)


def test_the_end_of_the_run_ends_every_request(kernel):
    """Those that are answered and those that wait; later ones find nobody."""

    async def script(run: Run) -> None:
        async with run.async_client() as client:
            stream = await client.completions.create(model=MODEL, prompt=new_prompt(), max_tokens=50, stream=True)
            waits = asyncio.create_task(client.completions.create(model=MODEL, prompt=new_prompt()))
            await asyncio.sleep(0.2)
            await asyncio.to_thread(run.engine.stop)
            with pytest.raises(openai.APIError, match="the run is over"):
                async for _ in stream:
                    pass
            with pytest.raises(openai.InternalServerError, match="the run is over"):
                await waits

    with served_run(kernel, tokens_per_s=20, context=256) as run:
        asyncio.run(script(run))
        with pytest.raises(openai.InternalServerError, match="the run is over"):
            run.client().completions.create(model=MODEL, prompt="a")
    with pytest.raises(openai.APIConnectionError):
        run.client().models.list()


def test_without_an_sm_that_serves_requests_are_refused(kernel):
    with (
        served_run(kernel, sms=(1, 0, 0)) as run,
        pytest.raises(openai.InternalServerError, match="no SM serves"),
    ):
        run.client().completions.create(model=MODEL, prompt="a")
