"""Damaged WADs and demos by seed: a small sound one, with a few changes as editors, disks and people make them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cache

from ofa_tui.doom.lmp import END, HEADER_BYTES
from tests.doom import grid_wad, tiny_wad
from tests.doom.tiny_wad import Lump, build, name8

Lumps = list[Lump]

# Bytes of a record, and offsets of its 16-bit fields and of its names.
RECORDS: dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]] = {
    "THINGS": (10, (0, 2, 4, 6, 8), ()),
    "LINEDEFS": (14, (0, 2, 4, 6, 8, 10, 12), ()),
    "SIDEDEFS": (30, (0, 2, 28), (4, 12, 20)),
    "VERTEXES": (4, (0, 2), ()),
    "SEGS": (12, (0, 2, 4, 6, 8, 10), ()),
    "SSECTORS": (4, (0, 2), ()),
    "NODES": (28, tuple(range(0, 28, 2)), ()),
    "SECTORS": (26, (0, 2, 20, 22, 24), (4, 12)),
    "PNAMES": (8, (0, 2), (4,)),
    "TEXTURE1": (2, (0,), ()),
    "SOLID": (2, (0,), ()),
    "RAGGED": (2, (0,), ()),
    "REJECT": (2, (0,), ()),
}
VALUES = (0, 1, 2, 3, 4, 8, 16, 100, 255, 256, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0xFFFE, 0xFFF0)
NAMES = ("-", "", "PLAIN", "MIXED", "GRATE", "FLOOR", "F_SKY1", "NUKAGE1", "SW1BRCOM", "NOTHERE", "\x1b[31m", "A\nB")
LIKELY = ("THINGS", "LINEDEFS", "SIDEDEFS", "VERTEXES", "SEGS", "SSECTORS", "NODES", "SECTORS")


def _index(rng: random.Random, lumps: Lumps) -> int:
    """A lump, more often one of a map."""
    of_map = [i for i, (name, _) in enumerate(lumps) if name in RECORDS or name == "BLOCKMAP"]
    return rng.choice(of_map) if of_map and rng.random() < 0.8 else rng.randrange(len(lumps))


def _replace(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value):]


def change_fields(rng: random.Random, lumps: Lumps) -> None:
    """A field of one record, or of a run of them."""
    places = [i for i, (name, data) in enumerate(lumps) if name in RECORDS and len(data) >= RECORDS[name][0]]
    if not places:
        return
    index = rng.choice([i for i in places if lumps[i][0] in LIKELY] if rng.random() < 0.8 else places or [0])
    name, data = lumps[index]
    size, fields, names = RECORDS[name]
    first = rng.randrange(len(data) // size)
    count = rng.choice((1, 1, 1, 1, 3, 1000))
    of_name = bool(names) and rng.random() < 0.3
    field = rng.choice(names if of_name else fields)
    value = name8(rng.choice(NAMES)) if of_name else struct.pack("<H", rng.choice((
        rng.choice(VALUES), rng.randrange(1 << 16), rng.randrange(64))))
    for record in range(first, min(first + count, len(data) // size)):
        data = _replace(data, record * size + field, value)
    lumps[index] = name, data[:len(lumps[index][1])]


RecordChange = Callable[[random.Random, bytes, int, tuple[int, ...]], bytes]
"""(rng, lump, bytes of a record, offsets of its fields) to the changed lump."""


def _of_records(change: RecordChange) -> Callable[[random.Random, Lumps], None]:
    """Makes the change to one of the LIKELY lumps."""

    def changed(rng: random.Random, lumps: Lumps) -> None:
        places = [i for i, (name, data) in enumerate(lumps) if name in LIKELY and len(data) >= RECORDS[name][0]]
        if places:
            index = rng.choice(places)
            name, data = lumps[index]
            size, fields, _ = RECORDS[name]
            lumps[index] = name, change(rng, data, size, fields)

    return changed


@_of_records
def nudge_fields(rng: random.Random, data: bytes, size: int, fields: tuple[int, ...]) -> bytes:
    """A little more or less in a field."""
    at = rng.randrange(len(data) // size) * size + rng.choice(fields)
    value = (int.from_bytes(data[at:at + 2], "little") + rng.choice((-64, -8, -1, 1, 8, 64, 1000))) & 0xFFFF
    return _replace(data, at, struct.pack("<H", value))


@_of_records
def copy_fields(rng: random.Random, data: bytes, size: int, fields: tuple[int, ...]) -> bytes:
    """A field of one record, or of a run of them, as another record has it: what is in range stays so."""
    field, records = rng.choice(fields), len(data) // size
    first = rng.randrange(records)
    for record in range(first, min(first + rng.choice((1, 1, 4, 1000)), records)):
        at = rng.randrange(records) * size + field
        data = _replace(data, record * size + field, data[at:at + 2])
    return data


@_of_records
def copy_record(rng: random.Random, data: bytes, size: int, fields: tuple[int, ...]) -> bytes:
    """One record over another."""
    source, target = (rng.randrange(len(data) // size) * size for _ in range(2))
    return _replace(data, target, data[source:source + size])


def flip_bytes(rng: random.Random, lumps: Lumps) -> None:
    index = _index(rng, lumps)
    name, data = lumps[index]
    for _ in range(rng.choice((1, 1, 4, 32))):
        if data:
            data = _replace(data, rng.randrange(len(data)), bytes([rng.randrange(256)]))
    lumps[index] = name, data


def resize_lump(rng: random.Random, lumps: Lumps) -> None:
    index = _index(rng, lumps)
    name, data = lumps[index]
    length = rng.choice((0, 1, len(data) // 2, max(len(data) - 1, 0), len(data) + 1, 2 * len(data) + 30))
    more = data * 2 + bytes(30) if rng.random() < 0.5 else data + rng.randbytes(length)
    lumps[index] = name, more[:length]


def change_directory(rng: random.Random, lumps: Lumps) -> None:
    """Lumps that are gone, twice there, elsewhere or called otherwise."""
    index, other = _index(rng, lumps), _index(rng, lumps)
    kind = rng.randrange(5)
    if kind == 0 and len(lumps) > 1:
        del lumps[index]
    elif kind == 1:
        lumps.insert(other, lumps[index])
    elif kind == 2:
        lumps[index], lumps[other] = lumps[other], lumps[index]
    elif kind == 3:
        lumps[index] = lumps[index][0], lumps[other][1]
    else:
        lumps[index] = rng.choice((lumps[other][0], "E9M9", "MAP33", "MAP99", "E5M1", "JUNK")), lumps[index][1]


def write_blockmap(rng: random.Random, lumps: Lumps) -> None:
    """A blockmap that may be sound, too small, of wild offsets or of wild lines."""
    places = [i for i, (name, _) in enumerate(lumps) if name == "BLOCKMAP"]
    if not places:
        return
    columns, rows = rng.choice((1, 2, 8, 0, 300)), rng.choice((1, 2, 8, 0xFFFF))
    cells = min(columns * rows, 4000)
    lists = [[0, *(rng.randrange(rng.choice((4, 40, 70000))) & 0xFFFF for _ in range(rng.randrange(6))), 0xFFFF]
             for _ in range(rng.randint(1, 4))]
    starts, words = [], []
    for entries in lists:
        starts.append(4 + cells + len(words))
        words += entries
    if rng.random() < 0.2:
        starts.append(rng.randrange(1 << 16))
    if rng.random() < 0.2:
        words = words[:-1]
    body = [rng.choice(starts) & 0xFFFF for _ in range(cells)] + words
    head = struct.pack("<hhHH", rng.choice((-8, 0, -32768, 32767)), rng.choice((-8, 0, 500)), columns, rows)
    lumps[rng.choice(places)] = "BLOCKMAP", head + struct.pack(f"<{len(body)}H", *body)


def write_reject(rng: random.Random, lumps: Lumps) -> None:
    places = [i for i, (name, _) in enumerate(lumps) if name == "REJECT"]
    if places:
        lumps[rng.choice(places)] = "REJECT", rng.randbytes(rng.choice((0, 1, 7, 50, 1000)))


LUMP_CHANGES: tuple[tuple[Callable[[random.Random, Lumps], None], int], ...] = (
    (change_fields, 35), (copy_fields, 25), (nudge_fields, 15), (copy_record, 8), (flip_bytes, 8), (resize_lump, 4),
    (change_directory, 4), (write_blockmap, 4), (write_reject, 2),
)


def damage_file(rng: random.Random, data: bytes) -> bytes:
    """Changes of the header, the directory or any bytes; a file cut short."""
    kind = rng.randrange(5)
    if kind == 0:
        return _replace(data, rng.choice((0, 4, 8)), rng.choice((rng.randbytes(4), b"\xff\xff\xff\x7f", bytes(4))))
    if kind == 1:
        return data[:rng.randrange(len(data) + 1)]
    if kind == 2:
        return data + rng.randbytes(rng.randrange(64))
    start = int.from_bytes(data[8:12], "little") if kind == 3 else 0
    for _ in range(rng.choice((1, 3, 20))):
        at = rng.randrange(min(start, len(data) - 1), len(data))
        data = _replace(data, at, bytes([rng.randrange(256)]))
    return data


def wad(seed: int) -> bytes:
    """The damaged WAD with this seed."""
    rng = random.Random(f"wad {seed}")
    lumps = tiny_wad.lumps() if rng.random() < 0.05 else grid_wad.lumps(rng.randrange(1 << 30))
    changes, weights = zip(*LUMP_CHANGES, strict=True)
    for change in rng.choices(changes, weights, k=rng.choice((0, 1, 2, 3, 6))):
        change(rng, lumps)
    data = build((name[:8], data) for name, data in lumps)
    return damage_file(rng, data) if rng.random() < 0.1 else data


SOUND_WADS = 16


@cache
def sound_wad(number: int) -> bytes:
    """One of SOUND_WADS that damaged demos are played with."""
    return grid_wad.grid_wad(number)


def demo(seed: int, maps: list[str]) -> bytes:
    """The damaged demo with this seed, of a WAD with these maps (`E1M1`, `MAP01`)."""
    rng = random.Random(f"demo {seed}")
    name = rng.choice(maps)
    episode, number = (1, int(name[3:])) if name.startswith("MAP") else (int(name[1]), int(name[3]))
    present = [1, *(rng.randrange(2) for _ in range(3))] if rng.random() < 0.4 else [1, 0, 0, 0]
    tics = rng.choice((1, 5, 20, 60))
    header = [rng.choice((109, 109, 106)), rng.randrange(5), episode, number, 0, rng.randrange(2), rng.randrange(2),
              rng.randrange(2), 0, *present]
    data = bytes(header) + rng.randbytes(4 * sum(present) * tics).replace(b"\x80", b"\x81") + bytes([END])
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        kind = rng.randrange(4)
        if kind == 0:
            data = _replace(data, rng.randrange(HEADER_BYTES), bytes([rng.choice((0, 1, 2, 3, 8, 9, 30, 32, 33, 255))]))
        elif kind == 1:
            data = _replace(data, rng.randrange(max(len(data), 1)), rng.randbytes(1))
        elif kind == 2:
            data = data[:rng.randrange(len(data) + 1)]
        else:
            at = rng.randrange(len(data) + 1)
            data = data[:at] + rng.randbytes(rng.randrange(9)) + data[at:]
    return data
