"""Questions to a level's BSP tree: which subsector a point or a piece of line lies in, and what each one looks like.

Coordinates are map units (f8). A node's right child lies to the right of its partition line.
"""

from __future__ import annotations

import numpy as np

from ofa_tui.doom.levels import FIXED, SUBSECTOR_BIT, LevelData
from ofa_tui.doom.wad import WadError

_MARGIN = 64.0
_ON_LINE = 0.05
_MOST_PARTS = 32

Point = tuple[float, float]
Polygon = list[Point]


class BspTree:
    """The partition lines of a level, ready for arithmetic."""

    def __init__(self, level: LevelData) -> None:
        nodes = level.nodes
        self.x, self.y = nodes["x"] / FIXED, nodes["y"] / FIXED
        self.dx, self.dy = nodes["dx"] / FIXED, nodes["dy"] / FIXED
        self.child = nodes["child"].astype(np.int64)
        self.root = len(nodes) - 1 if len(nodes) else SUBSECTOR_BIT
        self.level = level

    def locate(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Subsector of each point, i8 [n]."""
        node = np.full(len(x), self.root)
        while (inner := np.flatnonzero(node < SUBSECTOR_BIT)).size:
            at = node[inner]
            cross = self.dx[at] * (y[inner] - self.y[at]) - self.dy[at] * (x[inner] - self.x[at])
            node[inner] = self.child[at, (cross >= 0).astype(np.int64)]
        return node - SUBSECTOR_BIT

    def cut(self, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cuts line pieces (f8 [n, 4]: x1, y1, x2, y2) where they leave a subsector.

        Returns (parts f8 [m, 4], the piece each comes from i8 [m], its subsector i8 [m]).
        """
        parts, source = pieces, np.arange(len(pieces))
        node = np.full(len(pieces), self.root)
        done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        while len(parts):
            if len(parts) > _MOST_PARTS * (len(pieces) + 100):
                raise WadError(f"Map {self.level.name} is damaged: its BSP nodes cut it to shreds; use another WAD.")
            leaf = node >= SUBSECTOR_BIT
            if leaf.any():
                done.append((parts[leaf], source[leaf], node[leaf] - SUBSECTOR_BIT))
                parts, source, node = parts[~leaf], source[~leaf], node[~leaf]
            dx, dy = self.dx[node], self.dy[node]
            start = dx * (parts[:, 1] - self.y[node]) - dy * (parts[:, 0] - self.x[node])
            end = dx * (parts[:, 3] - self.y[node]) - dy * (parts[:, 2] - self.x[node])
            crossing = (start > 0) != (end > 0)
            # A piece on one side goes there whole; one that crosses goes to both, cut at the partition.
            share = np.where(crossing, start / np.where(crossing, start - end, 1.0), 0.0)
            middle = parts[:, :2] + share[:, None] * (parts[:, 2:] - parts[:, :2])
            first = np.where(crossing[:, None], np.hstack((parts[:, :2], middle)), parts)
            second = np.hstack((middle, parts[:, 2:]))[crossing]
            left = (start > 0).astype(np.int64)
            parts = np.vstack((first, second))
            source = np.concatenate((source, source[crossing]))
            node = np.concatenate((self.child[node, left], self.child[node[crossing], 1 - left[crossing]]))
        if not done:
            return np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, np.int64)
        return tuple(np.concatenate(columns) for columns in zip(*done, strict=True))  # type: ignore[return-value]

    def polygons(self) -> list[Polygon]:
        """Each subsector's convex area, corners counterclockwise; empty where nothing is left of it."""
        vertices, segs, subsectors = self.level.vertices, self.level.segs, self.level.subsectors
        vx, vy = (vertices["x"] / FIXED).tolist(), (vertices["y"] / FIXED).tolist()
        v1, v2 = segs["v1"].tolist(), segs["v2"].tolist()
        firsts, counts = subsectors["first_seg"].tolist(), subsectors["n_segs"].tolist()
        left, right, low, high = min(vx) - _MARGIN, max(vx) + _MARGIN, min(vy) - _MARGIN, max(vy) + _MARGIN
        partitions = list(zip(self.x.tolist(), self.y.tolist(), self.dx.tolist(), self.dy.tolist(), strict=True))
        children = self.child.tolist()
        polygons: list[Polygon] = [[] for _ in subsectors]
        pending = [(self.root, [(left, low), (right, low), (right, high), (left, high)])]
        while pending:
            node, polygon = pending.pop()
            if node < SUBSECTOR_BIT:
                x, y, dx, dy = partitions[node]
                right_child, left_child = children[node]
                pending.append((right_child, clip(polygon, x, y, dx, dy)))
                pending.append((left_child, clip(polygon, x, y, -dx, -dy)))
                continue
            number = node - SUBSECTOR_BIT
            for seg in range(firsts[number], firsts[number] + counts[number]):
                x, y = vx[v1[seg]], vy[v1[seg]]
                polygon = clip(polygon, x, y, vx[v2[seg]] - x, vy[v2[seg]] - y)
            polygons[number] = polygon
        return polygons


def clip(polygon: Polygon, x: float, y: float, dx: float, dy: float) -> Polygon:
    """The part of a convex polygon to the right of a directed line."""
    length = (dx * dx + dy * dy) ** 0.5
    if not polygon or length == 0:
        return polygon
    nx, ny = dy / length, -dx / length
    offset = nx * x + ny * y
    distances = [nx * px + ny * py - offset for px, py in polygon]
    if min(distances) >= -_ON_LINE:
        return polygon
    if max(distances) <= _ON_LINE:
        return []
    kept: Polygon = []
    last, last_distance = polygon[-1], distances[-1]
    for point, distance in zip(polygon, distances, strict=True):
        if (distance > 0) != (last_distance > 0):
            share = last_distance / (last_distance - distance)
            kept.append((last[0] + share * (point[0] - last[0]), last[1] + share * (point[1] - last[1])))
        if distance > 0:
            kept.append(point)
        last, last_distance = point, distance
    return kept
