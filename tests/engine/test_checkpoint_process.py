"""Whole processes: one is killed while it writes a checkpoint, ended by signals, and gone on from bit for bit."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ofa_tui.checkpoint.checkpoint import Checkpoint
from ofa_tui.cli import main
from ofa_tui.errors import OfaError

STORY = "Once there was a fox who lived under a hill and liked the rain.\n" * 400
RUN = ("--preset", "shakespeare-char", "--data", "story.txt", "--tokenizer", "bytes", "--steps", "10")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ofa_tui", *arguments]


def run(folder: Path, *arguments: str, most_file_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if most_file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))

    return subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=200,
                          preexec_fn=limit)


def losses(folder: Path) -> dict[int, tuple[str, str]]:
    """step → loss and rate, as written, of whole lines."""
    lines = (folder / "loss.csv").read_text().split("\n")[1:-1]
    return {int(step): (loss, rate) for step, loss, rate, _ in (line.split(",") for line in lines)}


@pytest.fixture(scope="module")
def whole(kernel, tmp_path_factory):
    """The working folder, with the run that nothing interrupts in `whole`."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "story.txt").write_text(STORY)
    done = run(folder, "--record", "whole", *RUN, "--sms", "train=1,serve=0,doom=0")
    assert done.returncode == 0, done.stderr
    assert len(losses(folder / "whole")) == 10
    return folder


def kill_while_it_writes(process: subprocess.Popen, checkpoints: Path, after: int) -> None:
    """SIGKILL when a checkpoint's file is half written and at least `after` others are there."""
    give_up = time.monotonic() + 100
    while True:
        assert process.poll() is None and time.monotonic() < give_up
        if len(list(checkpoints.glob("step-*.safetensors"))) < after or not list(checkpoints.glob(".step-*")):
            time.sleep(0.001)
            continue
        process.send_signal(signal.SIGSTOP)
        if list(checkpoints.glob(".step-*")):
            process.kill()
            process.wait()
            return
        process.send_signal(signal.SIGCONT)


def test_a_run_killed_inside_a_checkpoint_goes_on_from_the_one_before(whole):
    process = subprocess.Popen(
        command("--record", "killed", *RUN, "--sms", "train=2,serve=1,doom=0", "--checkpoint-every", "1"),
        cwd=whole, stderr=subprocess.DEVNULL)
    checkpoints = whole / "killed" / "checkpoints"
    try:
        kill_while_it_writes(process, checkpoints, after=2)
    finally:
        process.kill()
        process.wait()
    assert list(checkpoints.glob(".step-*")), "it was killed in the midst of one"
    newest = max(Checkpoint(path).step for path in checkpoints.glob("step-*.safetensors"))
    done = run(whole, "--record", "again", "--resume", "killed", "--sms", "train=3,serve=1,doom=0")
    assert done.returncode == 0, done.stderr
    expected, again = losses(whole / "whole"), losses(whole / "again")
    assert again == {step: expected[step] for step in range(newest, 10)} and again
    before = losses(whole / "killed")
    assert before == {step: expected[step] for step in before}
    assert (whole / "again" / "sweeps.jsonl").read_text() == (whole / "whole" / "sweeps.jsonl").read_text()
    resumed = json.loads((whole / "again" / "run.json").read_text())["resumed"]
    assert resumed["step"] == newest and resumed["path"].endswith(f"step-{newest:08}.safetensors")
    assert f"finished after {10 - newest} steps, from step {newest} to 10" in done.stderr
    left = sorted(checkpoints.iterdir())
    assert len(left) == 3 and left[-1].name == "step-00000010.safetensors", "checkpoints go on as they were"
    assert not (whole / "again" / "checkpoints").exists()
    done = run(whole, "--record", "third", "--resume", "again")
    assert done.returncode == 2 and "again holds no checkpoint" in done.stderr
    assert "its run wrote them into killed/checkpoints" in done.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_step_and_leaves_a_checkpoint(whole, name):
    folder = whole / name
    process = subprocess.Popen(
        command("--record", name, *RUN, "--steps", "100000", "--sms", "train=2,serve=1,doom=0",
                "--checkpoint-at-end"),
        cwd=whole, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 100
    while not (folder / "loss.csv").exists() or len(losses(folder)) < 3:
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.02)
    os.kill(process.pid, getattr(signal, name))
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + getattr(signal, name) and "checkpoint of step" in said
    (path,) = (folder / "checkpoints").iterdir()
    checkpoint = Checkpoint(path)
    checkpoint.check()
    assert checkpoint.step == len(losses(folder)) >= 3
    noted = [json.loads(line) for line in (folder / "checkpoints.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in noted] == [checkpoint.step] and noted[0]["bytes"] == path.stat().st_size


def test_what_is_measured_is_what_the_run_measured(whole, monkeypatch, capsys):
    """`ofa-tui eval` on the run's own held-out text, and on a file of it, and what it refuses."""
    done = run(whole, "--record", "end", *RUN, "--sms", "train=2,serve=0,doom=0", "--checkpoints", "kept")
    assert done.returncode == 0, done.stderr
    in_run = json.loads((whole / "end" / "sweeps.jsonl").read_text().splitlines()[-1])
    done = run(whole, "eval", "kept", "--json", "--threads", "1")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert (measured["loss"], measured["tokens"], measured["step"]) == (in_run["loss"], in_run["tokens"], 10)
    assert "measuring" in done.stderr
    (whole / "other.txt").write_text("A hare came by.\n" * 20)
    done = run(whole, "eval", "kept", "--data", "other.txt", "--tokenizer", "bytes")
    assert done.returncode == 0 and "nats a token over 319 tokens" in done.stdout, done.stderr
    monkeypatch.chdir(whole)
    for arguments, words in (
        (("eval", "kept", "--tokenizer", "bpe:500"), ("bytes of 257 ids", "bpe:500")),
        (("eval", "none"), ("none", "no file")),
        (("eval", "kept", "--data", "missing.txt"), ("missing.txt",)),
        (("--record", "x", "--resume", "kept", "--preset", "tiny"), ("shakespeare-char", "tiny")),
        (("--record", "x", "--resume", "kept", "--data", "other.txt", "--steps", "12"), ("batch",)),
        (("--record", "x", "--resume", "kept", "--init", "story.txt"), ("--resume", "--init")),
        (("--record", "x", *RUN, "--init", "story.txt"), ("story.txt", "safetensors")),
        (("--record", "x", *RUN, "--checkpoints", "story.txt"), ("story.txt", "folder")),
        (("--record", "x", "--resume", "kept"), ("all 10 of 10", "--steps")),
    ):
        code, stderr = main(list(arguments)), capsys.readouterr().err
        said = [line for line in stderr.splitlines() if line.startswith("ofa-tui: ")]
        assert code == 2 and len(said) == 1, stderr
        assert all(word in said[0] for word in words) and "Traceback" not in stderr, stderr
        assert not (whole / "x").exists()


def test_a_checkpoint_of_the_start_gives_its_weights_to_another_run(whole):
    done = run(whole, "--record", "first", *RUN, "--steps", "1", "--sms", "train=1,serve=0,doom=0",
               "--checkpoint-at-start")
    assert done.returncode == 0, done.stderr
    path = "first/checkpoints/step-00000000.safetensors"
    done = run(whole, "--record", "second", *RUN, "--sms", "train=2,serve=0,doom=0", "--init", path, "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert losses(whole / "second") == losses(whole / "whole")
    with pytest.raises(OfaError):
        Checkpoint(whole / "story.txt")


def test_a_folder_is_of_one_run(whole):
    """While it is written to, and afterwards: what is there is never replaced by another run's."""
    alone = ("--sms", "train=1,serve=0,doom=0")
    first = subprocess.Popen(
        command("--record", "one", *RUN, "--steps", "100000", *alone, "--checkpoints", "shared", "--checkpoint-every",
                "1"), cwd=whole, stderr=subprocess.DEVNULL)
    try:
        give_up = time.monotonic() + 100
        while not list((whole / "shared").glob("step-*")):
            assert first.poll() is None and time.monotonic() < give_up
            time.sleep(0.02)
        second = run(whole, "--record", "two", *RUN, *alone, "--checkpoints", "shared")
        assert second.returncode == 2 and f"process {first.pid}" in second.stderr, second.stderr
        assert "shared" in second.stderr and "--checkpoints" in second.stderr and not (whole / "two").exists()
        first.terminate()
        assert first.wait(60) == 128 + signal.SIGTERM
    finally:
        first.kill()
        first.wait()
    before = {path: path.read_bytes() for path in (whole / "shared").iterdir()}
    assert len(before) == 3
    for arguments, words in (
        ((*RUN, "--seed", "2", "--checkpoints", "shared"), ("earlier run", "--resume shared")),
        (("--resume", str(min(before)), "--steps", "200000"), ("would replace", "newest")),
        ((*RUN, "--checkpoints", "story.txt/under"), ("story.txt/under", "Not a directory")),
        ((*RUN, "--checkpoints", "/proc/kept", "--checkpoint-at-start"), ("/proc/kept", "--checkpoints")),
        ((*RUN, "--checkpoints", ""), ("--checkpoints", "empty")),
        ((*RUN, "--init", "shared"), ("shared is a folder",)),
    ):
        done = run(whole, "--record", "two", *alone, *arguments)
        said = [line for line in done.stderr.splitlines() if line.startswith("ofa-tui: ")]
        assert done.returncode == 2 and len(said) == 1, done.stderr
        assert all(word in said[0] for word in words) and not (whole / "two").exists(), done.stderr
    assert {path: path.read_bytes() for path in (whole / "shared").iterdir()} == before


def test_a_run_says_at_its_end_what_it_could_not_save(whole):
    """The system refuses to write files as large as a checkpoint: the run is whole, its exit code is not 0."""
    done = run(whole, "--record", "full", *RUN, "--sms", "train=1,serve=0,doom=0", "--checkpoint-every", "4",
               most_file_bytes=1 << 20)
    assert done.returncode == 4, done.stderr
    assert losses(whole / "full") == losses(whole / "whole")
    failed = [json.loads(line) for line in (whole / "full" / "checkpoints.jsonl").read_text().splitlines()]
    steps = [entry["step"] for entry in failed]
    assert steps == sorted(set(steps)) and steps[-1] == 10 and all(entry["error"] for entry in failed)
    assert done.stderr.count("cannot write the checkpoint") == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("ofa-tui: ")]
    assert len(said) == 1 and ", ".join(map(str, steps)) in said[0] and "none was written" in said[0], done.stderr

    done = run(whole, "--record", "none", *RUN, "--sms", "train=1,serve=0,doom=0", "--checkpoint-at-start",
               most_file_bytes=1 << 20)
    assert done.returncode == 2 and not (whole / "none").exists(), done.stderr
    assert "step-00000000.safetensors (File too large)" in done.stderr and "goes on" not in done.stderr


def test_what_is_measured_is_a_file(whole):
    os.mkfifo(whole / "pipe")
    (whole / "empty").mkdir()
    path = whole / "of a measured run"
    done = run(whole, "--record", path.name, *RUN, "--steps", "1", "--sms", "train=1,serve=0,doom=0",
               "--checkpoint-at-end")
    assert done.returncode == 0, done.stderr
    for arguments, words in (
        (("pipe",), ("pipe is no regular file",)),
        (("",), ("CHECKPOINT", "empty")),
        (("empty",), ("empty holds no checkpoint", "step-00000200.safetensors")),
        (("x" * 300,), ("xxx", "too long")),
        ((path.name, "--data", "pipe"), ("pipe is no regular file",)),
        ((path.name, "--tokenizer", "pipe"), ("--tokenizer pipe is no regular file",)),
    ):
        done = run(whole, "eval", *arguments)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert all(word in done.stderr for word in words), done.stderr
