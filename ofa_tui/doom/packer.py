"""Packs a WAD into the one blob that the kernel reads (cuda/doom/blob.h)."""

from __future__ import annotations

import numpy as np

from ofa_tui.doom import layout, math_tables, tables
from ofa_tui.doom.levels import (
    LevelData,
    Names,
    episode_and_map,
    is_doom2,
    map_names,
    read_level,
)
from ofa_tui.doom.navigation import Navigation, navigate
from ofa_tui.doom.packed import PALETTES
from ofa_tui.doom.pictures import (
    PictureStore,
    TextureDefinition,
    pack_flats,
    pack_graphics,
    pack_sprites,
    pack_textures,
    texture_definitions,
)
from ofa_tui.doom.wad import Wad, WadError

COLORMAPS = 34
RULES_ULTIMATE, RULES_DOOM2 = 1, 2
SKY_FLAT = "F_SKY1"
_TAIL_BYTES = 1024
_FIRST_MAP_OF_SKY = ((21, "SKY3"), (12, "SKY2"), (1, "SKY1"))


def pack(wad: Wad, builder: layout.BlobBuilder | None = None) -> np.ndarray:
    """u1 [bytes]: the blob of a whole WAD, laid out by `builder`. Raises WadError for a damaged or incomplete WAD."""
    maps = map_names(wad)
    if not maps:
        raise WadError(f"{wad.path} has no map; use a game's main WAD (an IWAD such as freedoom1.wad).")
    doom2 = is_doom2(wad)
    maps = [name for name in maps if name.startswith("MAP") == doom2]
    head = np.zeros(1, layout.BLOB)
    builder = builder or layout.BlobBuilder(layout.BLOB.itemsize)
    definitions = texture_definitions(wad)
    flats, flat_names = pack_flats(wad)
    names = Names(_first_numbers([d.name for d in definitions]), _last_numbers(flat_names), tables.types_by_number())
    if SKY_FLAT not in names.flats:
        raise WadError(f"{wad.path} has no flat {SKY_FLAT}; use a game's main WAD (an IWAD such as freedoom1.wad).")

    head["magic"], head["version"] = layout.BLOB_MAGIC, layout.BLOB_VERSION
    head["wad_sha256"] = np.frombuffer(bytes.fromhex(wad.sha256), np.uint8)
    head["rules"] = RULES_DOOM2 if doom2 else RULES_ULTIMATE
    head["episodes"] = 1 if doom2 else max(episode_and_map(name)[0] for name in maps)
    head["sky_flat"] = names.flats[SKY_FLAT]
    head["sky_texture"] = [names.textures.get(f"SKY{i}", 0) for i in range(1, 5)]

    levels = np.zeros(len(maps), layout.LEVEL)
    for number, name in enumerate(maps):
        level = read_level(wad, name, names)
        levels[number] = _pack_level(level, navigate(level), _sky(name, doom2, names), builder)
    head["levels"] = builder.add(levels)
    _pack_pictures(wad, doom2, definitions, head, builder)
    head["flats"] = builder.add(flats.ravel())
    head["flat_names"] = builder.add(flat_names)
    head["animations"] = builder.add(_animations(names))
    head["switches"] = builder.add(_switches(names, doom2))
    head["palettes"] = builder.add(_rows(wad, "PLAYPAL", PALETTES, 768))
    head["colormaps"] = builder.add(_rows(wad, "COLORMAP", COLORMAPS, 256))
    demos = [lump for i in range(1, 5) if (lump := wad.find(f"DEMO{i}")) is not None]
    spans = [builder.add(np.frombuffer(wad.lump(lump), np.uint8)) for lump in demos]
    head["demos"] = builder.add(np.array(spans, layout.SPAN))
    for field, table in tables.behaviour_tables().items():
        head[field] = builder.add(table)
    head["fine_sine"] = builder.add(math_tables.fine_sine())
    head["fine_tangent"] = builder.add(math_tables.fine_tangent())
    head["tan_to_angle"] = builder.add(math_tables.tan_to_angle())
    # The last picture read may run on for a column; it must stay inside the blob.
    builder.add_bytes(bytes(_TAIL_BYTES))
    head["bytes"] = builder.size
    if builder.size >= 1 << 32:
        raise WadError(f"{wad.path} is too large to be packed; use another WAD.")
    return builder.finish(head)


def _first_numbers(names: list[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, number)
    return numbers


def _last_numbers(names: np.ndarray) -> dict[str, int]:
    return {name.decode("latin-1"): number for number, name in enumerate(names.tolist())}


def _sky(name: str, doom2: bool, names: Names) -> int:
    episode, number = episode_and_map(name)
    texture = next(sky for first, sky in _FIRST_MAP_OF_SKY if number >= first) if doom2 else f"SKY{episode}"
    return names.textures.get(texture, 0)


def _pack_level(level: LevelData, nav: Navigation, sky: int, builder: layout.BlobBuilder) -> tuple:
    grid = level.blockmap
    return (
        level.name.encode(), level.episode, level.map, sky, level.node_depth,
        *(builder.add(array) for array in (
            level.vertices, level.sectors, level.sides, level.lines, level.segs, level.subsectors, level.nodes,
            level.things, level.sector_lines, level.reject,
        )),
        grid.x, grid.y, grid.columns, grid.rows, builder.add(grid.first), builder.add(grid.lines),
        builder.add(nav.nodes), builder.add(nav.edges), builder.add(nav.triggers), builder.add(nav.sector_triggers),
    )


def _pack_pictures(wad: Wad, doom2: bool, definitions: list[TextureDefinition], head: np.ndarray,
                   builder: layout.BlobBuilder) -> None:
    store = PictureStore(wad, builder)
    head["textures"] = builder.add(pack_textures(definitions, store, builder))
    sprites, frames = pack_sprites(wad, tables.sprite_names(), store)
    head["sprites"], head["sprite_frames"] = builder.add(sprites), builder.add(frames)
    head["graphics"] = builder.add(pack_graphics(wad, doom2, store))
    head["patches"] = builder.add(store.table())


def _rows(wad: Wad, name: str, rows: int, row_bytes: int) -> np.ndarray:
    data = wad.read(name)
    if len(data) < rows * row_bytes:
        raise WadError(f"{wad.path} is damaged: lump {name} is too short; get a fresh copy of the file.")
    return np.frombuffer(data, np.uint8, rows * row_bytes).reshape(rows, row_bytes)


def _animations(names: Names) -> np.ndarray:
    found = []
    for row in tables.animations():
        table = names.textures if row.is_texture else names.flats
        first, last = table.get(row.first), table.get(row.last)
        if first is not None and last is not None and last > first:
            found.append((row.is_texture, first, last - first + 1, row.tics))
    return np.array(found, layout.ANIMATION)


def _switches(names: Names, doom2: bool) -> np.ndarray:
    return np.array([
        (names.textures[row.off], names.textures[row.on]) for row in tables.switches()
        if row.off in names.textures and row.on in names.textures and (doom2 or not row.doom2_only)
    ], layout.SWITCH_PAIR)
