"""Several answers to one prompt: each is a story of its own, drawn from a seed of its own."""

from __future__ import annotations

import itertools

import pytest
from http_runs import OWN, Run, polled_run
from telling_engine import TellingEngine, told


@pytest.fixture(scope="module", params=[(1, 1), (4, 1)])
def run(request):
    with polled_run(TellingEngine(OWN, *request.param, seed=1)) as run:
        yield run


def greedy(prompt: str, count: int) -> str:
    letters = itertools.takewhile(lambda letter: not letter[1], (told(prompt, n) for n in itertools.count(len(prompt))))
    return "".join(letter for letter, _ in itertools.islice(letters, count))


def test_each_choice_is_a_story_of_its_own(run: Run) -> None:
    answer = run.client().completions.create(model="tiny", prompt="three of", n=3, max_tokens=9, temperature=0)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [choice.text for choice in answer.choices] == [greedy("three of", 9)] * 3
    assert answer.usage.prompt_tokens == len("three of")
    written = [[t for t in story if not t.from_prompt] for story in run.stories()
               if "".join(t.text for t in story if t.from_prompt) == "three of"]
    assert len(written) == 3 and answer.usage.completion_tokens == sum(min(9, len(story)) for story in written)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_each_choice_is_drawn_from_a_seed_of_its_own(run: Run) -> None:
    before = len(run.posted)
    run.client().completions.create(model="tiny", prompt="seeds", n=3, max_tokens=4, temperature=1.5, seed=2**32 - 2)
    seeds, drawn = {}, []
    for event in run.posted[before:]:
        if event.action == "sampling":
            seeds[event.args[3]] = event.target
        elif event.text == "seeds":
            drawn.append(seeds[event.target])
    assert sorted(drawn) == [0, 2**32 - 2, 2**32 - 1]


def test_a_stream_has_the_choices_in_turns_and_ends_when_all_have(run: Run) -> None:
    chunks = list(run.client().completions.create(
        model="tiny", prompt="in turns", n=2, max_tokens=30, temperature=0, stream=True,
        stream_options={"include_usage": True},
    ))  # fmt: skip
    *said, usage = chunks
    texts, ends = ["", ""], []
    for chunk in said:
        (choice,) = chunk.choices
        assert choice.index not in ends, "something came after the end"
        texts[choice.index] += choice.text
        ends += [choice.index] if choice.finish_reason else []
    assert texts == [greedy("in turns", 30)] * 2 and sorted(ends) == [0, 1]
    assert not usage.choices and usage.usage.prompt_tokens == len("in turns")
