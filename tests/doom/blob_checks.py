"""What the engine relies on in a packed WAD, since it follows indices without looking."""

from __future__ import annotations

import numpy as np

from ofa_tui.doom import layout
from ofa_tui.doom.layout import header, view


def check_indices(blob: np.ndarray) -> None:
    """Whatever the kernel follows leads to something that exists."""
    head = header(blob)
    assert head["bytes"] == len(blob)
    n_textures, n_flats = int(head["textures"]["count"]), int(head["flats"]["count"]) // 4096
    n_patches = int(head["patches"]["count"])
    for texture in view(blob, head["textures"], layout.TEXTURE):
        columns = view(blob, texture["columns"], "<u4")
        assert len(columns) == texture["width"] > texture["width_mask"]
        assert int(columns.max()) + 128 <= len(blob)
    for patch in view(blob, head["patches"], layout.PATCH):
        assert int(view(blob, patch["columns"], "<u4").max()) + 1000 <= len(blob)
    assert (view(blob, head["sprite_frames"], layout.SPRITE_FRAME)["patch"] < n_patches).all()
    assert (view(blob, head["graphics"], "<i4") < n_patches).all()
    for level in view(blob, head["levels"], layout.LEVEL):
        spans = [field for field in layout.LEVEL.names or () if level[field].dtype == layout.SPAN]
        counts = {field: int(level[field]["count"]) for field in spans}

        def inside(values: np.ndarray, count: int, least: int = 0) -> None:
            assert least <= int(values.min(initial=least)) and int(values.max(initial=least)) < max(count, least + 1)

        sectors = view(blob, level["sectors"], layout.MAP_SECTOR)
        sides = view(blob, level["sides"], layout.MAP_SIDE)
        lines = view(blob, level["lines"], layout.MAP_LINE)
        segs = view(blob, level["segs"], layout.MAP_SEG)
        edges = view(blob, level["nav_edges"], layout.NAV_EDGE)
        inside(sectors["floor_flat"], n_flats)
        inside(sectors["ceiling_flat"], n_flats)
        for field in ("top", "bottom", "middle"):
            inside(sides[field], n_textures)
        inside(lines["side"], counts["sides"], -1)
        inside(lines["v2"], counts["vertices"])
        inside(segs["side"], counts["sides"])
        inside(segs["back"], counts["sectors"], -1)
        inside(view(blob, level["block_lines"], "<i4"), counts["lines"])
        assert view(blob, level["block_first"], "<u4")[-1] == counts["block_lines"]
        assert counts["block_first"] == level["block_columns"] * level["block_rows"] + 1
        inside(edges["to"], counts["subsectors"])
        inside(edges["line"], counts["lines"], -1)
        inside(view(blob, level["nav_triggers"], layout.NAV_TRIGGER)["node"], counts["subsectors"], -1)
