"""C++ drivers of parts of the kernel, built from a copy of the sources that may be changed first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ofa_tui import abi_header, locations
from ofa_tui.engine.compiler import find_compiler

SourceChange = tuple[str, str, str]
"""File below cuda/, a text that stands in it once, what comes in its place."""


def build(driver: Path, work: Path, sanitizer: str, change: SourceChange | None = None) -> Path:
    """The program made of `driver` and a copy of the sources in `work`."""
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


def run(program: Path, *arguments: Any) -> tuple[str, str]:
    """What it printed on stdout and stderr. Skips the test where the thread sanitizer cannot run."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this system's address layout is not one that the thread sanitizer supports")
    return done.stdout, done.stderr
