"""Maps broken in the ways that real ones are, each from the two rooms of tiny_wad.py."""

from __future__ import annotations

import struct
from collections.abc import Callable

from ofa_tui.doom.blockmap import MOST_WORDS
from tests.doom.tiny_wad import build, lumps, name8

THING, LINE, SIDE, VERTEX, SEG, SUBSECTOR, NODE = 10, 14, 30, 4, 12, 4, 28
"""Bytes of a record."""


def _changed(lump: str, change: Callable[[bytes], bytes]) -> bytes:
    return build([(name, change(data) if name == lump else data) for name, data in lumps()])


def _written(lump: str, offset: int, value: bytes) -> bytes:
    return _changed(lump, lambda data: data[:offset] + value + data[offset + len(value):])


def _blockmap(columns: int, rows: int, padding: int) -> bytes:
    """A lump of that many cells, each with a list of its own that names every line; then unused words."""
    lists = [(0, *range(10), 0xFFFF)] * (columns * rows)
    starts, at = [], 4 + columns * rows
    for entries in lists:
        starts.append(at & 0xFFFF)
        at += len(entries)
    words = [*starts, *(word for entries in lists for word in entries), *[0] * padding]
    return struct.pack("<hhHH", -8, -8, columns, rows) + struct.pack(f"<{len(words)}H", *words)


LARGE_BLOCKMAP = _blockmap(60, 80, 0)
"""Between 64 KiB and MOST_WORDS words: its offsets still reach every list."""
WRAPPED_BLOCKMAP = _blockmap(90, 80, 0)
assert 1 << 16 < len(LARGE_BLOCKMAP) <= 2 * MOST_WORDS < len(WRAPPED_BLOCKMAP)

BROKEN_MAPS: dict[str, tuple[bytes, str]] = {
    "missing nodes": (_changed("NODES", lambda data: b""), "no BSP nodes"),
    "node without direction": (_written("NODES", 4, bytes(4)), ""),
    "zero-length line": (_written("LINEDEFS", 2 * LINE + 2, struct.pack("<H", 2)), ""),
    "zero-length wall piece": (_written("SEGS", 2, struct.pack("<H", 0)), ""),
    "unclosed sector, a line is missing": (
        _changed("LINEDEFS", lambda data: data[:9 * LINE]), "line of a wall piece is out of range"),
    "unclosed sector, a wall piece is missing": (_written("SSECTORS", 0, struct.pack("<H", 3)), ""),
    "unclosed sector, a wall belongs to another": (_written("SIDEDEFS", 9 * SIDE + 28, struct.pack("<H", 1)), ""),
    "subsector of two sectors": (_written("SIDEDEFS", 0 * SIDE + 28, struct.pack("<H", 1)), ""),
    "two-sided line without a back": (_written("LINEDEFS", 1 * LINE + 4, struct.pack("<H", 4)), ""),
    "missing wall texture": (_written("SIDEDEFS", 20, name8("GONE")), "wall texture 'GONE'"),
    "missing floor": (_written("SECTORS", 4, name8("GONE")), "floor 'GONE'"),
    "missing patch": (_written("PNAMES", 4, name8("GONE")), "lacks a patch"),
    "missing sprite": (build([part for part in lumps() if part[0][:4] not in ("TROO", "PUFF")]), ""),
    "blockmap larger than 64 KiB": (_changed("BLOCKMAP", lambda data: LARGE_BLOCKMAP), ""),
    "blockmap beyond what offsets reach": (_changed("BLOCKMAP", lambda data: WRAPPED_BLOCKMAP), ""),
    "vertices at the edge of what there is": (_written("VERTEXES", 7 * VERTEX, struct.pack("<hh", 32767, 0)), ""),
    "vertices out of range": (_written("VERTEXES", 0, struct.pack("<hh", -32768, -32768)), "larger than the engine"),
    "vertex that is not there": (_written("LINEDEFS", 0, struct.pack("<H", 99)), "an end of a line is out of range"),
    "thing outside the map": (_written("THINGS", 1 * THING, struct.pack("<hh", 20000, -20000)), ""),
    "player outside the map": (_written("THINGS", 0, struct.pack("<hh", 20000, -20000)), ""),
    "more than one player start": (_changed("THINGS", lambda data: data[:THING] * 5 + data), ""),
    "no player start": (_written("THINGS", 6, struct.pack("<H", 2)), "no place where player 1 starts"),
    "heights at the ends of the range": (_written("SECTORS", 0, struct.pack("<hh", -32768, 32767)), ""),
    "ceiling below the floor": (_written("SECTORS", 0, struct.pack("<hh", 64, -64)), ""),
}
"""By name: the WAD, and words of the sentence that refuses it (none: it is played)."""
