"""What goes wrong at the user's end is one sentence with the way out, a non-zero exit code, and leaves nothing behind.

Each case is a real process without a terminal; the cases of the terminal itself are in tests/tui/test_terminal.py.
"""

from __future__ import annotations

import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STORY = "Once there was a fox who lived under a hill and liked the rain.\n" * 400


def run(folder: Path, *arguments: str, own_cache: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOOMWAD")}
    if own_cache:
        environment["OFA_TUI_CACHE"] = str(folder / "cache")
    return subprocess.run(
        [sys.executable, "-m", "ofa_tui", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )


def wad_with_lumps(lumps: list[tuple[str, bytes]]) -> bytes:
    """An IWAD of the given lumps: header, lump data, directory of (position, size, name)."""
    data, directory = b"", b""
    for name, content in lumps:
        position = 12 + len(data)
        directory += position.to_bytes(4, "little") + len(content).to_bytes(4, "little") + name.encode().ljust(8, b"\0")
        data += content
    return b"IWAD" + len(lumps).to_bytes(4, "little") + (12 + len(data)).to_bytes(4, "little") + data + directory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "story.txt").write_text(STORY)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "short.txt").write_text("Too short.\n")
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "cut.txt.xz").write_bytes(lzma.compress(STORY.encode())[:-20])
    (tmp_path / "nothing.wad").write_bytes(b"IWAD")
    (tmp_path / "no_maps.wad").write_bytes(wad_with_lumps([("PLAYPAL", bytes(768 * 14))]))
    (tmp_path / "text.wad").write_text("this is not a WAD")
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "deep.jsonl").write_text("[" * 200_000)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "loss.csv").write_text("my,own,data\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "roles.jsonl").write_text('\n{"step": 1, "action": "set_role", "sm": 99, "role": "serve"}\n')
    (tmp_path / "bad.jsonl").write_text('{"step": 3, "action": "dance"}\n')
    return tmp_path


BASE = ("--record", "out", "--steps", "2", "--sms", "train=1,serve=0,doom=0")
DOOM = ("--record", "out", "--steps", "2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--preset", "enormous"), ("enormous", "tiny")),
        (("--sms", "train=0,serve=1,doom=1"), ("train=1",)),
        (("--steps", "many"), ("--steps", "--help")),
        ((*BASE, "--steps", "99999999999"), ("99999999999 steps", "memory", "--steps")),
        (("--backend", "cuda"), ("--backend host",)),
        (("--player", "dancer"), ("dancer", "explore")),
        (("--doom-demo", "run.lmp"), ("--record",)),
        ((*BASE, "--doom-demo", "run.lmp"), ("doom=1",)),
        ((*DOOM, "--doom-demo", "file"), ("file", "another name")),
        (("dance",), ("dance", "replay")),
        (("replay", "nowhere"), ("nowhere",)),
        (("replay", "file"), ("file is a file", "--record")),
        (("--record", "", "--steps", "2"), ("--record", "empty")),
        (("doctor", "--gpu", "-1"), ("--gpu -1", "0")),
        (("prepare", "--steps", "-1"), ("--steps -1",)),
        (("program", "simulate", "--trace", "nowhere/trace"), ("nowhere/trace", "No such file")),
        (("--sms", "train=²"), ("--sms",)),
        (("--top-k", "99999999999"), ("--top-k",)),
        ((*BASE, "--frame-every", "nan"), ("--frame-every",)),
        ((*BASE, "--theme", "plaid"), ("plaid", "dark")),
        ((*BASE, "--data", "missing.txt"), ("missing.txt",)),
        ((*BASE, "--data", "folder/"), ("--data folder ", ".txt.xz")),
        ((*BASE, "--init", "mine"), ("--init mine is a folder", "safetensors")),
        ((*BASE, "--data", "x" * 300), ("x" * 300,)),
        ((*BASE, "--data", "story.txt", "--data", "story.txt"), ("story.txt", "once")),
        ((*BASE, "--data", "pipe"), ("pipe", "regular file")),
        ((*BASE, "--data", "empty.txt"), ("empty.txt",)),
        ((*BASE, "--data", "binary.txt"), ("binary.txt", "UTF-8")),
        ((*BASE, "--data", "cut.txt.xz"), ("cut.txt.xz",)),
        ((*BASE, "--data", "short.txt", "--tokenizer", "bytes"), ("batch",)),
        ((*BASE, "--data", "story.txt", "--tokenizer", "runes"), ("runes",)),
        ((*BASE, "--events", "bad.jsonl"), ("bad.jsonl", "dance")),
        ((*BASE, "--events", "roles.jsonl", "--data", "story.txt", "--tokenizer", "bytes"),
         ("line 2 of roles.jsonl", "no SM 99")),
        ((*BASE, "--events", "deep.jsonl"), ("deep.jsonl",)),
        ((*BASE, "--events", "pipe"), ("pipe", "regular file")),
        (("--record", "mine", "--sms", "train=1,serve=0,doom=0"), ("mine", "loss.csv")),
        (("--record", "file", "--sms", "train=1,serve=0,doom=0"), ("file",)),
        (("--record", "file/out", "--sms", "train=1,serve=0,doom=0"), ("file/out",)),
        (("--record", "/proc/out", "--sms", "train=1,serve=0,doom=0"), ("/proc/out",)),
        ((*DOOM, "--wad", "missing.wad"), ("missing.wad", "--wad")),
        ((*DOOM, "--wad", "nothing.wad"), ("nothing.wad",)),
        ((*DOOM, "--wad", "no_maps.wad"), ("no_maps.wad",)),
        ((*DOOM, "--wad", "text.wad"), ("text.wad",)),
        ((*DOOM, "--wad", "pipe"), ("pipe", "regular file")),
        ((), ("terminal", "--record")),
    ],
)
def test_bad_input(folder: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    done = run(folder, *arguments)
    said = [line for line in done.stderr.splitlines() if line.startswith("ofa-tui: ")]
    assert done.returncode == 2, done.stderr
    assert len(said) == 1 and all(word in said[0] for word in words), done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists(), "a folder that got no run is taken away again"


def test_a_map_the_wad_lacks_is_named_with_those_it_has(folder: Path) -> None:
    done = run(folder, *DOOM, "--map", "E9M9")
    assert done.returncode == 2
    assert "E9M9" in done.stderr and ("E1M1" in done.stderr or "No Doom WAD was found" in done.stderr)


def test_a_name_that_is_not_utf8_is_recorded(folder: Path) -> None:
    name = os.fsdecode(b"b\xff.txt")
    (folder / name).write_text(STORY)
    done = run(folder, *BASE, "--data", name, "--tokenizer", "bytes", own_cache=False)
    assert done.returncode == 0, done.stderr
    assert "b\\udcff.txt" in (folder / "out" / "run.json").read_text()


def test_a_process_without_standard_error_records(folder: Path) -> None:
    command = f"exec {sys.executable} -m ofa_tui {' '.join(BASE)} --data story.txt --tokenizer bytes 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=folder)
    assert done.returncode == 0
    assert (folder / "out" / "summary.json").exists()


def test_what_ends_the_build_ends_the_compiler_too(folder: Path) -> None:
    """A compiler that would work for a minute, with a child, as drivers have."""
    compiler = folder / "slow-c++"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo slow 1 && exit\nsleep 61.5 & echo $! > {folder}/child; wait\n'
    )
    compiler.chmod(0o755)
    environment = os.environ | {"OFA_TUI_CACHE": str(folder / "cache"), "CXX": str(compiler)}
    command = [sys.executable, "-m", "ofa_tui", *BASE, "--data", "story.txt", "--tokenizer", "bytes"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (folder / "child").exists() or not (folder / "child").read_text().strip():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM and "SIGTERM" in said
    child = int((folder / "child").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(child, 0)
            time.sleep(0.05)
    assert not (folder / "out").exists()
    assert not list((folder / "cache").rglob("building-*"))


INTERRUPTED_BY_ITSELF = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
runpy.run_module("ofa_tui", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["ofa_tui.cli", "ofa_tui.console", "ofa_tui.errors"])
def test_ctrl_c_while_the_program_is_being_read_is_silent(module: str) -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_BY_ITSELF, module], capture_output=True, text=True,
                           timeout=60, stdin=subprocess.DEVNULL)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
