"""numpy twins of the structs in cuda/doom/blob.h, and the builder that lays arrays into a blob."""

from __future__ import annotations

import numpy as np

BLOB_MAGIC = 0x4D4F4F44
BLOB_VERSION = 1
PATCH_PADDING, PATCH_END = 520, 264
ALIGNMENT = 16

SPAN = np.dtype([("offset", "<u4"), ("count", "<u4")])

PATCH = np.dtype([
    ("name", "S8"), ("width", "<i2"), ("height", "<i2"), ("left", "<i2"), ("top", "<i2"),
    ("columns", SPAN), ("lump", SPAN),
])
TEXTURE = np.dtype([("name", "S8"), ("width", "<i2"), ("height", "<i2"), ("width_mask", "<u4"), ("columns", SPAN)])
SPRITE_FRAME = np.dtype([("patch", "<i2", (8,)), ("flip", "u1", (8,)), ("rotates", "u1"), ("_pad", "u1", (7,))])
SPRITE = np.dtype([("name", "S8"), ("first_frame", "<u4"), ("n_frames", "<u4")])
ANIMATION = np.dtype([("is_texture", "<i2"), ("base", "<i2"), ("n", "<i2"), ("tics", "<i2")])
SWITCH_PAIR = np.dtype([("off", "<i2"), ("on", "<i2")])

MAP_VERTEX = np.dtype([("x", "<i4"), ("y", "<i4")])
MAP_SECTOR = np.dtype([
    ("floor_height", "<i4"), ("ceiling_height", "<i4"), ("floor_flat", "<i2"), ("ceiling_flat", "<i2"),
    ("light", "<i2"), ("special", "<i2"), ("tag", "<i2"), ("_pad", "<i2"), ("sound_x", "<i4"), ("sound_y", "<i4"),
    ("block_box", "<i4", (4,)), ("first_line", "<u4"), ("n_lines", "<u4"),
])
MAP_SIDE = np.dtype([
    ("x_offset", "<i4"), ("y_offset", "<i4"), ("top", "<i2"), ("bottom", "<i2"), ("middle", "<i2"), ("sector", "<i2"),
])
MAP_LINE = np.dtype([
    ("v1", "<i4"), ("v2", "<i4"), ("dx", "<i4"), ("dy", "<i4"), ("box", "<i4", (4,)), ("flags", "<i2"),
    ("special", "<i2"), ("tag", "<i2"), ("slope", "i1"), ("_pad", "i1"), ("side", "<i4", (2,)), ("sector", "<i4", (2,)),
])
MAP_SEG = np.dtype([
    ("v1", "<i4"), ("v2", "<i4"), ("angle", "<u4"), ("offset", "<i4"), ("line", "<i4"), ("side", "<i4"),
    ("front", "<i4"), ("back", "<i4"),
])
MAP_SUBSECTOR = np.dtype([("first_seg", "<u4"), ("n_segs", "<u4"), ("sector", "<i4"), ("_pad", "<i4")])
MAP_NODE = np.dtype([
    ("x", "<i4"), ("y", "<i4"), ("dx", "<i4"), ("dy", "<i4"), ("box", "<i4", (2, 4)), ("child", "<u2", (2,)),
    ("_pad", "<u4"),
])
MAP_THING = np.dtype([
    ("x", "<i2"), ("y", "<i2"), ("angle", "<i2"), ("number", "<i2"), ("options", "<i2"), ("type", "<i2"),
])
NAV_EDGE = np.dtype([
    ("to", "<i4"), ("line", "<i4"), ("kind", "<i2"), ("flags", "<i2"), ("x", "<i2"), ("y", "<i2"), ("x1", "<i2"),
    ("y1", "<i2"), ("x2", "<i2"), ("y2", "<i2"), ("key", "<i2"), ("cost", "<i2"),
])
NAV_NODE = np.dtype([
    ("x", "<i2"), ("y", "<i2"), ("flags", "<i2"), ("_pad", "<i2"), ("first_edge", "<u4"), ("n_edges", "<u4"),
])
NAV_TRIGGER = np.dtype([
    ("line", "<i4"), ("sector", "<i4"), ("node", "<i4"), ("x", "<i2"), ("y", "<i2"), ("use", "<i2"), ("key", "<i2"),
    ("exits", "<i2"), ("repeats", "<i2"),
])
LEVEL = np.dtype([
    ("name", "S8"), ("episode", "<i4"), ("map", "<i4"), ("sky", "<i4"), ("node_depth", "<i4"),
    ("vertices", SPAN), ("sectors", SPAN), ("sides", SPAN), ("lines", SPAN), ("segs", SPAN), ("subsectors", SPAN),
    ("nodes", SPAN), ("things", SPAN), ("sector_lines", SPAN), ("reject", SPAN),
    ("block_x", "<i4"), ("block_y", "<i4"), ("block_columns", "<i4"), ("block_rows", "<i4"),
    ("block_first", SPAN), ("block_lines", SPAN),
    ("nav_nodes", SPAN), ("nav_edges", SPAN), ("nav_triggers", SPAN), ("nav_sector_triggers", SPAN),
])

STATE = np.dtype([
    ("sprite", "<i2"), ("frame", "<i2"), ("bright", "<i2"), ("action", "<i2"), ("tics", "<i4"), ("next", "<i4"),
])
THING_TYPE = np.dtype([(name, "<u4" if name == "flags" else "<i4") for name in (
    "number", "spawn_state", "see_state", "pain_state", "melee_state", "missile_state", "death_state", "xdeath_state",
    "raise_state", "see_sound", "attack_sound", "pain_sound", "death_sound", "active_sound", "health", "reaction_time",
    "pain_chance", "speed", "radius", "height", "mass", "damage", "flags",
)])
WEAPON_TYPE = np.dtype([(name, "<i4") for name in (
    "ammo", "up_state", "down_state", "ready_state", "attack_state", "flash_state", "ammo_per_shot",
)])
LINE_SPECIAL = np.dtype([
    ("trigger", "u1"), ("kind", "u1"), ("variant", "u1"), ("repeats", "u1"), ("monsters", "u1"), ("key", "u1"),
    ("_pad", "u1", (2,)), ("argument", "<i4"),
])
SECTOR_SPECIAL = np.dtype([
    ("kind", "u1"), ("damage", "u1"), ("leaks", "u1"), ("secret", "u1"), ("ends_level", "u1"), ("synchronous", "u1"),
    ("dark_tics", "u1"), ("_pad", "u1"),
])

BLOB = np.dtype([
    ("magic", "<u4"), ("version", "<u4"), ("bytes", "<u8"), ("wad_sha256", "u1", (32,)), ("rules", "<u4"),
    ("episodes", "<u4"), ("sky_flat", "<i4"), ("sky_texture", "<i4", (4,)), ("_pad", "<i4"),
    *((name, SPAN) for name in (
        "levels", "textures", "flats", "flat_names", "patches", "sprites", "sprite_frames", "graphics", "animations",
        "switches", "palettes", "colormaps", "demos", "states", "thing_types", "weapons", "line_specials",
        "sector_specials", "fine_sine", "fine_tangent", "tan_to_angle", "random",
    )),
])

STRUCTS = {
    "Patch": PATCH, "Texture": TEXTURE, "SpriteFrame": SPRITE_FRAME, "Sprite": SPRITE, "Animation": ANIMATION,
    "SwitchPair": SWITCH_PAIR, "MapVertex": MAP_VERTEX, "MapSector": MAP_SECTOR, "MapSide": MAP_SIDE,
    "MapLine": MAP_LINE, "MapSeg": MAP_SEG, "MapSubsector": MAP_SUBSECTOR, "MapNode": MAP_NODE, "MapThing": MAP_THING,
    "NavEdge": NAV_EDGE, "NavNode": NAV_NODE, "NavTrigger": NAV_TRIGGER, "Level": LEVEL, "State": STATE,
    "ThingType": THING_TYPE, "WeaponType": WEAPON_TYPE, "LineSpecial": LINE_SPECIAL, "SectorSpecial": SECTOR_SPECIAL,
    "WadBlob": BLOB,
}


class BlobBuilder:
    """Lays arrays one behind the other, each at a multiple of ALIGNMENT bytes."""

    def __init__(self, header_bytes: int) -> None:
        self._parts: list[bytes] = [bytes(header_bytes)]
        self.size = header_bytes

    def add(self, array: np.ndarray) -> tuple[int, int]:
        """Appends a contiguous array; returns its Span: (offset in bytes, elements along axis 0)."""
        return self.add_bytes(array.tobytes()), len(array)

    def add_bytes(self, data: bytes) -> int:
        """Appends raw bytes; returns their offset."""
        gap = -self.size % ALIGNMENT
        offset = self.size + gap
        self._parts += (bytes(gap), data)
        self.size = offset + len(data)
        return offset

    def finish(self, header: np.ndarray) -> np.ndarray:
        """The blob, u1 [bytes], with `header` at its start."""
        blob = np.frombuffer(bytearray(b"".join(self._parts)), np.uint8)
        blob[:header.nbytes] = np.frombuffer(header.tobytes(), np.uint8)
        return blob


def view(blob: np.ndarray, span: np.void, dtype: np.dtype | type | str) -> np.ndarray:
    """The array that `span` describes, as a view into the blob (u1 [bytes])."""
    kind = np.dtype(dtype)
    start, count = int(span["offset"]), int(span["count"])
    return blob[start:start + count * kind.itemsize].view(kind)


def header(blob: np.ndarray) -> np.void:
    """The WadBlob struct at the blob's start."""
    return blob[:BLOB.itemsize].view(BLOB)[0]
