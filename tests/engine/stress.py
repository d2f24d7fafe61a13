"""Drivers that put functions of the kernel under stress, compiled with a line of the kernel's source changed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ofa_tui import abi_header, locations
from ofa_tui.engine.compiler import find_compiler

Change = tuple[str, str, str]
"""File, text that it has once, replacement."""


def build(driver: Path, work: Path, sanitizer: str, change: Change | None = None) -> Path:
    """The driver, compiled in `work` from a copy of the sources with `change` made to it."""
    sources = work / "cuda"
    shutil.copytree(locations.cuda_sources(), sources)
    abi_header.write_headers(work / "generated")
    if change:
        path = sources / change[0]
        assert path.read_text().count(change[1]) == 1, f"{change[0]} no longer says {change[1]!r} once"
        path.write_text(path.read_text().replace(change[1], change[2]))
    program = work / driver.stem
    flags = ["-std=c++20", "-O2", "-pthread", f"-I{sources}", f"-I{work / 'generated'}"]
    flags += [f"-fsanitize={sanitizer}"] if sanitizer else []
    subprocess.run([*find_compiler().command, *flags, driver, "-o", program], check=True, capture_output=True)
    return program


def run(program: Path, *arguments: int) -> tuple[str, str]:
    """What the driver printed on stdout and stderr."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this system's address layout is not one that the thread sanitizer supports")
    return done.stdout, done.stderr
