"""The helpers beside these tests import each other by their plain names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of four seconds."""
    from replay_session import record

    return record(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="session")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of minutes."""
    from replay_session import record

    return record(tmp_path_factory.mktemp("runs") / "long", long=True)
