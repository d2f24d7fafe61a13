"""A record that every test of the commands reads: text, serving and Doom on the CPU, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofa_tui.cli import main
from tests.wads import freedoom

STEPS = 40
PROMPT = "<script>alert('a & b')</script> <img src=http://example.com/x.png>"
STORY = "Once there was a fox who lived under a hill & liked the <b>rain</b>.\n"


def make_record(folder: Path, *options: str, steps: int = STEPS) -> Path:
    """Records a short run beside its text; returns the record's folder."""
    text = folder.with_name("story.txt")
    text.write_text(STORY * 400)
    arguments = ["--record", str(folder), "--steps", str(steps), "--sms", "train=1,serve=1,doom=1", "--sweep-every",
                 "20", "--sweep-batches", "1", "--data", str(text), "--tokenizer", "bytes", "--frame-every", "0.5",
                 "--wad", str(freedoom("freedoom1").path), "--token-rate", "200", *options]
    assert main(arguments) == 0
    return folder


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 steps, two held-out sweeps, a prompt that looks like HTML, one game."""
    return make_record(tmp_path_factory.mktemp("records") / "first", "--prompt", PROMPT)


@pytest.fixture(scope="session")
def other_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with another seed and fewer steps."""
    return make_record(tmp_path_factory.mktemp("records") / "second", "--seed", "2", steps=25)
