"""What goes wrong at the user's end is one sentence with the way out, a non-zero exit code, and leaves nothing behind.

Each case is a real process without a terminal; the cases of the terminal itself are in tests/tui/test_terminal.py.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

STORY = "Once there was a fox who lived under a hill and liked the rain.\n" * 400


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOOMWAD")}
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
        (("--backend", "cuda"), ("--backend host",)),
        (("--player", "dancer"), ("dancer", "explore")),
        (("dance",), ("dance", "replay")),
        (("replay", "nowhere"), ("nowhere",)),
        ((*BASE, "--data", "missing.txt"), ("missing.txt",)),
        ((*BASE, "--data", "empty.txt"), ("empty.txt",)),
        ((*BASE, "--data", "binary.txt"), ("binary.txt", "UTF-8")),
        ((*BASE, "--data", "cut.txt.xz"), ("cut.txt.xz",)),
        ((*BASE, "--data", "short.txt", "--tokenizer", "bytes"), ("batch",)),
        ((*BASE, "--data", "story.txt", "--tokenizer", "runes"), ("runes",)),
        ((*BASE, "--events", "bad.jsonl"), ("bad.jsonl", "dance")),
        (("--record", "file", "--sms", "train=1,serve=0,doom=0"), ("file",)),
        (("--record", "file/out", "--sms", "train=1,serve=0,doom=0"), ("file/out",)),
        (("--record", "/proc/out", "--sms", "train=1,serve=0,doom=0"), ("/proc/out",)),
        ((*DOOM, "--wad", "missing.wad"), ("missing.wad", "--wad")),
        ((*DOOM, "--wad", "nothing.wad"), ("nothing.wad",)),
        ((*DOOM, "--wad", "no_maps.wad"), ("no_maps.wad",)),
        ((*DOOM, "--wad", "text.wad"), ("text.wad",)),
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
