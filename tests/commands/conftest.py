"""Records that all tests of the commands read, made once. The UI's tests have a terminal that they borrow."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from short_record import OTHER_STEPS, PROMPT, make_record

sys.path.insert(0, str(Path(__file__).parents[1] / "tui"))


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 steps, two held-out sweeps or three, a prompt that looks like HTML, one game."""
    return make_record(tmp_path_factory.mktemp("records") / "first", "--prompt", PROMPT)


@pytest.fixture(scope="session")
def other_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with another seed and fewer steps."""
    return make_record(tmp_path_factory.mktemp("others") / "second", "--seed", "2", steps=OTHER_STEPS)
