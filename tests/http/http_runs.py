"""Runs with an endpoint, polled by a thread as a UI or a recorder would, and what they served."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import openai

from ofa_tui.engine.library import KernelLibrary
from ofa_tui.engine.protocol import AppliedEvent, Engine, Event, ServedToken
from ofa_tui.engine.steering import sampling_event
from ofa_tui.http.options import HttpOptions
from ofa_tui.http.server import Endpoint
from tests.engine.engine_runs import config, engine, text_tokens

OWN = sampling_event(0.8, 0.95, 0, 1)


@dataclass(eq=False)
class Run:
    url: str
    engine: Engine
    tokens: list[ServedToken] = field(default_factory=list)
    applied: list[AppliedEvent] = field(default_factory=list)
    posted: list[Event] = field(default_factory=list)

    @functools.cache  # noqa: B019 - a run is gone with its test
    def client(self, api_key: str = "none") -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key=api_key, max_retries=0, timeout=60)

    def async_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=60)

    def stories(self) -> list[list[ServedToken]]:
        """The tokens of each story so far, which are told on one stream without a gap."""
        groups: dict[int, list[ServedToken]] = {}
        for token in list(self.tokens):
            groups.setdefault(token.story, []).append(token)
        for story in groups.values():
            assert {token.stream for token in story} == {story[0].stream}
            assert [token.position for token in story] == list(range(len(story)))
        return list(groups.values())

    def story_of(self, prompt: str) -> list[ServedToken]:
        """The sampled tokens of the one story that begins with this prompt and nothing else before it."""
        wait_until(lambda: any(_prompt_of(story) == prompt for story in self.stories()))
        (found,) = [story for story in self.stories() if _prompt_of(story) == prompt]
        return [token for token in found if not token.from_prompt]


@contextlib.contextmanager
def served_run(kernel: KernelLibrary, token: str = "", target: str = "host", **changes) -> Iterator[Run]:
    """A run that trains for a moment and serves, so slowly that its log stays short, until it is left."""
    options = {"steps": 200, "sweep_every": 0, "sms": (1, 1, 0), "context": 64, "train_tokens": text_tokens(5000),
               "tokens_per_s": 500}
    with polled_run(engine(kernel, config(**options | changes), target), token) as run:
        yield run


@contextlib.contextmanager
def polled_run(running: Engine, token: str = "") -> Iterator[Run]:
    endpoint = Endpoint(HttpOptions("127.0.0.1", 0, token))
    over, posted, post = threading.Event(), [], running.post

    def note(event: Event) -> None:
        post(event)
        posted.append(event)

    running.post = note  # type: ignore[method-assign]
    with endpoint.serving(running, [OWN] * running.info.streams) as shared:
        run = Run(endpoint.url, shared, posted=posted)

        def poll() -> None:
            while not over.is_set():
                snapshot = shared.poll()
                run.tokens += snapshot.served
                run.applied += snapshot.applied
                time.sleep(0.003)

        shared.start()
        polling = threading.Thread(target=poll)
        polling.start()
        try:
            yield run
        finally:
            over.set()
            polling.join()
            running.stop()


def _prompt_of(story: list[ServedToken]) -> str:
    return "".join(token.text for token in story if token.from_prompt)


def wait_until(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


_numbers = itertools.count()


def new_prompt() -> str:
    """One that no other request of the session has."""
    return f"story {next(_numbers):04d}:"
