"""Way-finding graph of a level for the scripted player (structs NavNode, NavEdge, NavTrigger of cuda/doom/blob.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui.doom import layout
from ofa_tui.doom.levels import LevelData


@dataclass(frozen=True)
class Navigation:
    nodes: np.ndarray
    edges: np.ndarray
    triggers: np.ndarray
    sector_triggers: np.ndarray


def navigate(level: LevelData) -> Navigation:
    return Navigation(
        np.zeros(len(level.subsectors), layout.NAV_NODE), np.zeros(0, layout.NAV_EDGE), np.zeros(0, layout.NAV_TRIGGER),
        np.zeros(len(level.sectors) + 1, np.dtype("<i4")))
