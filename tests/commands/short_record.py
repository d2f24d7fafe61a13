"""Short runs on the CPU with text, serving and Doom, recorded as a person would."""

from __future__ import annotations

from pathlib import Path

from ofa_tui.cli import main
from tests.wads import freedoom

STEPS, OTHER_STEPS = 40, 25
PROMPT = "<script>alert('a & b')</script> <img src=http://example.com/x.png>"
STORY = "Once there was a fox who lived under a hill & liked the <b>rain</b>.\n"


def make_record(folder: Path, *options: str, steps: int = STEPS) -> Path:
    """Records a run beside its text; returns the record's folder."""
    text = folder.with_name("story.txt")
    text.write_text(STORY * 400)
    arguments = ["--record", str(folder), "--steps", str(steps), "--sms", "train=1,serve=1,doom=1", "--sweep-every",
                 "20", "--sweep-batches", "1", "--data", str(text), "--tokenizer", "bytes", "--frame-every", "0.5",
                 "--wad", str(freedoom("freedoom1").path), "--token-rate", "200", *options]
    assert main(arguments) == 0
    return folder
