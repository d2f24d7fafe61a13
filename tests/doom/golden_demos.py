"""Golden demos, their traces and their WADs."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from ofa_tui.doom import trace
from ofa_tui.doom.lmp import Demo, read_demo
from tests import wads

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT.parent / "shared" / "doom-golden"
"""Recorded from another engine, beside a developer's checkout. A user has no such folder and cannot fetch it."""
OWN = Path(__file__).with_name("golden")
"""Recorded from ours when it agreed with all of the reference."""
OWN_NAMES = (
    "e1m1-explore-2p-7323", "e1m1-explore-7323", "e2m4-explore-7323", "e3m2-explore-84c3", "map01-explore-a877",
    "map07-explore-a877", "map10-explore-c72d",
)
REFERENCE_NAMES = (
    "fd1-demo1", "fd1-demo2", "fd1-e1m1-s2-exit", "fd1-e1m1-s3-a", "fd1-e1m2-s4-a", "fd1-e2m2-s4-a", "fd1-e3m3-s5-a",
    "fd1-e3m8-s3-b", "fd1v0121-demo1", "fd1v0121-demo2", "fd1v0121-demo3", "fd2-demo1", "fd2-demo2", "fd2-demo3",
    "fd2-map01-s3-a", "fd2-map02-s5-a", "fd2-map07-s4-a", "fd2-map15-s4-a", "fd2-map30-s3-b", "fd2-map32-s2-b",
    "fd2v0121-demo1", "fd2v0121-demo3",
)


def file(folder: Path, name: str) -> Path:
    """A file of a golden set. Where the folder is, all of it must be; without the reference a test is skipped."""
    if not folder.is_dir():
        pytest.skip(f"no folder {folder} beside this checkout")
    if not (path := folder / name).is_file():
        pytest.fail(f"{path} is missing", pytrace=False)
    return path


def demo(folder: Path, name: str) -> Demo:
    return read_demo(file(folder, f"{name}.lmp"))


@functools.cache
def golden_trace(folder: Path, name: str) -> trace.Trace:
    return trace.load_trace(file(folder, f"{name}.npz"))


def sha256_of(folder: Path, name: str) -> str:
    """Of the WAD that the demo belongs to."""
    return str(golden_trace(folder, name)["wad_sha256"])


def blob_of(folder: Path, name: str) -> np.ndarray:
    """The demo's WAD, packed."""
    return wads.with_sha256(sha256_of(folder, name)).blob
