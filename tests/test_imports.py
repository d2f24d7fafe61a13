"""Help and headless records start fast and run on machines without a terminal, a GPU or the extras: they load none of
their packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("textual", "pycuda", "starlette", "uvicorn")
STORY = "Once there was a fox who lived under a hill and liked the rain.\n" * 400


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--record", "out", "--steps", "1", "--sms", "train=1,serve=1,doom=0",
         "--data", "story.txt", "--tokenizer", "bytes"],
    ],
    ids=["help", "record"],
)
def test_nothing_heavy_is_imported(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(STORY)
    code = f"""
import sys
from ofa_tui.cli import main
try:
    assert main({arguments!r}) == 0
except SystemExit as end:
    assert not end.code
print("loaded:", [name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"
