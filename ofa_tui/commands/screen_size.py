"""The size of a terminal, as people type it."""

from __future__ import annotations

import re

from ofa_tui.errors import OfaError

MOST_COLUMNS, MOST_ROWS = 500, 200


def parse_size(text: str, option: str) -> tuple[int, int]:
    """(columns, rows) of `120x40`. Raises OfaError, which names the option, for what is none."""
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    columns, rows = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (1 <= columns <= MOST_COLUMNS and 1 <= rows <= MOST_ROWS):
        raise OfaError(f"{option} {text!r} is no size; write for example {option} 120x40, at most "
                       f"{MOST_COLUMNS}x{MOST_ROWS}")
    return columns, rows
