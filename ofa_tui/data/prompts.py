"""Beginnings of stories to choose from, one a line in `assets/prompts.txt`."""

from __future__ import annotations

from functools import cache

from ofa_tui import locations


@cache
def prompts() -> tuple[str, ...]:
    """All shipped prompts, none empty."""
    lines = (locations.assets() / "prompts.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line.strip())
