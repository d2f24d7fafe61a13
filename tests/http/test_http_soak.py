"""scripts/http_soak.py: its clients against an engine whose answers anybody can compute, and the whole of it."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from http_runs import OWN, polled_run, wait_until
from telling_engine import CONTEXT, TellingEngine, told

pytestmark = pytest.mark.filterwarnings("ignore:.*aiter_raw:pytest.PytestUnraisableExceptionWarning")
"""A client that leaves drops a generator, which may be taken away while the polling thread happens to run."""
ROUNDS, ROUND_S = 20, 1.5
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "http_soak.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("http_soak", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["http_soak"] = module
    spec.loader.exec_module(module)
    return module


def answer_of(script: ModuleType, case) -> object:
    """What the engine has to answer, from its rule alone."""
    text, written, position = "", 0, len(case.prompt)
    reason = "length"
    while reason == "length" and written < case.max_tokens and position < CONTEXT:
        letter, is_last = told(case.prompt, position)
        written, position = written + 1, position + 1
        text += "" if is_last else letter
        stopped = case.stop is not None and case.stop in text
        reason = "stop" if is_last or stopped else "length"
        text = text.partition(case.stop)[0] if stopped else text
    return script.Answer(text, reason, len(case.prompt), written)


def soaked(script: ModuleType, url: str, wanted: dict, clients: int, enough: Callable[[Counter], bool]):
    """Rounds of clients until enough was seen: how much a second shows is the machine's affair."""
    total = script.Judged()
    for seed in range(ROUNDS):
        judged = asyncio.run(script.soak(url, "tiny", wanted, ROUND_S, clients, seed=7 + 100 * seed))
        total.counts += judged.counts
        total.wrong += judged.wrong
        if enough(total.counts):
            break
    return total


@pytest.mark.parametrize(("streams", "telling", "clients"), [(1, 1, 6), (4, 1, 12), (8, 1, 40), (3, 3, 6)])
def test_clients_that_come_and_go_get_their_own_text(script: ModuleType, streams: int, telling: int, clients: int):
    engine = TellingEngine(OWN, streams, telling, seed=streams)
    cases = script.make_cases(random.Random(1))
    with polled_run(engine) as run:
        wanted = {case: answer_of(script, case) for case in cases}
        assert asyncio.run(script.ask_alone(run.url, "tiny", cases[::5])) == [wanted[case] for case in cases[::5]]
        judged = soaked(script, run.url, wanted, clients,
                        lambda seen: seen["finished"] > 20 and seen["left"] > 5 and seen["cancelled"] > 0)
        assert not judged.wrong, judged.wrong[:3]
        told_on = {event.target for event in run.posted if event.action == "prompt"}
        assert told_on == set(range(min(telling, streams - 1), streams))
        wait_until(lambda: [s.telling for s in engine.streams] == [s.keeps_telling for s in engine.streams])
        run.stories()
    counts = judged.counts
    assert counts["finished"] > 20 and counts["left"] > 5 and counts["cancelled"] > 0
    assert (counts["refused"] > 0) == (clients > 16 + len(told_on))


def test_answers_that_were_mixed_are_seen(script: ModuleType):
    """The judge on an engine that now and then gives a stream's token to another."""
    engine = TellingEngine(OWN, 4, 1, seed=1)
    letter = engine.letter
    engine.letter = lambda stream: letter(random.choice(engine.streams)) if random.random() < 0.05 else letter(stream)
    cases = script.make_cases(random.Random(1))
    with polled_run(engine) as run:
        wanted = {case: answer_of(script, case) for case in cases}
        judged = soaked(script, run.url, wanted, 8, lambda seen: seen["mixed"] > 3)
    assert judged.counts["mixed"] > 3


@pytest.mark.slow
def test_the_whole_soak(tmp_path: Path):
    done = subprocess.run([sys.executable, str(SCRIPT), "--minutes", "0.5"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
