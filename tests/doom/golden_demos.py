"""Where golden demos, their traces and their WADs are."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import pytest

from ofa_tui.doom import packer, search, trace
from ofa_tui.doom.lmp import Demo, read_demo

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT.parent / "shared" / "doom-golden"
"""Recorded from another engine, beside a developer's checkout."""
OWN = Path(__file__).with_name("golden")
"""Recorded from ours when it agreed with all of the reference."""
REQUIRED = "OFA_TUI_REQUIRE_WADS"


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.lmp"))


def demo(folder: Path, name: str) -> Demo:
    return read_demo(folder / f"{name}.lmp")


@functools.cache
def golden_trace(folder: Path, name: str) -> trace.Trace:
    return trace.load_trace(folder / f"{name}.npz")


@functools.cache
def wads() -> dict[str, Path]:
    """WAD files on this machine, by SHA-256."""
    return search.by_sha256()


@functools.cache
def find_blob(sha256: str) -> np.ndarray | None:
    """The packed WAD with that hash, None where it is not on this machine."""
    path = wads().get(sha256)
    return None if path is None else packer.load(path).blob


def blob(sha256: str) -> np.ndarray:
    """As `find_blob`; a test that needs a WAD which is not here is skipped, or fails where WADs are required."""
    if (found := find_blob(sha256)) is None:
        missing = f"the WAD with SHA-256 {sha256[:12]}... is not here; scripts/fetch_wads.py gets it"
        if os.environ.get(REQUIRED):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def blob_of(folder: Path, name: str) -> np.ndarray:
    return blob(str(golden_trace(folder, name)["wad_sha256"]))
