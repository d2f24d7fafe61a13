"""WADs, whole and broken: the packed blob holds what the lumps say, and damage ends in a sentence."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.doom import layout, packed, packer
from ofa_tui.doom.layout import header, view
from ofa_tui.doom.navigation import DOOR, MOVES
from ofa_tui.doom.wad import WadError, parse_wad
from ofa_tui.errors import OfaError
from tests.doom.blob_checks import check_indices
from tests.doom.tiny_wad import TEXTURES, build, lumps

TINY = build(lumps())


def pack(data: bytes) -> np.ndarray:
    return packer.pack(parse_wad(data, "tiny.wad"))


@pytest.fixture(scope="module")
def blob() -> np.ndarray:
    return pack(TINY)


def test_level_is_completed_as_at_level_start(blob: np.ndarray) -> None:
    head = header(blob)
    (level,) = view(blob, head["levels"], layout.LEVEL)
    lines = view(blob, level["lines"], layout.MAP_LINE)
    sectors = view(blob, level["sectors"], layout.MAP_SECTOR)
    segs = view(blob, level["segs"], layout.MAP_SEG)
    assert (level["episode"], level["map"], level["node_depth"]) == (1, 1, 2)
    assert lines["slope"].tolist() == [1, 0, 1, 0, 0, 0, 1, 0, 1, 0]
    assert lines["sector"][2].tolist() == [0, 1] and lines["sector"][0].tolist() == [0, -1]
    assert segs["back"].tolist() == [-1, -1, 1, -1, 0, -1, 2, -1, 1, -1, -1, -1]
    assert view(blob, level["subsectors"], layout.MAP_SUBSECTOR)["sector"].tolist() == [0, 1, 2]
    listed = view(blob, level["sector_lines"], "<i4")
    door = sectors[1]
    assert listed[door["first_line"]:door["first_line"] + door["n_lines"]].tolist() == [2, 4, 5, 6]
    assert (door["sound_x"], door["sound_y"]) == (272 << 16, 128 << 16)
    # The grid begins 8 units below and left of the map: 224..320 grown by 32 each way is cells 1 and 2 across.
    assert door["block_box"].tolist() == [2, 0, 1, 2]
    assert sectors["ceiling_flat"].tolist()[0] == head["sky_flat"] == 1
    things = view(blob, level["things"], layout.MAP_THING)
    assert things["type"].tolist() == [-1, 1, 30, -1]


def test_way_finding_leads_through_the_door_to_the_exit(blob: np.ndarray) -> None:
    (level,) = view(blob, header(blob)["levels"], layout.LEVEL)
    nodes = view(blob, level["nav_nodes"], layout.NAV_NODE)
    edges = view(blob, level["nav_edges"], layout.NAV_EDGE)
    assert nodes["n_edges"].tolist() == [1, 2, 1]
    into = edges[nodes["first_edge"][0]]
    assert (into["to"], into["line"], into["kind"], into["flags"]) == (1, 2, MOVES, DOOR)
    assert (into["x"], into["y"]) == (256, 128)
    assert (into["x1"], into["y1"], into["x2"], into["y2"]) == (256, 256, 256, 0)  # left end first, going east
    triggers = view(blob, level["nav_triggers"], layout.NAV_TRIGGER)
    exits = triggers[triggers["sector"] == -1]
    assert exits[["line", "node", "exits"]].tolist() == [(8, 2, 1)]
    assert 544 - 64 < exits["x"][0] < 544 - 16
    first = view(blob, level["nav_sector_triggers"], "<i4")
    assert first.tolist() == [1, 1, 3, 3]


def column(blob: np.ndarray, texture: str, x: int, length: int) -> list[int]:
    """Pixels from row 0 down, as the renderer reads them."""
    table = view(blob, header(blob)["textures"], layout.TEXTURE)
    entry = table[list(TEXTURES).index(texture)]
    start = int(view(blob, entry["columns"], "<u4")[x])
    return blob[start:start + length].tolist()


def test_texture_columns_under_one_patch_are_the_lump_itself(blob: np.ndarray) -> None:
    assert column(blob, "PLAIN", 0, 8) == [10] * 8
    # Past the end of a post come its closing byte, the next post's header, its pixels, the end mark, the next column.
    assert column(blob, "PLAIN", 1, 13) == [0x21, 0x22, 0x23, 0, 5, 2, 0, 0x31, 0x32, 0, 255, 0, 8]
    # The last column runs past the end of the lump, where everything reads as zero.
    assert column(blob, "PLAIN", 3, 128) == [13] * 8 + [0, 255] + [0] * 118


def test_texture_columns_under_two_patches_are_composed(blob: np.ndarray) -> None:
    # Column 2 and 3 of MIXED lie under both patches. HOLE is drawn 3 rows up: its post of 3 begins at row -1, loses its
    # last row (the original forgets to move the source), and covers rows 0 and 1.
    assert column(blob, "MIXED", 2, 8) == [90, 90, *[12] * 6]
    assert column(blob, "MIXED", 3, 8) == [91, 91, *[13] * 6]
    # Composed columns follow each other; after the last one zeros.
    assert column(blob, "MIXED", 2, 128) == [90, 90, *[12] * 6, 91, 91, *[13] * 6, *[0] * 112]
    # Column 4 lies under HOLE alone: read straight from the patch, whatever its position.
    assert column(blob, "MIXED", 4, 3) == [92] * 3


def test_sprites_know_rotations_and_mirroring(blob: np.ndarray) -> None:
    head = header(blob)
    sprites = view(blob, head["sprites"], layout.SPRITE)
    frames = view(blob, head["sprite_frames"], layout.SPRITE_FRAME)
    trooper = frames[sprites["first_frame"][0]]
    assert trooper["rotates"] == 1 and trooper["flip"].tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert trooper["patch"][1] == trooper["patch"][7] >= 0 and trooper["patch"][3] == -1
    puff = frames[sprites["first_frame"][17]]
    assert puff["rotates"] == 0 and len(set(puff["patch"].tolist())) == 1


def replaced(name: str, data: bytes) -> bytes:
    return build([(lump, data if lump == name else old) for lump, old in lumps()])


def patched(name: str, offset: int, value: bytes) -> bytes:
    old = dict(lumps())[name]
    return replaced(name, old[:offset] + value + old[offset + len(value):])


@pytest.mark.parametrize(("data", "words"), [
    (b"", "not a WAD"),
    (TINY[:-20], "truncated"),
    (build([part for part in lumps() if part[0] != "PLAYPAL"]), "PLAYPAL"),
    (build([part for part in lumps() if part[0] not in ("E1M1", "THINGS")]), "no map"),
    (replaced("PLAYPAL", b"abc"), "too short"),
    (patched("LINEDEFS", 0, b"\x99\x99"), "end of a line"),
    (patched("SIDEDEFS", 28, b"\x99\x99"), "sector of a wall"),
    (patched("SIDEDEFS", 4, b"UNKNOWN\0"), "UNKNOWN"),
    (patched("NODES", 24, b"\0\0"), "no tree"),
    (patched("NODES", 24, b"\x99\x99"), "subsector"),
    (patched("SSECTORS", 0, b"\xff"), "subsectors"),
    (patched("THINGS", 6, b"\x02"), "player 1"),
    (patched("VERTEXES", 0, struct.pack("<hh", -32768, -32768)), "larger than the engine takes"),
    (patched("WALL", 8, b"\xff\xff\xff\xff"), "not a Doom picture"),
    (patched("PNAMES", 4, b"GONE\0\0\0\0"), "lacks a patch"),
])
def test_damage_is_named(data: bytes, words: str) -> None:
    with pytest.raises(WadError, match=words) as caught:
        pack(data)
    assert "\n" not in str(caught.value)


LUMPS = [(name, len(data)) for name, data in lumps() if data and name not in ("COLORMAP", "PLAYPAL", "FLOOR", "F_SKY1")]
BYTES = st.binary(min_size=1, max_size=4) | st.sampled_from([b"\xff\xff", b"\0\0", b"\xff\x7f", b"\0\x80"])


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LUMPS), st.floats(0, 1, exclude_max=True), BYTES), min_size=1, max_size=3))
def test_damaged_lumps_pack_or_end_in_a_sentence(damage: list[tuple[tuple[str, int], float, bytes]]) -> None:
    contents = dict(lumps())
    for (name, size), share, value in damage:
        at = int(size * share)
        contents[name] = (contents[name][:at] + value + contents[name][at + len(value):])[:size]
    try:
        blob = pack(build(contents.items()))
    except OfaError:
        return
    check_indices(blob)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(TINY)), st.lists(st.tuples(st.integers(0, len(TINY) - 1), st.integers(0, 255)), max_size=4))
def test_damaged_files_read_or_end_in_a_sentence(length: int, changes: list[tuple[int, int]]) -> None:
    data = bytearray(TINY)
    # Half of the changes go to the header and the directory, where they hurt most.
    for number, (at, value) in enumerate(changes):
        data[at if number % 2 else (at % 12 if at % 2 else len(data) - 1 - at % 600)] = value
    with contextlib.suppress(OfaError):
        check_indices(pack(bytes(data[:length] if length % 3 == 0 else data)))


def test_packed_wad_comes_from_the_cache_and_a_bad_cache_is_made_anew(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "tiny.wad"
    file.write_bytes(TINY)
    wad = packed.load(file)
    (cached,) = (tmp_path / "cache" / "wads").iterdir()
    monkeypatch.setattr(packer, "pack", lambda wad: pytest.fail("packed again"))
    assert np.array_equal(packed.load(file).blob, wad.blob)
    monkeypatch.undo()
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))
    cached.write_bytes(cached.read_bytes()[:5000])
    assert np.array_equal(packed.load(file).blob, wad.blob)
    assert wad.episode_and_map("e1m1") == (1, 1)
    with pytest.raises(WadError, match=r"has no map E1M2; it has E1M1"):
        wad.episode_and_map("E1M2")
