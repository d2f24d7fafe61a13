#!/usr/bin/env python3
"""Serves for minutes while clients connect, cancel and leave at random, and judges what each of them got.

    scripts/http_soak.py [--minutes 30] [--clients 24] [--streams 4] [--steps 60] [--token-rate 400] [--seed 1]

A run on the CPU is trained for a moment; from then on its weights stand still and the likeliest text after a prompt is
always the same. It is asked for once with nobody beside it; then whole answers must be that text, token for token, and
those that somebody leaves its beginning. Clients are OpenAI's own, in a process of theirs, so that the memory measured
is the server's. Ends with status 1 after an answer that was mixed, lost or failed, or where memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openai
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui import settings
from ofa_tui.assemble import assemble, check
from ofa_tui.console import say
from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.http.options import HttpOptions
from ofa_tui.http.server import Endpoint

POLL_S = 0.005
MEMORY_EVERY_S = 2.0
WARM_UP = 0.25
"""Share of the time after which memory has to be flat."""
MOST_GROWTH_MB = 8.0
OPENINGS = ("Once upon a time", "The", "One day, Tim", "Lily had a", "", "In the garden", "A big dog", "It was", "Why")
LENGTHS = (1, 6, 25, 10_000)
STOPS = ("e", " the", ".")


@dataclass(frozen=True)
class Case:
    """A request whose answer is always the same."""

    prompt: str
    max_tokens: int
    stop: str | None = None

    def options(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "max_tokens": self.max_tokens, "stop": self.stop, "temperature": 0}


@dataclass(frozen=True)
class Answer:
    text: str
    reason: str
    prompt_tokens: int
    completion_tokens: int


@dataclass
class Judged:
    """What became of the requests."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """A sentence for each answer that was mixed, lost or failed."""
    latencies_s: list[float] = field(default_factory=list)
    """Of whole answers."""

    def compare(self, case: Case, wanted: Answer, got: Answer) -> None:
        self.counts["finished"] += 1
        self.counts["tokens"] += got.completion_tokens
        if got != wanted:
            self.counts["mixed"] += 1
            self.wrong.append(f"{case}: {got} and not {wanted}")

    def compare_beginning(self, case: Case, wanted: Answer, said: str) -> None:
        self.counts["left"] += 1
        if not wanted.text.startswith(said):
            self.counts["mixed"] += 1
            self.wrong.append(f"{case}: began with {said!r} and not {wanted.text!r}")


def make_cases(chance: random.Random) -> list[Case]:
    names = [f"{opening} {chance.choice('abcdefgh')}".strip() for opening in OPENINGS]
    return [Case(prompt, length) for prompt in (*OPENINGS, *names) for length in LENGTHS] + [
        Case(prompt, LENGTHS[-1], stop) for prompt in OPENINGS for stop in STOPS
    ]


# --- clients --------------------------------------------------------------------------------------------------------


def clients_of(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=300)


async def ask_alone(url: str, model: str, cases: list[Case]) -> list[Answer]:
    async with clients_of(url) as client:
        return [await _whole(client, model, case.options()) for case in cases]


async def _whole(client: openai.AsyncOpenAI, model: str, options: dict[str, Any]) -> Answer:
    answer = await client.completions.create(model=model, **options)
    choice, usage = answer.choices[0], answer.usage
    assert usage is not None
    return Answer(choice.text, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens)


async def soak(url: str, model: str, wanted: dict[Case, Answer], seconds: float, count: int, seed: int) -> Judged:
    """`count` clients that ask until the time is over; each then waits for its last answer."""
    judged, until = Judged(), time.monotonic() + seconds
    asyncio.get_running_loop().set_exception_handler(_on_loop_error)
    async with clients_of(url) as client:
        await asyncio.gather(*(
            _client(client, model, wanted, until, random.Random(seed + number), judged) for number in range(count)
        ))
    return judged


def _on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The generators of a stream that was left are closed by the loop, each for itself, and get in each other's way."""
    if "asyncgen" not in context:
        loop.default_exception_handler(context)


async def _client(client: openai.AsyncOpenAI, model: str, wanted: dict[Case, Answer], until: float,
                  chance: random.Random, judged: Judged) -> None:
    cases = list(wanted)
    while time.monotonic() < until:
        case = chance.choice(cases)
        manner = chance.choice([_ask_whole, _ask_stream, _leave_stream, _cancel, _draw])
        judged.counts["requests"] += 1
        try:
            await manner(client, model, case, wanted[case], chance, judged)
        except openai.RateLimitError:
            judged.counts["refused"] += 1
            await asyncio.sleep(chance.uniform(0, 1))
        except openai.OpenAIError as error:
            judged.counts["failed"] += 1
            judged.wrong.append(f"{case}: {type(error).__name__}: {error}")
        await asyncio.sleep(chance.expovariate(20))


async def _ask_whole(client: openai.AsyncOpenAI, model: str, case: Case, wanted: Answer, chance: random.Random,
                     judged: Judged) -> None:
    begun = time.monotonic()
    judged.compare(case, wanted, await _whole(client, model, case.options()))
    judged.latencies_s.append(time.monotonic() - begun)


async def _ask_stream(client: openai.AsyncOpenAI, model: str, case: Case, wanted: Answer, chance: random.Random,
                      judged: Judged) -> None:
    said, reason = "", ""
    async for chunk in await client.completions.create(
        model=model, stream=True, stream_options={"include_usage": True}, **case.options()
    ):
        if chunk.choices:
            said += chunk.choices[0].text
            reason = chunk.choices[0].finish_reason or reason
        elif chunk.usage:
            judged.compare(case, wanted, Answer(said, reason, chunk.usage.prompt_tokens, chunk.usage.completion_tokens))
            return
    judged.counts["failed"] += 1
    judged.wrong.append(f"{case}: a stream without an end")


async def _leave_stream(client: openai.AsyncOpenAI, model: str, case: Case, wanted: Answer, chance: random.Random,
                        judged: Judged) -> None:
    said, pieces = "", chance.randint(1, 12)
    stream = await client.completions.create(model=model, stream=True, **case.options())
    async for chunk in stream:
        said += chunk.choices[0].text
        pieces -= 1
        if not pieces:
            break
    await stream.close()
    judged.compare_beginning(case, wanted, said)


async def _cancel(client: openai.AsyncOpenAI, model: str, case: Case, wanted: Answer, chance: random.Random,
                  judged: Judged) -> None:
    """Goes after a while without an answer, or with one that was faster."""
    asking = asyncio.create_task(_whole(client, model, case.options()))
    await asyncio.wait([asking], timeout=chance.expovariate(5))
    if asking.done():
        judged.compare(case, wanted, asking.result())
        return
    asking.cancel()
    await asyncio.wait([asking])
    judged.counts["cancelled"] += 1


async def _draw(client: openai.AsyncOpenAI, model: str, case: Case, wanted: Answer, chance: random.Random,
                judged: Judged) -> None:
    """Drawn in a way that must not rub off on anybody."""
    drawn = {"temperature": chance.uniform(0.5, 2), "seed": chance.randrange(1000), "extra_body": {"top_k": 50}}
    got = await _whole(client, model, case.options() | drawn)
    judged.counts["drawn"] += 1
    if got.prompt_tokens != wanted.prompt_tokens or got.completion_tokens > case.max_tokens:
        judged.counts["mixed"] += 1
        judged.wrong.append(f"{case}: drawn as {drawn}: {got}")


def run_clients(url: str, model: str, seconds: float, count: int, seed: int, results: Any) -> None:
    """What the clients' process does: asks for everything alone, then for what it likes."""
    cases = make_cases(random.Random(seed))
    alone = asyncio.run(ask_alone(url, model, cases))
    if len({answer.text for case, answer in zip(cases, alone, strict=True) if case.max_tokens == LENGTHS[-1]}) < 8:
        raise SystemExit("the model says the same after every prompt; give it other --steps")
    results.put(None)
    results.put(asyncio.run(soak(url, model, dict(zip(cases, alone, strict=True)), seconds, count, seed)))


# --- the server -----------------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """Resident memory over time: seconds and MB."""

    samples: list[tuple[float, float]] = field(default_factory=list)

    def sample(self, seconds: float) -> None:
        if not self.samples or seconds - self.samples[-1][0] >= MEMORY_EVERY_S:
            self.samples.append((seconds, psutil.Process().memory_info().rss / 1e6))

    def slope(self) -> tuple[float, float]:
        """MB an hour after the warm-up, and MB in all of that time, by a straight line."""
        seconds, mb = np.array(self.samples).T
        warm = seconds >= WARM_UP * seconds[-1]
        if warm.sum() < 2:
            return 0.0, 0.0
        rate = float(np.polyfit(seconds[warm], mb[warm], 1)[0])
        return rate * 3600, rate * float(seconds[warm][-1] - seconds[warm][0])


def polls(engine: Engine) -> Iterator[Snapshot]:
    while True:
        snapshot = engine.poll()
        if snapshot.state in ("aborted", "stopped"):
            raise OfaError(f"the run ended: {snapshot.state} {snapshot.message}")
        yield snapshot
        time.sleep(POLL_S)


def serve_clients(engine: Engine, url: str, options: argparse.Namespace) -> tuple[Judged, Memory]:
    """Polls until the clients are done."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=run_clients, daemon=True, args=(
        url, engine.info.preset, options.minutes * 60, options.clients, options.seed, results,
    ))  # fmt: skip
    child.start()
    memory, begun, judged = Memory(), 0.0, None
    for _ in polls(engine):
        if not results.empty():
            judged, begun = results.get(), begun or time.monotonic()
            if judged is not None:
                break
        elif not child.is_alive():
            raise OfaError("the clients' process failed")
        if begun:
            memory.sample(time.monotonic() - begun)
    child.join()
    assert judged is not None
    return judged, memory


def report(judged: Judged, memory: Memory, minutes: float) -> bool:
    """Prints the table; whether all was well."""
    for name in ("requests", "finished", "drawn", "left", "cancelled", "refused", "failed", "mixed", "tokens"):
        print(f"{name:<12}{judged.counts[name]:>12,}")
    if judged.latencies_s:
        median, late = np.percentile(judged.latencies_s, [50, 99])
        print(f"{'latency':<12}{median:>12.2f} s median, {late:.2f} s p99, of whole answers")
    hourly, growth = memory.slope()
    print(f"{'memory':<12}{memory.samples[-1][1]:>12,.1f} MB, {hourly:+.2f} MB an hour, {growth:+.2f} MB in the last "
          f"{minutes * (1 - WARM_UP):.1f} minutes")
    for sentence in judged.wrong[:10]:
        say(sentence)
    return not judged.wrong and growth < MOST_GROWTH_MB and judged.counts["finished"] > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--streams", type=int, default=settings.HTTP_STREAMS)
    parser.add_argument("--steps", type=int, default=60, help="of training before (default: 60)")
    parser.add_argument("--token-rate", default="400", help="of each stream (default: 400), or max")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    of_run = argparse.ArgumentParser()
    settings.add_arguments(of_run)
    chosen = settings.from_arguments(argparse.Namespace(http="", **vars(of_run.parse_args([
        "--backend", "host", "--sms", "train=1,serve=1,doom=0", "--sweep-every", "0", "--sweep-batches", "1",
        "--steps", str(options.steps), "--streams", str(options.streams), "--token-rate", options.token_rate,
    ]))))  # fmt: skip
    check(chosen, doom_required=False)
    run = assemble(chosen, doom_required=False)
    endpoint = Endpoint(HttpOptions("127.0.0.1", 0))
    with endpoint.serving(run.engine, run.sampling) as engine:
        try:
            engine.start()
            next(snapshot for snapshot in polls(engine) if snapshot.state == "finished")
            judged, memory = serve_clients(engine, endpoint.url, options)
        finally:
            engine.stop()
    print(f"{options.minutes:g} minutes, {options.clients} clients, {options.streams} streams, {os.cpu_count()} cores")
    return 0 if report(judged, memory, options.minutes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OfaError as error:
        sys.exit(str(error))
