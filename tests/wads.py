"""WADs that tests need, and what becomes of a test whose WAD or demo is not here. No test decides that on its own."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import NoReturn

import pytest

from ofa_tui.doom import packed, search

REQUIRED = "OFA_TUI_REQUIRE_WADS"
"""Environment variable: where it is set, as .ci/run does, nothing that can be had may be missing."""

FREEDOOM = {
    "freedoom1": "7323bcc168c5a45ff10749b339960e98314740a734c30d4b9f3337001f9e703d",
    "freedoom2": "a8772e088847032510d97ba2312406a6998f21cbab44d4ff10696faa9c0ecd4b",
}
"""SHA-256 of Freedoom 0.13.0, which comes with the package vizdoom."""


def missing(what: str) -> NoReturn:
    """Skips the test, or fails it where REQUIRED is set."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{what}, and {REQUIRED} is set", pytrace=False)
    pytest.skip(what)


@functools.cache
def here() -> dict[str, Path]:
    """WAD files on this machine, by SHA-256."""
    return search.by_sha256()


@functools.cache
def find(sha256: str) -> packed.PackedWad | None:
    """The WAD with that hash, packed; None where it is not here."""
    path = here().get(sha256)
    return None if path is None else packed.load(path)


def with_sha256(sha256: str) -> packed.PackedWad:
    """As `find`, for tests that need it."""
    return find(sha256) or missing(f"the WAD with SHA-256 {sha256[:12]}... is not here; scripts/fetch_wads.py gets it")


def freedoom(name: str) -> packed.PackedWad:
    """Freedoom 0.13.0, packed: `freedoom1` or `freedoom2`."""
    return with_sha256(FREEDOOM[name])
