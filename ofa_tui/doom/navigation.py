"""Way-finding graph of a level for the scripted player (structs NavNode, NavEdge, NavTrigger of cuda/doom/blob.h).

Nodes are subsectors: convex, so that a straight walk from one opening to another stays inside. Openings are the
two-sided pieces of wall, and the parts of a subsector's outline where no wall stands. Each is tested for a place where a
player fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui.doom import layout
from ofa_tui.doom.bsp import BspTree, Polygon
from ofa_tui.doom.clearance import RADIUS, STEP, Clearance
from ofa_tui.doom.levels import FIXED, LevelData
from ofa_tui.doom.specials import LineUse, Specials, read_specials

OPEN, MOVES, TELEPORT = range(3)
DROP, DAMAGE, DOOR, CROSSES = 1, 2, 4, 8
BY_CROSSING, BY_USING, BY_SHOOTING = range(3)

_OUTWARDS = 0.125
_SHORTEST = 1.0
_ON_LINE = 0.5
_USE_DISTANCES = (4.0, 16.0, 32.0)
_SHOOT_DISTANCES = (32.0, 96.0, 224.0)
_ALONG = (0.5, 0.25, 0.75, 0.1, 0.9)


@dataclass(frozen=True)
class Navigation:
    """NAV_NODE [subsectors], NAV_EDGE [n], NAV_TRIGGER [n] by sector, i4 [sectors + 1]."""

    nodes: np.ndarray
    edges: np.ndarray
    triggers: np.ndarray
    sector_triggers: np.ndarray


@dataclass(frozen=True)
class _Openings:
    """Pieces between two subsectors: `ends` f8 [n, 4], left end first seen from `source`; `line` -1 inside a sector."""

    ends: np.ndarray
    source: np.ndarray
    target: np.ndarray
    line: np.ndarray
    side: np.ndarray


def navigate(level: LevelData) -> Navigation:
    """The graph of one level."""
    tree = BspTree(level)
    polygons = tree.polygons()
    centres = _centres(level, polygons)
    things = level.things
    thing_node = tree.locate(things["x"].astype(np.float64), things["y"].astype(np.float64))
    sector_of = level.subsectors["sector"].astype(np.int64)
    specials = read_specials(level, sector_of[thing_node])
    clearance = Clearance(level, specials.movable)
    openings = _find_openings(level, tree, polygons)
    edges, source = _edges(level, openings, clearance, specials, centres, thing_node)
    order = np.argsort(source, kind="stable")
    edges, source = edges[order], source[order]
    nodes = np.zeros(len(level.subsectors), layout.NAV_NODE)
    nodes["x"], nodes["y"] = np.rint(centres[:, 0]), np.rint(centres[:, 1])
    counts = np.bincount(source, minlength=len(nodes))
    nodes["n_edges"] = counts
    nodes["first_edge"] = np.cumsum(counts) - counts
    triggers = _triggers(level, tree, clearance, specials.uses)
    first = np.searchsorted(triggers["sector"], np.arange(len(level.sectors) + 1), "left").astype("<i4")
    return Navigation(nodes, edges, triggers, first)


def _centres(level: LevelData, polygons: list[Polygon]) -> np.ndarray:
    """f8 [subsectors, 2]: mean of the corners; of a vanished polygon the middle of its first wall piece."""
    first = level.segs[level.subsectors["first_seg"]]
    a, b = level.vertices[first["v1"]], level.vertices[first["v2"]]
    centres = np.stack(((a["x"] / FIXED + b["x"] / FIXED) / 2, (a["y"] / FIXED + b["y"] / FIXED) / 2), 1)
    for number, polygon in enumerate(polygons):
        if len(polygon) >= 3:
            centres[number] = [sum(p[0] for p in polygon) / len(polygon), sum(p[1] for p in polygon) / len(polygon)]
    return centres


def _find_openings(level: LevelData, tree: BspTree, polygons: list[Polygon]) -> _Openings:
    segs, vertices = level.segs, level.vertices
    vx, vy = vertices["x"] / FIXED, vertices["y"] / FIXED
    n_segs = level.subsectors["n_segs"].astype(np.int64)
    owner = np.repeat(np.arange(len(level.subsectors)), n_segs)
    listed = np.repeat(level.subsectors["first_seg"].astype(np.int64) - np.cumsum(n_segs) + n_segs, n_segs) \
        + np.arange(len(owner))
    walls = np.stack((vx[segs["v1"]], vy[segs["v1"]], vx[segs["v2"]], vy[segs["v2"]]), 1)[listed]
    two_sided = segs["back"][listed] >= 0
    # A wall piece runs with its subsector on the right: seen from inside, it begins at the left.
    doors, door_owner, door_seg = walls[two_sided], owner[two_sided], listed[two_sided]
    outline, outline_owner = _bare_outlines(level, polygons, walls)
    ends = np.vstack((doors, outline))
    source = np.concatenate((door_owner, outline_owner))
    line = np.concatenate((segs["line"][door_seg], np.full(len(outline), -1)))
    front = level.lines["side"][segs["line"][door_seg], 0] == segs["side"][door_seg]
    side = np.concatenate((np.where(front, 0, 1), np.full(len(outline), -1)))

    along = ends[:, 2:] - ends[:, :2]
    length = np.hypot(along[:, 0], along[:, 1])
    keep = length >= _SHORTEST
    ends, source, line, side, along, length = (a[keep] for a in (ends, source, line, side, along, length))
    outwards = np.stack((-along[:, 1], along[:, 0]), 1) / length[:, None] * _OUTWARDS
    parts, piece, target = tree.cut(ends + np.tile(outwards, 2))
    parts = parts - np.tile(outwards, 2)[piece]
    keep = (np.hypot(*(parts[:, 2:] - parts[:, :2]).T) >= _SHORTEST) & (target != source[piece])
    parts, piece, target = parts[keep], piece[keep], target[keep]
    return _Openings(parts, source[piece], target, line[piece], side[piece])


def _bare_outlines(level: LevelData, polygons: list[Polygon], walls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parts of the polygons' outlines along which their own subsector has no wall piece: (f8 [n, 4], owner i8 [n])."""
    pieces: list[tuple[float, float, float, float]] = []
    owners: list[int] = []
    all_walls = walls.tolist()
    start = 0
    for number, count in enumerate(level.subsectors["n_segs"].tolist()):
        own = all_walls[start:start + count]
        start += count
        polygon = polygons[number]
        for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
            length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
            if length < _SHORTEST:
                continue
            ux, uy = (x2 - x1) / length, (y2 - y1) / length
            covered = []
            for ax, ay, bx, by in own:
                if abs(ux * (ay - y1) - uy * (ax - x1)) < _ON_LINE and abs(ux * (by - y1) - uy * (bx - x1)) < _ON_LINE:
                    a, b = ux * (ax - x1) + uy * (ay - y1), ux * (bx - x1) + uy * (by - y1)
                    covered.append((min(a, b), max(a, b)))
            at = 0.0
            for low, high in [*sorted(covered), (length, length)]:
                if low - at >= _SHORTEST:
                    # Corners run counterclockwise; seen from inside the far end of the edge is the left one.
                    pieces.append((x1 + ux * low, y1 + uy * low, x1 + ux * at, y1 + uy * at))
                    owners.append(number)
                at = max(at, high)
    return np.array(pieces, np.float64).reshape(-1, 4), np.array(owners, np.int64)


def _edges(level: LevelData, openings: _Openings, clearance: Clearance, specials: Specials, centres: np.ndarray,
           thing_node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(NAV_EDGE [n], subsector each starts from i8 [n])."""
    sector_of = level.subsectors["sector"].astype(np.int64)
    here, there = sector_of[openings.source], sector_of[openings.target]
    crossing, now, later = _crossing_points(openings.ends, here, clearance)
    teleport = np.full(len(here), -1)
    for line, thing in specials.teleports.items():
        teleport[(openings.line == line) & (openings.side == 0)] = thing_node[thing]
    target = np.where(teleport >= 0, teleport, openings.target)
    there = sector_of[target]
    floor = level.sectors["floor_height"].astype(np.int64) // FIXED
    flags = np.where((floor[here] - floor[there] > STEP) & (teleport < 0), DROP, 0)
    flags |= np.where(specials.hurts[there], DAMAGE, 0)
    flags |= np.where(np.isin(openings.line, sorted(specials.door_key)) & (openings.side == 0), DOOR, 0)
    flags |= np.where(np.isin(openings.line, sorted(specials.crossed)), CROSSES, 0)
    keys = np.array([specials.door_key.get(line, 0) for line in openings.line.tolist()], np.int64)
    far = np.hypot(*(np.where(teleport[:, None] >= 0, crossing, centres[target]) - crossing).T)
    cost = np.hypot(*(crossing - centres[openings.source]).T) + far
    edges = np.zeros(len(here), layout.NAV_EDGE)
    edges["to"], edges["line"] = target, openings.line
    edges["kind"] = np.where(teleport >= 0, TELEPORT, np.where(now, OPEN, MOVES))
    edges["flags"], edges["key"] = flags, np.where(flags & DOOR, keys, 0)
    edges["x"], edges["y"] = np.rint(crossing[:, 0]), np.rint(crossing[:, 1])
    for column, field in enumerate(("x1", "y1", "x2", "y2")):
        edges[field] = np.rint(openings.ends[:, column])
    edges["cost"] = np.minimum(np.rint(cost), 32767)
    passable = now | later
    return edges[passable], openings.source[passable]


def _crossing_points(ends: np.ndarray, sector: np.ndarray, clearance: Clearance) -> tuple[np.ndarray, ...]:
    """(f8 [n, 2] best place on each opening, bool [n] passable now, bool [n] passable later)."""
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    margin = np.minimum((RADIUS + 1) / length, 0.5)
    shares = np.stack([*(np.full(len(ends), share) for share in _ALONG), margin, 1 - margin], 1)
    places = ends[:, None, :2] + shares[..., None] * (ends[:, None, 2:] - ends[:, None, :2])
    n = shares.shape[1]
    found = clearance.places(places[..., 0].ravel(), places[..., 1].ravel(), np.repeat(sector, n))
    now, later = found.now.reshape(-1, n), found.later.reshape(-1, n)
    # The first of the best: passable now before passable later before nothing, the middle before the ends.
    best = np.argmax(2 * now + later, 1)
    rows = np.arange(len(ends))
    return places[rows, best], now[rows, best], later[rows, best]


def _triggers(level: LevelData, tree: BspTree, clearance: Clearance, uses: list[LineUse]) -> np.ndarray:
    """NAV_TRIGGER [n], sorted by sector."""
    table = np.zeros(len(uses), layout.NAV_TRIGGER)
    sector_of = level.subsectors["sector"].astype(np.int64)
    for number, use in enumerate(sorted(uses, key=lambda use: use.sector)):
        line = level.lines[use.line]
        start = level.vertices[line["v1"]]
        dx, dy = line["dx"] / FIXED, line["dy"] / FIXED
        length = max(float(np.hypot(dx, dy)), 1.0)
        nx, ny = dy / length, -dx / length
        nearest = RADIUS * (abs(nx) + abs(ny))
        distances = {BY_CROSSING: (0.0,), BY_USING: _USE_DISTANCES, BY_SHOOTING: _SHOOT_DISTANCES}[use.use]
        offsets = np.array([0.0 if use.use == BY_CROSSING else nearest + more for more in distances])
        offsets, shares = (grid.ravel() for grid in np.meshgrid(offsets, np.array(_ALONG), indexing="ij"))
        x = start["x"] / FIXED + shares * dx + offsets * nx
        y = start["y"] / FIXED + shares * dy + offsets * ny
        # On the line itself the subsector in front of it counts.
        node = tree.locate(x + nx * _OUTWARDS, y + ny * _OUTWARDS)
        found = clearance.places(x, y, sector_of[node])
        score = 2 * found.now + found.later
        best = int(np.argmax(score))
        table[number] = (
            use.line, use.sector, int(node[best]) if score[best] or use.use == BY_CROSSING else -1,
            round(float(x[best])), round(float(y[best])), use.use, use.key, use.exits, use.repeats,
        )
    return table
