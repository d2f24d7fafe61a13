"""Writes cuda/doom/names.h: the names of assets/doom/*.csv as enumerators for the engine.

Run `python -m ofa_tui.doom.names` after a change of a name or number there.
"""

from __future__ import annotations

import re

from ofa_tui import locations
from ofa_tui.doom import tables

_WIDTH = 118


def enumerator(prefix: str, name: str) -> str:
    """STATE_PLAY_RUN1; code pointers are split at capitals: FireShotgun2 becomes ACTION_FIRE_SHOTGUN2."""
    word = "NONE" if name == "-" else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return f"{prefix}_{word.upper()}"


def header() -> str:
    """The text of cuda/doom/names.h."""
    parts = [
        "// Names of the behaviour tables' rows, by number. Written by ofa_tui/doom/names.py from assets/doom/*.csv.",
        "#pragma once", "", "#include <stdint.h>", "", "namespace doom {", "",
        _enum("Action", "ACTION", list(tables.actions())),
        _enum("StateName", "STATE", list(tables.numbers("states"))),
        _enum("ThingName", "THING", list(tables.numbers("things"))),
        _enum("SoundName", "SOUND", list(tables.numbers("sounds"))),
        "}  // namespace doom", "",
    ]
    return "\n".join(parts)


def _enum(name: str, prefix: str, entries: list[str]) -> str:
    lines, line = [], "   "
    for word in [*(enumerator(prefix, entry) for entry in entries), f"{prefix}_COUNT"]:
        if len(line) + len(word) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {word},"
    lines.append(line.rstrip(","))
    return f"enum {name} : int16_t {{\n" + "\n".join(lines) + "\n};\n"


if __name__ == "__main__":
    (locations.cuda_sources() / "doom" / "names.h").write_text(header(), "utf-8")
