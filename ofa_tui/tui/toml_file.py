"""TOML that a person wrote: whatever the file is, it is read or refused in words."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """The text of a regular file, without a byte order mark. Raises FileNotFoundError, else ValueError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would wait for its writer
            raise ValueError("it is not a regular file")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(error.strerror or type(error).__name__) from None


def parse(text: str) -> dict[str, Any]:
    """Raises ValueError for what is not TOML, or nested deeper than it can be read."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
