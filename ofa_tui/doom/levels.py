"""Maps of a WAD, read, checked and completed with what the original works out at level start.

Lump formats as in the Unofficial Doom Specs: a map is a marker (E1M1, MAP01) followed by ten lumps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ofa_tui.doom import layout
from ofa_tui.doom.blockmap import Blockmap, read_blockmap
from ofa_tui.doom.wad import Wad, WadError, clean_name

FIXED = 1 << 16
NO_SIDE = 0xFFFF
TWO_SIDED = 4
SUBSECTOR_BIT = 0x8000
PLAYER_START = 1
MAX_RADIUS = 32

# What cuda/doom/state.h has room for.
LIMITS = {"sectors": 2048, "lines": 16384, "sides": 24576, "blocks": 32768, "things": 3072, "nav_edges": 65536}
MAX_NODE_DEPTH = 256

_LUMPS = ("THINGS", "LINEDEFS", "SIDEDEFS", "VERTEXES", "SEGS", "SSECTORS", "NODES", "SECTORS", "REJECT", "BLOCKMAP")
_MAP_NAME = re.compile(r"E([1-9])M([1-9])|MAP(0[1-9]|[1-9][0-9])")

_RAW_THING = np.dtype([("x", "<i2"), ("y", "<i2"), ("angle", "<i2"), ("number", "<i2"), ("options", "<i2")])
_RAW_LINE = np.dtype([
    ("v1", "<u2"), ("v2", "<u2"), ("flags", "<i2"), ("special", "<i2"), ("tag", "<i2"), ("side", "<u2", (2,)),
])
_RAW_SIDE = np.dtype([
    ("x", "<i2"), ("y", "<i2"), ("top", "S8"), ("bottom", "S8"), ("middle", "S8"), ("sector", "<u2"),
])
_RAW_SEG = np.dtype([
    ("v1", "<u2"), ("v2", "<u2"), ("angle", "<i2"), ("line", "<u2"), ("side", "<u2"), ("offset", "<i2"),
])
_RAW_NODE = np.dtype([
    ("x", "<i2"), ("y", "<i2"), ("dx", "<i2"), ("dy", "<i2"), ("box", "<i2", (2, 4)), ("child", "<u2", (2,)),
])
_RAW_SECTOR = np.dtype([
    ("floor", "<i2"), ("ceiling", "<i2"), ("floor_flat", "S8"), ("ceiling_flat", "S8"), ("light", "<i2"),
    ("special", "<i2"), ("tag", "<i2"),
])


@dataclass(frozen=True)
class Names:
    """Where names in maps lead: texture and flat numbers, thing types by editor number."""

    textures: dict[str, int]
    flats: dict[str, int]
    things: dict[int, int]


@dataclass(frozen=True)
class LevelData:
    """One checked map; arrays have the dtypes of ofa_tui.doom.layout."""

    name: str
    episode: int
    map: int
    vertices: np.ndarray
    sectors: np.ndarray
    sides: np.ndarray
    lines: np.ndarray
    segs: np.ndarray
    subsectors: np.ndarray
    nodes: np.ndarray
    node_depth: int
    things: np.ndarray
    sector_lines: np.ndarray
    reject: np.ndarray
    blockmap: Blockmap


def map_names(wad: Wad) -> list[str]:
    """Names of the maps in the WAD, in playing order: E1M1 .. E1M9, E2M1 ..; or MAP01 .. MAP32."""
    found = {
        name for index, name in enumerate(wad.names)
        if _MAP_NAME.fullmatch(name) and wad.names[index + 1:index + 2] == ("THINGS",)
    }
    return sorted(found)


def is_doom2(wad: Wad) -> bool:
    """True for a WAD whose maps are called MAPxx."""
    return any(name.startswith("MAP") for name in map_names(wad))


def episode_and_map(name: str) -> tuple[int, int]:
    """(1, 7) for E1M7 and for MAP07. Raises WadError for anything else."""
    match = _MAP_NAME.fullmatch(name.upper())
    if not match:
        raise WadError(f"{name!r} is no map name; maps are called E1M1 or MAP01.")
    episode, number, doom2 = match.groups()
    return (1, int(doom2)) if doom2 else (int(episode), int(number))


def map_name(episode: int, number: int, doom2: bool) -> str:
    """`E1M7` or `MAP07`."""
    return f"MAP{number:02d}" if doom2 else f"E{episode}M{number}"


def describe_maps(maps: Iterable[str]) -> str:
    """`E1M1-E1M9, E2M1`: runs of maps for a message."""
    runs: list[list[str]] = []
    for name in maps:
        if runs and runs[-1][-1] == _map_before(name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _map_before(name: str) -> str:
    if name.startswith("MAP"):
        return f"MAP{int(name[3:]) - 1:02d}"
    return f"{name[:3]}{int(name[3]) - 1}"


def read_level(wad: Wad, name: str, names: Names) -> LevelData:
    """Reads and checks one map. Raises WadError naming the map and what is wrong with it."""
    return _Reader(wad, name, names).read()


class _Reader:
    def __init__(self, wad: Wad, name: str, names: Names) -> None:
        self.wad, self.name, self.names = wad, name, names
        self.marker = wad.index(name)

    def error(self, what: str) -> WadError:
        return WadError(f"Map {self.name} of {self.wad.path} is damaged: {what}; get a fresh copy of the file.")

    def lump(self, name: str) -> bytes:
        index = self.marker + 1 + _LUMPS.index(name)
        if self.wad.names[index:index + 1] != (name,):
            raise self.error(f"lump {name} is missing")
        return self.wad.lump(index)

    def array(self, name: str, dtype: np.dtype) -> np.ndarray:
        data = self.lump(name)
        return np.frombuffer(data, dtype, len(data) // dtype.itemsize)

    def check(self, values: np.ndarray, count: int, what: str) -> None:
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < count:
            raise self.error(f"{what} is out of range")

    def read(self) -> LevelData:
        vertices = self.read_vertices()
        sectors = self.read_sectors()
        sides = self.read_sides(len(sectors))
        lines = self.read_lines(vertices, sides)
        for what, array in (("sectors", sectors), ("sides", sides), ("lines", lines)):
            if not 0 < len(array) <= LIMITS[what]:
                raise WadError(f"Map {self.name} of {self.wad.path} has {len(array)} {what}; the engine takes 1 to"
                               f" {LIMITS[what]}, so use another WAD.")
        segs = self.read_segs(len(vertices), lines, sides)
        subsectors = self.read_subsectors(segs, sides)
        nodes = self.array("NODES", _RAW_NODE)
        depth = self.node_depth(nodes["child"].astype(np.int64), len(subsectors))
        blockmap = read_blockmap(self.lump("BLOCKMAP"), vertices, lines, LIMITS["blocks"])
        if blockmap is None:
            raise WadError(f"Map {self.name} of {self.wad.path} is larger than the engine takes; use another WAD.")
        sector_lines = group_lines(sectors, lines, blockmap)
        reject = np.zeros((len(sectors) ** 2 + 7) // 8, np.uint8)
        given = np.frombuffer(self.lump("REJECT")[:len(reject)], np.uint8)
        reject[:len(given)] = given
        episode, number = episode_and_map(self.name)
        return LevelData(
            self.name, episode, number, vertices, sectors, sides, lines, segs, subsectors, self.fixed_nodes(nodes),
            depth, self.read_things(), sector_lines, reject, blockmap,
        )

    def read_vertices(self) -> np.ndarray:
        raw = self.array("VERTEXES", np.dtype("<i2")).astype(np.int32)
        vertices = np.zeros(len(raw) // 2, layout.MAP_VERTEX)
        vertices["x"], vertices["y"] = raw[:len(vertices) * 2:2] * FIXED, raw[1::2] * FIXED
        return vertices

    def flat_numbers(self, flats: np.ndarray) -> np.ndarray:
        return self.numbers(flats, self.names.flats, "floor")

    def texture_numbers(self, textures: np.ndarray) -> np.ndarray:
        return self.numbers(textures, self.names.textures, "wall texture")

    def numbers(self, raw: np.ndarray, table: dict[str, int], what: str) -> np.ndarray:
        names, inverse = np.unique(raw, return_inverse=True)
        numbers = np.zeros(len(names), np.int16)
        for i, name in enumerate(names.tolist()):
            text = clean_name(name)
            if what == "wall texture" and text[:1] in ("-", ""):
                continue
            if text not in table:
                raise self.error(f"it uses {what} {text!r}, which the WAD lacks")
            numbers[i] = table[text]
        return numbers[inverse]

    def read_sectors(self) -> np.ndarray:
        raw = self.array("SECTORS", _RAW_SECTOR)
        sectors = np.zeros(len(raw), layout.MAP_SECTOR)
        sectors["floor_height"] = raw["floor"].astype(np.int32) * FIXED
        sectors["ceiling_height"] = raw["ceiling"].astype(np.int32) * FIXED
        sectors["floor_flat"] = self.flat_numbers(raw["floor_flat"])
        sectors["ceiling_flat"] = self.flat_numbers(raw["ceiling_flat"])
        for field in ("light", "special", "tag"):
            sectors[field] = raw[field]
        return sectors

    def read_sides(self, n_sectors: int) -> np.ndarray:
        raw = self.array("SIDEDEFS", _RAW_SIDE)
        self.check(raw["sector"], n_sectors, "the sector of a wall")
        sides = np.zeros(len(raw), layout.MAP_SIDE)
        sides["x_offset"], sides["y_offset"] = raw["x"].astype(np.int32) * FIXED, raw["y"].astype(np.int32) * FIXED
        for field in ("top", "bottom", "middle"):
            sides[field] = self.texture_numbers(raw[field])
        sides["sector"] = raw["sector"]
        return sides

    def read_lines(self, vertices: np.ndarray, sides: np.ndarray) -> np.ndarray:
        raw = self.array("LINEDEFS", _RAW_LINE)
        self.check(raw["v1"], len(vertices), "an end of a line")
        self.check(raw["v2"], len(vertices), "an end of a line")
        present = raw["side"] != NO_SIDE
        self.check(raw["side"][present], len(sides), "a side of a line")
        if not present[:, 0].all():
            raise self.error("a line has no front side")
        lines = np.zeros(len(raw), layout.MAP_LINE)
        for field in ("v1", "v2", "flags", "special", "tag"):
            lines[field] = raw[field]
        start, end = vertices[raw["v1"]], vertices[raw["v2"]]
        lines["dx"], lines["dy"] = end["x"] - start["x"], end["y"] - start["y"]
        lines["box"][:, 0], lines["box"][:, 1] = np.maximum(start["y"], end["y"]), np.minimum(start["y"], end["y"])
        lines["box"][:, 2], lines["box"][:, 3] = np.minimum(start["x"], end["x"]), np.maximum(start["x"], end["x"])
        dx, dy = lines["dx"].astype(np.int64), lines["dy"].astype(np.int64)
        lines["slope"] = np.where(dx == 0, 1, np.where(dy == 0, 0, np.where((dx > 0) == (dy > 0), 2, 3)))
        side = np.where(present, raw["side"].astype(np.int32), -1)
        lines["side"] = side
        lines["sector"] = np.where(present, sides["sector"][np.maximum(side, 0)], -1)
        return lines

    def read_segs(self, n_vertices: int, lines: np.ndarray, sides: np.ndarray) -> np.ndarray:
        raw = self.array("SEGS", _RAW_SEG)
        self.check(raw["v1"], n_vertices, "an end of a wall piece")
        self.check(raw["v2"], n_vertices, "an end of a wall piece")
        self.check(raw["line"], len(lines), "the line of a wall piece")
        self.check(raw["side"], 2, "the side of a wall piece")
        segs = np.zeros(len(raw), layout.MAP_SEG)
        segs["v1"], segs["v2"], segs["line"] = raw["v1"], raw["v2"], raw["line"]
        segs["angle"] = raw["angle"].astype(np.uint16).astype(np.uint32) << 16
        segs["offset"] = raw["offset"].astype(np.int32) * FIXED
        of_line = lines[raw["line"]]
        rows = np.arange(len(raw))
        segs["side"] = of_line["side"][rows, raw["side"]]
        self.check(segs["side"], len(sides), "the side of a wall piece")
        segs["front"] = of_line["sector"][rows, raw["side"]]
        segs["back"] = np.where(of_line["flags"] & TWO_SIDED, of_line["sector"][rows, 1 - raw["side"]], -1)
        return segs

    def read_subsectors(self, segs: np.ndarray, sides: np.ndarray) -> np.ndarray:
        raw = self.array("SSECTORS", np.dtype([("n", "<u2"), ("first", "<u2")]))
        counts, first = raw["n"].astype(np.int64), raw["first"].astype(np.int64)
        if not 0 < len(raw) < SUBSECTOR_BIT or int(counts.min()) < 1 or int((first + counts).max()) > len(segs):
            raise self.error("its list of subsectors is out of range")
        subsectors = np.zeros(len(raw), layout.MAP_SUBSECTOR)
        subsectors["first_seg"], subsectors["n_segs"] = first, counts
        subsectors["sector"] = sides["sector"][segs["side"][first]]
        return subsectors

    def node_depth(self, children: np.ndarray, n_subsectors: int) -> int:
        """Greatest depth of the tree; raises when the nodes are no tree over existing subsectors."""
        if len(children) == 0:
            if n_subsectors == 1:
                return 0
            raise self.error("it has no BSP nodes")
        if len(children) > SUBSECTOR_BIT:
            raise self.error("it has too many BSP nodes")
        seen = np.zeros(len(children), bool)
        level, depth = np.array([len(children) - 1]), 0
        while len(level):
            if seen[level].any() or len(np.unique(level)) != len(level) or depth >= MAX_NODE_DEPTH:
                raise self.error("its BSP nodes are no tree")
            seen[level] = True
            depth += 1
            below = children[level].ravel()
            leaves = below & SUBSECTOR_BIT != 0
            self.check(below[leaves] & (SUBSECTOR_BIT - 1), n_subsectors, "a subsector of a BSP node")
            self.check(below[~leaves], len(children), "a child of a BSP node")
            level = below[~leaves]
        return depth

    def fixed_nodes(self, raw: np.ndarray) -> np.ndarray:
        nodes = np.zeros(len(raw), layout.MAP_NODE)
        for field in ("x", "y", "dx", "dy", "box"):
            nodes[field] = raw[field].astype(np.int32) * FIXED
        nodes["child"] = raw["child"]
        return nodes

    def read_things(self) -> np.ndarray:
        raw = self.array("THINGS", _RAW_THING)
        if len(raw) > LIMITS["things"]:
            raise WadError(f"Map {self.name} of {self.wad.path} has {len(raw)} things; the engine takes"
                           f" {LIMITS['things']}, so use another WAD.")
        things = np.zeros(len(raw), layout.MAP_THING)
        for field in _RAW_THING.names or ():
            things[field] = raw[field]
        if not (raw["number"] == PLAYER_START).any():
            raise self.error("it has no place where player 1 starts")
        things["type"] = [self.names.things.get(number, -1) for number in raw["number"].tolist()]
        return things


def group_lines(sectors: np.ndarray, lines: np.ndarray, blockmap: Blockmap) -> np.ndarray:
    """i4: lines of each sector in map order; fills in the sectors' first_line, n_lines, sound_x/y and block_box."""
    front, back = lines["sector"][:, 0], lines["sector"][:, 1]
    both = (back >= 0) & (back != front)
    owner = np.concatenate((front, back[both]))
    line = np.concatenate((np.arange(len(lines)), np.flatnonzero(both)))
    order = np.lexsort((line, owner))
    owner, line = owner[order], line[order]
    counts = np.bincount(owner, minlength=len(sectors))
    sectors["n_lines"] = counts
    sectors["first_line"] = np.cumsum(counts) - counts
    # The original's empty bounding box: a sector without lines keeps it.
    box = np.empty((len(sectors), 4), np.int64)
    box[:] = (-2**31, 2**31 - 1, 2**31 - 1, -2**31)
    np.maximum.at(box[:, 0], owner, lines["box"][line, 0])
    np.minimum.at(box[:, 1], owner, lines["box"][line, 1])
    np.minimum.at(box[:, 2], owner, lines["box"][line, 2])
    np.maximum.at(box[:, 3], owner, lines["box"][line, 3])
    sectors["sound_x"] = (box[:, 2] + box[:, 3]).astype(np.int32) // 2
    sectors["sound_y"] = (box[:, 0] + box[:, 1]).astype(np.int32) // 2
    grown = box + np.array([1, -1, -1, 1]) * (MAX_RADIUS * FIXED)
    origin = np.array([blockmap.y, blockmap.y, blockmap.x, blockmap.x])
    cells = (grown - origin) >> 23
    last = np.array([blockmap.rows - 1, blockmap.rows - 1, blockmap.columns - 1, blockmap.columns - 1])
    sectors["block_box"] = np.clip(cells, 0, last)
    return line.astype("<i4")
