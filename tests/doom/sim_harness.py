"""A game as tests of the scripted player and scripts/doom_players.py use it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ofa_tui.doom import library
from ofa_tui.doom.library import COMMAND, STATUS, pointer
from ofa_tui.engine.compiler import find_compiler
from ofa_tui.errors import OfaError

__all__ = ["COMMAND", "HASH_COLUMNS", "STATUS", "Game", "compiler", "pointer"]

HASH_COLUMNS = ("mobj_hash", "mobj_hash2", "sector_hash")


def compiler() -> str | None:
    """A C++ compiler, None where there is none."""
    try:
        return " ".join(find_compiler().command)
    except OfaError:
        return None


class Game(library.Game):
    """One game. `blob` u1 [bytes] is a packed WAD."""

    def __init__(self, blob: np.ndarray) -> None:
        super().__init__(blob)
        self.lib = SimpleNamespace(
            set_behaviour=self.library.game_set_behaviour, set_keys=self.library.game_set_keys)

    def start(self, _: None = None, **settings: int) -> None:  # type: ignore[override]
        super().start(**settings)

    def hashes(self) -> dict[str, int]:
        row = super().row()
        return {name: int(row[name]) for name in HASH_COLUMNS}

    def row(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """Columns of a trace's row."""
        row = super().row()
        return {name: np.atleast_1d(row[name]) for name in library.ROW.names or ()}
