"""`--http` as a person uses it: a real process, headless or in a terminal, real clients, and signals that end it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import openai
import pytest

from ofa_tui.http.options import TOKEN_VARIABLE
from ofa_tui.record.events import read_events
from tests.tui.slow_link import spawn, wait_exit, watch

STORY = "Once there was a fox who lived under a hill and liked the rain.\n" * 400
RUN = (sys.executable, "-m", "ofa_tui", "--sms", "train=1,serve=1,doom=0", "--steps", "5000",
       "--data", "story.txt", "--tokenizer", "bytes")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "story.txt").write_text(STORY)
    return tmp_path


def client(url: str, token: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key=token, max_retries=0, timeout=60)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_recorded_run_and_its_answers(folder: Path, name: str) -> None:
    number = getattr(signal, name)
    process = subprocess.Popen(
        [*RUN, "--record", "out", "--http", "127.0.0.1:0"], cwd=folder, stderr=subprocess.PIPE, text=True,
        env=os.environ | {TOKEN_VARIABLE: "secret-word"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        asking = client(url, "secret-word")
        answer = asking.completions.create(model="tiny", prompt="Once there", max_tokens=3, seed=7)
        assert answer.usage.prompt_tokens == 10
        stream = asking.completions.create(model="tiny", prompt="A fox", max_tokens=1000, stream=True)
        next(iter(stream))
        process.send_signal(number)
        with pytest.raises(openai.APIError, match="the run is over"):
            for _ in stream:
                pass
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 128 + number and "Traceback" not in said
    finally:
        process.kill()
        process.wait()
    prompts = [event.text for event in read_events(folder / "out" / "events.jsonl") if event.action == "prompt"]
    assert prompts[0] == "Once there" and prompts[-1] == "A fox" and set(prompts[1:-1]) <= {""}
    assert "secret-word" not in "".join(path.read_text() for path in (folder / "out").glob("*.json*"))


def test_the_model_answers_beside_the_ui(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
    pid, terminal = spawn([*RUN, "--http", str(port)], 100, 30, environment | {"TERM": "xterm-256color"})
    screen = bytearray()
    try:
        screen += watch(pid, terminal, seconds=2.0, settle=60.0, until=b"\x1b[?1049h").output
        answers = []
        for prompt in ("The rain", ""):
            answers.append(subprocess.Popen(
                [sys.executable, "-c",
                 "import sys, openai; print(openai.OpenAI(base_url=sys.argv[1], api_key='x', max_retries=0, timeout=60)"
                 ".completions.create(model='tiny', prompt=sys.argv[2], max_tokens=4).usage.completion_tokens)",
                 f"http://127.0.0.1:{port}/v1", prompt], stdout=subprocess.PIPE, text=True,
            ))  # fmt: skip
        give_up = time.monotonic() + 60
        while any(answer.poll() is None for answer in answers):
            assert time.monotonic() < give_up
            screen += watch(pid, terminal, seconds=0.3, settle=0.0).output
        assert [answer.stdout.read().strip() for answer in answers if answer.stdout] == ["4", "4"]
    finally:
        os.kill(pid, signal.SIGTERM)
        code = wait_exit(pid, terminal, 30.0, screen)
    assert code == 128 + signal.SIGTERM and b"\x1b[?1049l" in screen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--http", "0.0.0.0:0"), ("other machines", TOKEN_VARIABLE, "--http-token")),
        (("--http", "here"), ("here", "127.0.0.1:8000")),
        (("--http-token", "x"), ("--http",)),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_built(folder: Path, arguments: tuple[str, ...], words) -> None:
    environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
    done = subprocess.run([*RUN, "--record", "out", *arguments], cwd=folder, capture_output=True, text=True,
                          env=environment, timeout=120)
    said = [line for line in done.stderr.splitlines() if line.startswith("ofa-tui: ")]
    assert done.returncode == 2 and len(said) == 1 and all(word in said[0] for word in words), done.stderr
    assert not (folder / "out").exists()
