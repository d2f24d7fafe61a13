"""A WAD of two rooms joined by a door, made from nothing: what the packer needs, and no more.

Room 0 spans x 0..256, the door 256..288, room 1 288..544, all y 0..256. The exit switch is the east wall of room 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

FLAT = bytes(range(256)) * 16
Lump = tuple[str, bytes]


def name8(name: str) -> bytes:
    return name.encode().ljust(8, b"\0")


def picture(columns: list[list[tuple[int, bytes]]], height: int) -> bytes:
    """A picture lump; a column is a list of posts (row, pixels)."""
    offsets, body = [], b""
    start = 8 + 4 * len(columns)
    for posts in columns:
        offsets.append(start + len(body))
        for row, pixels in posts:
            body += bytes([row, len(pixels), 0]) + pixels + b"\0"
        body += b"\xff"
    return struct.pack("<4h", len(columns), height, 0, 0) + struct.pack(f"<{len(offsets)}I", *offsets) + body


def texture_list(textures: dict[str, tuple[int, int, list[tuple[int, int, int]]]]) -> bytes:
    """TEXTURE1: name -> (width, height, [(x, y, patch number)])."""
    blocks = [
        name8(name) + struct.pack("<ihhih", 0, width, height, 0, len(patches))
        + b"".join(struct.pack("<5h", x, y, patch, 1, 0) for x, y, patch in patches)
        for name, (width, height, patches) in textures.items()
    ]
    offsets, at = [], 4 + 4 * len(blocks)
    for block in blocks:
        offsets.append(at)
        at += len(block)
    return struct.pack(f"<{1 + len(blocks)}i", len(blocks), *offsets) + b"".join(blocks)


PATCHES: dict[str, bytes] = {
    # Column 1 has two posts, so that a read past the end of the first runs into the second.
    "WALL": picture([[(0, bytes([10 + x] * 8))] if x != 1 else [(0, b"\x21\x22\x23"), (5, b"\x31\x32")]
                     for x in range(4)], 8),
    "HOLE": picture([[(2, bytes([90 + x] * 3))] for x in range(3)], 8),
}
TEXTURES: dict[str, tuple[int, int, list[tuple[int, int, int]]]] = {
    "NONE": (4, 8, [(0, 0, 0)]),
    "PLAIN": (4, 8, [(0, 0, 0)]),
    "MIXED": (6, 8, [(0, 0, 0), (2, -3, 1)]),
    "SKY1": (4, 8, [(0, 0, 0)]),
}


def level(door_special: int = 1) -> list[Lump]:
    """The ten lumps of the map."""
    vertices = [(0, 0), (0, 256), (256, 256), (256, 0), (288, 0), (288, 256), (544, 256), (544, 0)]
    # v1, v2, flags, special, tag, front, back; a line's front is to its right.
    lines = [
        (0, 1, 1, 0, 0, 0, 0xFFFF), (1, 2, 1, 0, 0, 1, 0xFFFF), (2, 3, 4, door_special, 0, 2, 3),
        (3, 0, 1, 0, 0, 4, 0xFFFF), (2, 5, 1, 0, 0, 5, 0xFFFF), (4, 3, 1, 0, 0, 6, 0xFFFF),
        (4, 5, 4, door_special, 0, 7, 8), (5, 6, 1, 0, 0, 9, 0xFFFF), (6, 7, 1, 11, 0, 10, 0xFFFF),
        (7, 4, 1, 0, 0, 11, 0xFFFF),
    ]
    side_sectors = [0, 0, 0, 1, 0, 1, 1, 2, 1, 2, 2, 2]
    sides = [(0, 0, name8("PLAIN"), name8("-"), name8("MIXED"), sector) for sector in side_sectors]
    sectors = [
        (0, 128, name8("FLOOR"), name8("F_SKY1"), 160, 0, 0), (0, 0, name8("FLOOR"), name8("FLOOR"), 160, 0, 0),
        (0, 128, name8("FLOOR"), name8("FLOOR"), 120, 7, 0),
    ]
    segs = [
        (0, 1, 0x4000, 0, 0, 0), (1, 2, 0, 1, 0, 0), (2, 3, -0x4000, 2, 0, 0), (3, 0, -0x8000, 3, 0, 0),
        (3, 2, 0x4000, 2, 1, 0), (2, 5, 0, 4, 0, 0), (5, 4, -0x4000, 6, 1, 0), (4, 3, -0x8000, 5, 0, 0),
        (4, 5, 0x4000, 6, 0, 0), (5, 6, 0, 7, 0, 0), (6, 7, -0x4000, 8, 0, 0), (7, 4, -0x8000, 9, 0, 0),
    ]
    box = (256, 0, 0, 544)
    # Partitions run north: their right side is east.
    nodes = [(288, 0, 0, 256, *box, *box, 0x8002, 0x8001), (256, 0, 0, 256, *box, *box, 0, 0x8000)]
    things = [(64, 128, 0, 1, 7), (480, 128, 180, 3004, 7), (128, 64, 0, 2035, 7), (10, 10, 0, 31000, 7)]
    return [
        ("THINGS", b"".join(struct.pack("<5h", *thing) for thing in things)),
        ("LINEDEFS", b"".join(struct.pack("<HHhhhHH", *line) for line in lines)),
        ("SIDEDEFS", b"".join(struct.pack("<hh8s8s8sH", *side) for side in sides)),
        ("VERTEXES", b"".join(struct.pack("<hh", *vertex) for vertex in vertices)),
        ("SEGS", b"".join(struct.pack("<HHhHHh", *seg) for seg in segs)),
        ("SSECTORS", struct.pack("<6H", 4, 0, 4, 4, 4, 8)),
        ("NODES", b"".join(struct.pack("<12hHH", *node) for node in nodes)),
        ("SECTORS", b"".join(struct.pack("<hh8s8shhh", *sector) for sector in sectors)),
        ("REJECT", b""),
        ("BLOCKMAP", b""),
    ]


def lumps() -> list[Lump]:
    """All lumps of the WAD, in order."""
    sprite = picture([[(0, b"\x01\x02")]], 2)
    return [
        ("PLAYPAL", bytes(768 * 14)), ("COLORMAP", bytes(256 * 34)), ("E1M1", b""), *level(),
        ("TEXTURE1", texture_list(TEXTURES)),
        ("PNAMES", struct.pack("<i", len(PATCHES)) + b"".join(name8(name) for name in PATCHES)), *PATCHES.items(),
        ("STBAR", sprite), ("DEMO1", bytes([109, 2, 1, 1, *[0] * 9, 0x80])),
        ("S_START", b""), ("TROOA1", sprite), ("TROOA2A8", sprite), ("PUFFA0", sprite), ("S_END", b""),
        ("F_START", b""), ("FLOOR", FLAT), ("F_SKY1", FLAT[::-1]), ("F_END", b""),
    ]


def build(parts: Iterable[Lump], kind: bytes = b"IWAD") -> bytes:
    """The file: header, lumps, directory."""
    entries = list(parts)
    directory, end = [], 12
    for name, data in entries:
        directory.append(struct.pack("<ii8s", end, len(data), name8(name)))
        end += len(data)
    return b"".join((kind, struct.pack("<ii", len(entries), end), *(data for _, data in entries), *directory))
