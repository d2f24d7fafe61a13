"""Way-finding graph of a level for the scripted player (structs NavNode, NavEdge, NavTrigger of cuda/doom/blob.h).

Nodes are subsectors: convex, so that a straight walk from one opening to another stays inside. Openings are the
two-sided pieces of wall, and the parts of a subsector's outline where no wall stands. Each is tested for a place where
a player fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui.doom import layout
from ofa_tui.doom.bsp import BspTree, Polygon
from ofa_tui.doom.clearance import RADIUS, STEP, Clearance
from ofa_tui.doom.levels import FIXED, LIMITS, LevelData
from ofa_tui.doom.specials import LineUse, Specials, read_specials
from ofa_tui.doom.wad import WadError

NARROW = 1
OPEN, MOVES, TELEPORT = range(3)
DROP, DAMAGE, DOOR, CROSSES, TRAP, FROM_ABOVE = 1, 2, 4, 8, 16, 32
BY_CROSSING, BY_USING, BY_SHOOTING = range(3)

_OUTWARDS = 0.125
_SHORTEST = 1.0
_ON_LINE = 0.5
_NARROW_STRIPS = 3
_DISTANCES = {BY_CROSSING: (0.0, 0.0, 0.0), BY_USING: (4.0, 16.0, 32.0), BY_SHOOTING: (32.0, 96.0, 224.0)}
"""Between a line and the player's square, map units, for each way to trigger it; using reaches 64 from the centre."""
_ALONG = (0.5, 0.25, 0.75, 0.1, 0.9)
_THROUGH = 3.0


def _whole(lengths: np.ndarray) -> np.ndarray:
    """Rounded to map units, and to the range that a map's coordinates have."""
    return np.clip(np.rint(lengths), -1 << 15, (1 << 15) - 1)


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
    if len(edges) > LIMITS["nav_edges"]:
        raise WadError(f"Map {level.name} has more passages than the engine takes; use another WAD.")
    order = np.argsort(source, kind="stable")
    edges, source = edges[order], source[order]
    nodes = np.zeros(len(level.subsectors), layout.NAV_NODE)
    nodes["x"], nodes["y"] = _whole(centres[:, 0]), _whole(centres[:, 1])
    nodes["flags"] = np.where(_are_narrow(polygons, centres, sector_of, level, clearance), NARROW, 0)
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


def _are_narrow(polygons: list[Polygon], centres: np.ndarray, sector_of: np.ndarray, level: LevelData,
                clearance: Clearance) -> np.ndarray:
    """bool [subsectors]: a player fits neither in the middle nor half way between it and a corner."""
    owner = np.repeat(np.arange(len(polygons)), [len(polygon) for polygon in polygons])
    corners = np.array([corner for polygon in polygons for corner in polygon], np.float64).reshape(-1, 2)
    places = np.vstack((centres, (corners + centres[owner]) / 2))
    owner = np.concatenate((np.arange(len(polygons)), owner))
    sector = sector_of[owner]
    fits = clearance.places(places[:, 0], places[:, 1], sector, level.sectors["floor_height"][sector] / FIXED).later
    narrow = np.ones(len(polygons), bool)
    narrow[owner[fits]] = False
    return narrow


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
    outline, outline_owner = _bare_outlines(polygons, owner, walls)
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


def _bare_outlines(polygons: list[Polygon], owner: np.ndarray, walls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parts of the polygons' outlines along which their own subsector has no wall piece: (f8 [n, 4], owner i8 [n]).

    `walls` f8 [n, 4] are the wall pieces, `owner` i8 [n] their subsectors in rising order.
    """
    corners = np.array([corner for polygon in polygons for corner in polygon], np.float64).reshape(-1, 2)
    counts = np.array([len(polygon) for polygon in polygons])
    edge_owner = np.repeat(np.arange(len(polygons)), counts)
    following = np.arange(1, len(corners) + 1)
    ends = np.cumsum(counts)[counts > 0]
    following[ends - 1] = ends - counts[counts > 0]
    along = corners[following] - corners
    length = np.hypot(along[:, 0], along[:, 1])
    edge = np.flatnonzero(length >= _SHORTEST)
    start, unit, length, edge_owner = corners[edge], along[edge] / length[edge, None], length[edge], edge_owner[edge]

    first = np.searchsorted(owner, edge_owner, "left")
    walls_near = np.searchsorted(owner, edge_owner, "right") - first
    pair = np.repeat(np.arange(len(edge)), walls_near)
    wall = walls[np.repeat(first - np.cumsum(walls_near) + walls_near, walls_near) + np.arange(len(pair))]
    to_a, to_b = wall[:, :2] - start[pair], wall[:, 2:] - start[pair]
    ux, uy = unit[pair].T
    away_a, away_b = (np.abs(ux * to[:, 1] - uy * to[:, 0]) for to in (to_a, to_b))
    on_edge = (away_a < _ON_LINE) & (away_b < _ON_LINE)
    reach = np.sort(np.stack(((to_a * unit[pair]).sum(1), (to_b * unit[pair]).sum(1)), 1)[on_edge], 1)
    covered: dict[int, list[list[float]]] = {}
    for number, interval in zip(pair[on_edge].tolist(), reach.tolist(), strict=True):
        covered.setdefault(number, []).append(interval)

    whole = np.setdiff1d(np.arange(len(edge)), list(covered))
    parts = [(number, 0.0, end) for number, end in zip(whole.tolist(), length[whole].tolist(), strict=True)]
    for number, intervals in covered.items():
        at, end = 0.0, float(length[number])
        for low, high in [*sorted(intervals), [end, end]]:
            if low - at >= _SHORTEST:
                parts.append((number, at, low))
            at = max(at, high)
    which = np.array([part[0] for part in parts], np.int64)
    nearer, farther = (np.array([part[i] for part in parts], np.float64)[:, None] for i in (1, 2))
    # Corners run counterclockwise; seen from inside the far end of an edge is the left one.
    return np.hstack((start[which] + unit[which] * farther, start[which] + unit[which] * nearer)), edge_owner[which]


def _edges(level: LevelData, openings: _Openings, clearance: Clearance, specials: Specials, centres: np.ndarray,
           thing_node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(NAV_EDGE [n], subsector each starts from i8 [n])."""
    sector_of = level.subsectors["sector"].astype(np.int64)
    here = sector_of[openings.source]
    floor = level.sectors["floor_height"] / FIXED
    heights = floor[sector_of]
    crossing, now, later = _crossing_points(openings.ends, here, heights[openings.source], clearance)
    # Below a ledge there are strips too narrow to stand in: who drops off the ledge crosses them at the ledge's height.
    narrow = ~clearance.places(centres[:, 0], centres[:, 1], sector_of, heights).later
    from_above = np.zeros(len(here), bool)
    for _ in range(_NARROW_STRIPS):
        dropping = (now | later) & narrow[openings.target]
        np.maximum.at(heights, openings.target[dropping], heights[openings.source[dropping]])
        again = np.flatnonzero(narrow[openings.source] & ~now & ~later & (heights > floor[sector_of])[openings.source])
        crossing[again], now[again], later[again] = _crossing_points(
            openings.ends[again], here[again], heights[openings.source[again]], clearance)
        from_above[again] |= now[again] | later[again]
    teleport = np.full(len(here), -1)
    for line, thing in specials.teleports.items():
        teleport[(openings.line == line) & (openings.side == 0)] = thing_node[thing]
    target = np.where(teleport >= 0, teleport, openings.target)
    there = sector_of[target]
    flags = np.where((floor[here] - floor[there] > STEP) & (teleport < 0), DROP, 0)
    flags |= np.where(specials.hurts[there], DAMAGE, 0)
    flags |= np.where(np.isin(openings.line, sorted(specials.door_key)) & (openings.side == 0), DOOR, 0)
    flags |= np.where(np.isin(openings.line, sorted(specials.crossed)), CROSSES, 0)
    flags |= np.where(from_above, FROM_ABOVE, 0)
    keys = np.array([specials.door_key.get(line, 0) for line in openings.line.tolist()], np.int64)
    far = np.hypot(*(np.where(teleport[:, None] >= 0, crossing, centres[target]) - crossing).T)
    cost = np.hypot(*(crossing - centres[openings.source]).T) + far
    edges = np.zeros(len(here), layout.NAV_EDGE)
    edges["to"], edges["line"] = target, openings.line
    edges["kind"] = np.where(teleport >= 0, TELEPORT, np.where(now, OPEN, MOVES))
    edges["flags"], edges["key"] = flags, np.where(flags & DOOR, keys, 0)
    edges["x"], edges["y"] = _whole(crossing[:, 0]), _whole(crossing[:, 1])
    for column, field in enumerate(("x1", "y1", "x2", "y2")):
        edges[field] = _whole(openings.ends[:, column])
    edges["cost"] = np.minimum(np.rint(cost), 32767)
    passable = now | later
    return edges[passable], openings.source[passable]


def _crossing_points(ends: np.ndarray, sector: np.ndarray, height: np.ndarray,
                     clearance: Clearance) -> tuple[np.ndarray, ...]:
    """(f8 [n, 2] best place on each opening, bool [n] passable now, bool [n] passable later).

    Where a player fits on the opening and a little before and behind it is better than where it only fits on it: there
    it may touch what bars the way on.
    """
    along = ends[:, 2:] - ends[:, :2]
    length = np.hypot(along[:, 0], along[:, 1])
    through = np.stack((-along[:, 1], along[:, 0]), 1) / length[:, None] * _THROUGH
    margin = np.minimum((RADIUS + 1) / length, 0.5)
    shares = np.stack([*(np.full(len(ends), share) for share in _ALONG), margin, 1 - margin], 1)
    places = ends[:, None, :2] + shares[..., None] * along[:, None]
    place, now, later = places[:, 0].copy(), np.zeros(len(ends), bool), np.zeros(len(ends), bool)
    rest = np.arange(len(ends))
    for count, offsets in ((1, (0, -1, 1)), (len(_ALONG) + 2, (0, -1, 1)), (len(_ALONG) + 2, (0,))):
        tried = places[rest, :count]
        spots = np.stack([tried + offset * through[rest, None] for offset in offsets], 2)
        found = clearance.places(spots[..., 0].ravel(), spots[..., 1].ravel(),
                                 *(np.repeat(a[rest], count * len(offsets)) for a in (sector, height)))
        fits, could = (np.all(f.reshape(spots.shape[:3]), axis=2) for f in (found.now, found.later))
        best = np.argmax(2 * fits + could, 1)
        rows = np.arange(len(rest))
        better = (fits[rows, best] & ~now[rest]) | (could[rows, best] & ~later[rest] & ~now[rest])
        chosen = rest[better]
        place[chosen] = tried[rows, best][better]
        now[chosen], later[chosen] = fits[rows, best][better], could[rows, best][better]
        rest = np.flatnonzero(~now)
    return place, now, later


def _best_places(places: np.ndarray, sector: np.ndarray, height: np.ndarray,
                 clearance: Clearance) -> tuple[np.ndarray, ...]:
    """Of `places` f8 [n, k, 2] in `sector` i8 [n or n, k]: (best of each row i8 [n], fits now, fits later).

    The best is the first of those that fit now, else of those that can fit later, else the first.
    """
    x, y = places[..., 0], places[..., 1]
    sectors, heights = (np.broadcast_to(a if a.ndim == 2 else a[:, None], x.shape).ravel() for a in (sector, height))
    found = clearance.places(x.ravel(), y.ravel(), sectors, heights)
    now, later = found.now.reshape(x.shape), found.later.reshape(x.shape)
    best = np.argmax(2 * now + later, 1)
    rows = np.arange(len(places))
    return best, now[rows, best], later[rows, best]


def _triggers(level: LevelData, tree: BspTree, clearance: Clearance, uses: list[LineUse]) -> np.ndarray:
    """NAV_TRIGGER [n], sorted by sector."""
    uses = sorted(uses, key=lambda use: use.sector)
    table = np.zeros(len(uses), layout.NAV_TRIGGER)
    if not uses:
        return table
    table["line"], table["sector"] = [use.line for use in uses], [use.sector for use in uses]
    for field in ("use", "key", "exits", "repeats"):
        table[field] = [getattr(use, field) for use in uses]
    lines = level.lines[table["line"]]
    start = level.vertices[lines["v1"]]
    begin = np.stack((start["x"], start["y"]), 1) / FIXED
    along = np.stack((lines["dx"], lines["dy"]), 1) / FIXED
    normal = np.stack((along[:, 1], -along[:, 0]), 1) / np.maximum(np.hypot(*along.T), 1.0)[:, None]
    distances = np.array([_DISTANCES[use.use] for use in uses])
    touching = np.where(table["use"] == BY_CROSSING, 0.0, RADIUS * np.abs(normal).sum(1))
    shares = np.tile(np.array(_ALONG), distances.shape[1])
    offsets = np.repeat(distances + touching[:, None], len(_ALONG), 1)
    places = begin[:, None] + shares[:, None] * along[:, None] + offsets[..., None] * normal[:, None]
    # On the line itself the subsector in front of it counts.
    inside = places + normal[:, None] * _OUTWARDS
    node = tree.locate(inside[..., 0].ravel(), inside[..., 1].ravel()).reshape(offsets.shape)
    sector = level.subsectors["sector"].astype(np.int64)[node]
    best, now, later = _best_places(places, sector, level.sectors["floor_height"][sector] / FIXED, clearance)
    rows = np.arange(len(uses))
    table["node"] = np.where(now | later | (table["use"] == BY_CROSSING), node[rows, best], -1)
    table["x"], table["y"] = _whole(places[rows, best]).T
    return table
