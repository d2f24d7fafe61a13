"""Proofs that were made before: what was shown of a program set, kept under the hash of all that it rests on."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from ofa_tui import abi, locations, presets
from ofa_tui.program.types import ProgramSet

NEWEST = 32
"""Proofs that are kept."""


def proof_of(programs: ProgramSet) -> list[str]:
    """The lines of `validate(programs)`'s report; from the cache where this very set was proved by this very code.

    Raises ProgramError as `validate` does: what was refused is never kept.
    """
    kept = locations.cache() / "proofs" / f"{fingerprint(programs)}.json"
    lines = _read(kept)
    if lines is None:
        from ofa_tui.program.validate import validate

        lines = validate(programs).lines()
        _write(kept, lines)
    return lines


def fingerprint(programs: ProgramSet) -> str:
    """SHA-256 of everything in a program set, and of the code that judges it."""
    digest = hashlib.sha256(_code())
    for field in dataclasses.fields(programs):
        if field.name != "programs":
            digest.update(repr((field.name, getattr(programs, field.name))).encode())
    for name, program in programs.programs.items():
        head = (name, program.name, program.claims, program.labels, program.tasks.dtype.descr, program.tasks.shape)
        digest.update(repr(head).encode() + np.ascontiguousarray(program.tasks).tobytes())
    return digest.hexdigest()


@cache
def _code() -> bytes:
    digest = hashlib.sha256(f"{sys.version} {np.__version__}".encode())
    for file in [*sorted(Path(__file__).parent.glob("*.py")), Path(abi.__file__), Path(presets.__file__)]:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.digest()


def _read(kept: Path) -> list[str] | None:
    try:
        lines = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    sound = isinstance(lines, list) and all(isinstance(line, str) for line in lines)
    return lines if sound and lines else None


def _write(kept: Path, lines: list[str]) -> None:
    """Whole or not at all; a cache that cannot be written only costs time."""
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=kept.parent, delete=False) as scratch:
            json.dump(lines, scratch)
        os.replace(scratch.name, kept)
        by_age = sorted(kept.parent.iterdir(), key=lambda file: file.stat().st_mtime)
        for old in by_age[:-NEWEST]:
            old.unlink(missing_ok=True)
