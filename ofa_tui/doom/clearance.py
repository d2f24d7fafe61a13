"""Where a player fits: the original's test of a place, in bulk and in map units.

A place is a square of 32 units around a point. Every line that crosses it counts: one-sided and blocking ones forbid
the place, two-sided ones narrow floor and ceiling to their opening.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui.doom.levels import FIXED, LevelData

RADIUS, HEIGHT, STEP = 16, 56, 24
_BLOCKING = 1
_CELL = 128
_ANY = 1e9
_STEPS_AT_ONCE = 4


@dataclass(frozen=True)
class Places:
    """Of each place asked for, f8/bool [n]: can a player who comes from the given sector be there?"""

    now: np.ndarray
    """As the level starts."""
    later: np.ndarray
    """If the sectors that can move are as one wishes."""


class Clearance:
    """The lines of a level; `movable` bool [sectors] says which sectors change height in play."""

    def __init__(self, level: LevelData, movable: np.ndarray) -> None:
        lines, sectors, self._grid = level.lines, level.sectors, level.blockmap
        start = level.vertices[lines["v1"]]
        self._x, self._y = start["x"] / FIXED, start["y"] / FIXED
        self._dx, self._dy = lines["dx"] / FIXED, lines["dy"] / FIXED
        self._box = lines["box"] / FIXED
        front, back = lines["sector"][:, 0], lines["sector"][:, 1]
        self._solid = (back < 0) | (lines["flags"] & _BLOCKING != 0)
        self._floor = sectors["floor_height"] / FIXED
        self._ceiling = sectors["ceiling_height"] / FIXED
        self._line_floor = np.maximum(self._floor[front], self._floor[back])
        self._line_ceiling = np.minimum(self._ceiling[front], self._ceiling[back])
        self._movable = movable
        self._line_moves = movable[front] | movable[back]

    def places(self, x: np.ndarray, y: np.ndarray, sector: np.ndarray, height: np.ndarray) -> Places:
        """Tests places around (x, y) f8 [n] for a player in `sector` i8 [n] whose feet are at `height` f8 [n]."""
        place, line = self._crossing(x, y)
        forbidden = np.zeros(len(x), bool)
        forbidden[place[self._solid[line]]] = True
        fixed = ~self._line_moves[line]
        now = self._fits(sector, height, place, line, np.zeros(len(x), bool))
        later = self._fits(sector, height, place[fixed], line[fixed], self._movable[sector])
        return Places(now & ~forbidden, later & ~forbidden)

    def _fits(self, sector: np.ndarray, height: np.ndarray, place: np.ndarray, line: np.ndarray,
              any_height: np.ndarray) -> np.ndarray:
        floor = np.where(any_height, -_ANY, self._floor[sector])
        ceiling = np.where(any_height, _ANY, self._ceiling[sector])
        np.maximum.at(floor, place, self._line_floor[line])
        np.minimum.at(ceiling, place, self._line_ceiling[line])
        # The square touches the next steps of a stair before the feet are on this one: climb them one after another.
        reached = height.copy()
        for _ in range(_STEPS_AT_ONCE):
            climb = self._line_floor[line] <= reached[place] + STEP
            np.maximum.at(reached, place[climb], self._line_floor[line[climb]])
        return (ceiling - floor >= HEIGHT) & (any_height | ((ceiling - height >= HEIGHT) & (floor <= reached + STEP)))

    def _crossing(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (place, line) of lines that cross the square around a place; a pair may come more than once."""
        grid = self._grid
        places, lines = [], []
        left, right = (np.floor((x + d - grid.x / FIXED) / _CELL).astype(np.int64) for d in (-RADIUS, RADIUS))
        low, high = (np.floor((y + d - grid.y / FIXED) / _CELL).astype(np.int64) for d in (-RADIUS, RADIUS))
        wide, tall = left != right, low != high
        for column, row, new in ((left, low, True), (right, low, wide), (left, high, tall), (right, high, wide & tall)):
            inside = np.flatnonzero(
                (column >= 0) & (column < grid.columns) & (row >= 0) & (row < grid.rows) & new)
            cell = row[inside] * grid.columns + column[inside]
            first = grid.first[cell].astype(np.int64)
            count = grid.first[cell + 1] - first
            places.append(np.repeat(inside, count))
            lines.append(grid.lines[np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())])
        place, line = np.concatenate(places), np.concatenate(lines)
        px, py = x[place], y[place]
        near = ((px + RADIUS > self._box[line, 2]) & (px - RADIUS < self._box[line, 3])
                & (py + RADIUS > self._box[line, 1]) & (py - RADIUS < self._box[line, 0]))
        place, line, px, py = place[near], line[near], px[near], py[near]
        centre = self._dx[line] * (py - self._y[line]) - self._dy[line] * (px - self._x[line])
        reach = RADIUS * (np.abs(self._dx[line]) + np.abs(self._dy[line]))
        crosses = np.abs(centre) < reach
        return place[crosses], line[crosses]
