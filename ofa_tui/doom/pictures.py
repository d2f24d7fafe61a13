"""Pictures of a WAD as the packed blob holds them: patches, wall textures, flats, sprites, named graphics.

Formats (as in the Unofficial Doom Specs): a picture lump has int16 width, height, left, top, then int32 column offsets;
a column is a run of posts. TEXTURE1/2 list textures as patches (numbers into PNAMES) at offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ofa_tui.doom.layout import PATCH, PATCH_END, PATCH_PADDING, SPRITE, SPRITE_FRAME, TEXTURE, BlobBuilder
from ofa_tui.doom.wad import Wad, WadError, clean_name

FLAT_BYTES = 4096
_LARGEST_SIDE = 4096
_MOST_PATCHES = 1024
_MOST_PICTURES = (1 << 15) - 1
_MOST_NUMBERS = 4096
"""Of wall textures and of flats: MAX_SHOWN in cuda/doom/render/scratch.h."""
_MOST_TEXELS = 1 << 28
_TAIL = bytes(PATCH_PADDING) + b"\xff" * PATCH_END


@dataclass(frozen=True)
class Picture:
    """A picture lump taken apart: `columns` i4 [width] are offsets of first posts inside `data`."""

    name: str
    width: int
    height: int
    left: int
    top: int
    columns: np.ndarray
    data: bytes

    def posts(self, column: int) -> Iterator[tuple[int, bytes]]:
        """(row, pixels) of each post of a column; stops where the lump ends."""
        at = int(self.columns[column])
        while at + 1 < len(self.data) and self.data[at] != 255:
            length = self.data[at + 1]
            yield self.data[at], self.data[at + 3:at + 3 + length]
            at += length + 4


def parse_picture(data: bytes, name: str, path: str) -> Picture:
    """A picture lump. Raises WadError when its size or a column offset is out of range."""
    problem = WadError(f"{path} is damaged: lump {name} is not a Doom picture; get a fresh copy of the file.")
    if len(data) < 8:
        raise problem
    width, height, left, top = struct.unpack_from("<4h", data)
    if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE) or 8 + 4 * width > len(data):
        raise problem
    columns = np.frombuffer(data, "<u4", width, 8).astype(np.int64)
    if int(columns.max()) >= len(data):
        raise problem
    return Picture(name, width, height, left, top, columns, data)


class PictureStore:
    """Patches of the blob: each lump is packed once, whoever asks for it."""

    def __init__(self, wad: Wad, builder: BlobBuilder) -> None:
        self._wad = wad
        self._builder = builder
        self._numbers: dict[int, int] = {}
        self.pictures: list[Picture] = []
        self.offsets: list[int] = []

    def number(self, lump: int) -> int:
        """Patch number of a lump."""
        known = self._numbers.get(lump)
        if known is not None:
            return known
        if len(self.pictures) >= _MOST_PICTURES:
            raise WadError(f"{self._wad.path} has more pictures than the engine takes; use another WAD.")
        picture = parse_picture(self._wad.lump(lump), self._wad.names[lump], self._wad.path)
        self.pictures.append(picture)
        self.offsets.append(self._builder.add_bytes(picture.data + _TAIL))
        self._numbers[lump] = len(self.pictures) - 1
        return len(self.pictures) - 1

    def table(self) -> np.ndarray:
        """PATCH [number of patches]; to be called when nothing more is added."""
        starts = np.cumsum([0, *(p.width for p in self.pictures)])
        offsets = [picture.columns + at for picture, at in zip(self.pictures, self.offsets, strict=True)]
        columns = self._builder.add(np.concatenate(offsets).astype("<u4"))[0] if offsets else 0
        table = np.zeros(len(self.pictures), PATCH)
        for number, picture in enumerate(self.pictures):
            table[number] = (
                picture.name.encode("latin-1"), picture.width, picture.height, picture.left, picture.top,
                (columns + 4 * int(starts[number]), picture.width), (self.offsets[number], len(picture.data)),
            )
        return table


@dataclass(frozen=True)
class _PatchUse:
    x: int
    y: int
    lump: int


@dataclass(frozen=True)
class TextureDefinition:
    """One entry of TEXTURE1/2; `patches` in drawing order."""

    name: str
    width: int
    height: int
    patches: tuple[_PatchUse, ...]


def texture_definitions(wad: Wad) -> list[TextureDefinition]:
    """All wall textures in number order. Raises WadError for a broken list or an unknown patch."""
    names_lump = wad.read("PNAMES")
    count = int.from_bytes(names_lump[:4], "little")
    if len(names_lump) < 4 + 8 * count:
        raise WadError(f"{wad.path} is damaged: PNAMES is too short; get a fresh copy of the file.")
    lumps = [wad.find(clean_name(names_lump[4 + 8 * i:12 + 8 * i])) for i in range(count)]
    definitions = _parse_texture_list(wad, "TEXTURE1", lumps)
    if wad.find("TEXTURE2") is not None:
        definitions += _parse_texture_list(wad, "TEXTURE2", lumps)
    if not 0 < len(definitions) <= _MOST_NUMBERS:
        raise WadError(f"{wad.path} has {len(definitions)} wall textures; the engine takes 1 to {_MOST_NUMBERS}, so use"
                       " another WAD.")
    if sum(definition.width * definition.height for definition in definitions) > _MOST_TEXELS:
        raise WadError(f"{wad.path} has larger wall textures than the engine takes; use another WAD.")
    return definitions


def _parse_texture_list(wad: Wad, lump_name: str, lumps: list[int | None]) -> list[TextureDefinition]:
    data = wad.read(lump_name)
    problem = WadError(f"{wad.path} is damaged: {lump_name} is not a texture list; get a fresh copy of the file.")
    definitions = []
    try:
        (count,) = struct.unpack_from("<i", data)
        if not 0 <= count <= len(data) // 4:
            raise problem
        for offset in struct.unpack_from(f"<{count}i", data, 4):
            if offset < 0:
                raise problem
            raw, _, width, height, _, n = struct.unpack_from("<8sihhih", data, offset)
            if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE) or not 0 <= n <= _MOST_PATCHES:
                raise problem
            uses = []
            for i in range(n):
                x, y, number = struct.unpack_from("<hhh", data, offset + 22 + 10 * i)
                lump = lumps[number] if 0 <= number < len(lumps) else None
                if lump is None:
                    raise WadError(f"{wad.path} lacks a patch of wall texture {clean_name(raw)}; use a complete game"
                                   " WAD (an IWAD such as freedoom1.wad).")
                uses.append(_PatchUse(x, y, lump))
            definitions.append(TextureDefinition(clean_name(raw), width, height, tuple(uses)))
    except struct.error as error:
        raise problem from error
    return definitions


def pack_textures(definitions: list[TextureDefinition], store: PictureStore, builder: BlobBuilder) -> np.ndarray:
    """TEXTURE [n]. Columns under one patch point into its lump, the others into a composite of their own."""
    table = np.zeros(len(definitions), TEXTURE)
    for number, definition in enumerate(definitions):
        covers = np.zeros(definition.width, np.int64)
        columns = np.zeros(definition.width, np.int64)
        for use in definition.patches:
            patch = store.number(use.lump)
            picture, base = store.pictures[patch], store.offsets[patch]
            left, right = max(use.x, 0), min(use.x + picture.width, definition.width)
            if left < right:
                covers[left:right] += 1
                columns[left:right] = base + picture.columns[left - use.x:right - use.x] + 3
        composed = np.flatnonzero(covers != 1)
        if len(composed):
            texels = compose(definition, store, composed)
            # Four zeros in front: a masked read looks 3 bytes before a column's pixels.
            block = builder.add_bytes(bytes(4) + texels.tobytes() + _TAIL) + 4
            columns[composed] = block + np.arange(len(composed)) * definition.height
        mask = (1 << (definition.width.bit_length() - 1)) - 1
        table[number] = (definition.name.encode("latin-1"), definition.width, definition.height, mask,
                         builder.add(columns.astype("<u4")))
    return table


def compose(definition: TextureDefinition, store: PictureStore, composed: np.ndarray) -> np.ndarray:
    """u1 [len(composed), height]: the columns `composed` of a texture, patches drawn in order over zeros.

    A post that begins above the texture loses its last rows, not its first: the original cuts its length and forgets
    to move the source.
    """
    height = definition.height
    row_of = np.full(definition.width, -1)
    row_of[composed] = np.arange(len(composed))
    texels = np.zeros((len(composed), height), np.uint8)
    for use in definition.patches:
        picture = store.pictures[store.number(use.lump)]
        for x in range(max(use.x, 0), min(use.x + picture.width, definition.width)):
            row = row_of[x]
            if row < 0:
                continue
            for top, pixels in picture.posts(x - use.x):
                start = use.y + top
                length = len(pixels) + min(start, 0)
                start = max(start, 0)
                length = min(length, height - start)
                if length > 0:
                    texels[row, start:start + length] = np.frombuffer(pixels, np.uint8, length)
    return texels


def flat_range(wad: Wad) -> tuple[int, int]:
    """Index of the first lump after F_START, and number of lumps before F_END (markers inside count)."""
    first, end = wad.index("F_START") + 1, wad.index("F_END")
    if first >= end:
        raise WadError(f"{wad.path} is damaged: it has no floors between F_START and F_END; get a fresh copy.")
    if end - first > _MOST_NUMBERS:
        raise WadError(f"{wad.path} has {end - first} floors; the engine takes {_MOST_NUMBERS}, so use another WAD.")
    return first, end - first


def pack_flats(wad: Wad) -> tuple[np.ndarray, np.ndarray]:
    """(u1 [n, 4096] pixels, S8 [n] names) by flat number; markers and short lumps are filled up with zeros."""
    first, count = flat_range(wad)
    pixels = np.zeros((count, FLAT_BYTES), np.uint8)
    for number in range(count):
        data = np.frombuffer(wad.lump(first + number)[:FLAT_BYTES], np.uint8)
        pixels[number, :len(data)] = data
    return pixels, np.array([name.encode("latin-1") for name in wad.names[first:first + count]], "S8")


def pack_sprites(wad: Wad, names: list[str], store: PictureStore) -> tuple[np.ndarray, np.ndarray]:
    """(SPRITE [len(names)], SPRITE_FRAME [n]) from the lumps between S_START and S_END.

    A lump is called NAME, then frame letter and rotation digit (0: all eight), and perhaps a second letter and digit
    for which it is mirrored.
    """
    first, end = wad.index("S_START") + 1, wad.index("S_END")
    views: dict[str, dict[int, dict[int, tuple[int, bool]]]] = {name: {} for name in names}
    for lump in range(first, max(first, end)):
        name = wad.names[lump]
        frames = views.get(name[:4])
        if frames is None:
            continue
        for at, flip in ((4, False), (6, True)):
            if len(name) < at + 2:
                continue
            frame, rotation = ord(name[at]) - ord("A"), ord(name[at + 1]) - ord("0")
            if 0 <= frame < 29 and 0 <= rotation <= 8:
                frames.setdefault(frame, {})[rotation] = (store.number(lump), flip)
    sprites = np.zeros(len(names), SPRITE)
    table: list[tuple[list[int], list[bool], bool, list[int]]] = []
    for number, name in enumerate(names):
        frames = views[name]
        count = max(frames, default=-1) + 1
        sprites[number] = (name.encode(), len(table), count)
        for frame in range(count):
            seen = frames.get(frame, {})
            rotates = any(rotation in seen for rotation in range(1, 9))
            chosen = [seen.get(i + 1 if rotates else 0, seen.get(0, (-1, False))) for i in range(8)]
            table.append(([patch for patch, _ in chosen], [flip for _, flip in chosen], rotates, [0] * 7))
    return sprites, np.array(table, SPRITE_FRAME)


def graphic_names(doom2: bool) -> list[str]:
    """Lump names in the order of the enum Graphic of blob.h; an empty name has no picture."""
    faces = [name for pain in range(5) for name in (
        *(f"STFST{pain}{look}" for look in range(3)),
        f"STFTR{pain}0", f"STFTL{pain}0", f"STFOUCH{pain}", f"STFEVL{pain}", f"STFKILL{pain}",
    )]
    doom1_levels = [f"WILV{e}{m}" for e in range(4) for m in range(9)]
    levels = [f"CWILV{i:02d}" for i in range(32)] + [""] * 4 if doom2 else doom1_levels
    return [
        "STBAR", "STARMS", "STTMINUS", "STTPRCNT",
        *(f"STTNUM{i}" for i in range(10)), *(f"STGNUM{i}" for i in range(10)), *(f"STYSNUM{i}" for i in range(10)),
        *(f"STKEYS{i}" for i in range(6)), *faces, "STFGOD0", "STFDEAD0", *(f"STFB{i}" for i in range(4)),
        *(f"STCFN{i:03d}" for i in range(33, 96)), *(f"WINUM{i}" for i in range(10)),
        "WIMINUS", "WIPCNT", "WICOLON", "WIF", "WIENTER", "WIOSTK", "WIOSTI", "WISCRT2", "WITIME", "WIPAR", "WISUCKS",
        "WISPLAT", "WIURH0", "WIURH1", "WIMAP0", "WIMAP1", "WIMAP2", "INTERPIC",
        *(f"WIA{e}{a:02d}{f:02d}" for e in range(3) for a in range(10) for f in range(3)), *levels,
        "WIKILRS", "WIVCTMS", "WIMSTT", "WIFRGS", "WIOSTS", *(f"WIP{i}" for i in range(1, 5)),
        *(f"WIBP{i}" for i in range(1, 5)), *(f"STPB{i}" for i in range(4)),
        "TITLEPIC", "CREDIT", "VICTORY2", "ENDPIC", "BOSSBACK", "PFUB1", "PFUB2", *(f"END{i}" for i in range(7)),
        "M_PAUSE",
        *(f"BRDR_{place}" for place in ("TL", "T", "TR", "L", "R", "BL", "B", "BR")),
    ]


def pack_graphics(wad: Wad, doom2: bool, store: PictureStore) -> np.ndarray:
    """i4 [GRAPHICS]: patch number of each named graphic, -1 where the WAD lacks it."""
    lumps = [wad.find(name) if name else None for name in graphic_names(doom2)]
    return np.array([-1 if lump is None else store.number(lump) for lump in lumps], "<i4")
