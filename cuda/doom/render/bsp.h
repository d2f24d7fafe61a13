// The walk through the BSP tree, nearest side first, and the ranges of columns that are closed already.
#pragma once

#include "sprites.h"
#include "walls.h"

namespace doom {
namespace render {

// What is left of a wall between two directions after clipping it to the field of view; columns first..last.
struct Columns {
    int first, last;
    bool visible;
};

// `left` and `right` are absolute directions. A wall seen from behind or outside the view is not visible.
OFA_INLINE Columns clip_to_view(const RenderScratch& s, Angle left, Angle right) {
    const Angle clip = s.tables.clip_angle;
    const Angle span = left - right;
    left -= s.view.angle;
    right -= s.view.angle;
    Angle beyond = left + clip;
    if (beyond > 2 * clip) {
        if (beyond - 2 * clip >= span) return {0, 0, false};
        left = clip;
    }
    beyond = clip - right;
    if (beyond > 2 * clip) {
        if (beyond - 2 * clip >= span) return {0, 0, false};
        right = 0u - clip;
    }
    const int first = s.tables.x_of_angle[(left + ANGLE_90) >> FINE_SHIFT];
    const int end = s.tables.x_of_angle[(right + ANGLE_90) >> FINE_SHIFT];
    return {first, end - 1, first != end};
}

// Draws the columns of first..last that are still open, without closing them.
template <class Draw>
OFA_INLINE void draw_open_columns(const RenderScratch& s, int first, int last, Draw draw) {
    int i = 0;
    while (s.solid[i].last < first - 1) ++i;
    if (first < s.solid[i].first) {
        if (last < s.solid[i].first - 1) {
            draw(first, last);
            return;
        }
        draw(first, s.solid[i].first - 1);
    }
    for (; last > s.solid[i].last; ++i) {
        if (last < s.solid[i + 1].first - 1) {
            draw(s.solid[i].last + 1, last);
            return;
        }
        draw(s.solid[i].last + 1, s.solid[i + 1].first - 1);
    }
}

// Adds first..last to the closed ranges, joining those it touches.
OFA_FUNCTION void close_columns(RenderScratch& s, int first, int last) {
    int i = 0;
    while (s.solid[i].last < first - 1) ++i;
    if (last < s.solid[i].first - 1) {
        for (int k = s.n_solid; k > i; --k) s.solid[k] = s.solid[k - 1];
        s.solid[i] = {first, last};
        ++s.n_solid;
        return;
    }
    s.solid[i].first = min(s.solid[i].first, first);
    int end = i;
    while (last > s.solid[end].last && last >= s.solid[end + 1].first - 1) ++end;
    s.solid[i].last = max(s.solid[end].last, last);
    for (int k = end + 1; k < s.n_solid; ++k) s.solid[k - end + i] = s.solid[k];
    s.n_solid -= end - i;
}

OFA_FUNCTION void draw_seg(RenderScratch& s, Game& game, const WadBlob& wad, uint8_t* frame, int32_t index) {
    const View& v = s.view;
    const MapSeg& seg = v.segs[index];
    const MapVertex& v1 = v.vertices[seg.v1];
    const MapVertex& v2 = v.vertices[seg.v2];
    const Angle left = direction(wad, wrap_sub(v1.x, v.x), wrap_sub(v1.y, v.y));
    const Angle right = direction(wad, wrap_sub(v2.x, v.x), wrap_sub(v2.y, v.y));
    if (left - right >= ANGLE_180) return;
    const Columns columns = clip_to_view(s, left, right);
    if (!columns.visible) return;

    bool solid = seg.back < 0;
    if (!solid) {
        const Sector& front = game.sectors[seg.front];
        const Sector& back = game.sectors[seg.back];
        solid = back.ceiling_height <= front.floor_height || back.floor_height >= front.ceiling_height;
        if (!solid && back.ceiling_height == front.ceiling_height && back.floor_height == front.floor_height &&
            back.ceiling_flat == front.ceiling_flat && back.floor_flat == front.floor_flat &&
            back.light == front.light && game.sides[seg.side].middle == 0)
            return;                         // a trigger line: nothing to see
    }
    draw_open_columns(s, columns.first, columns.last, [&](int first, int last) {
        draw_wall(s, game, wad, frame, index, left, first, last);
    });
    if (solid) close_columns(s, columns.first, columns.last);
}

OFA_FUNCTION void draw_subsector(RenderScratch& s, Game& game, const WadBlob& wad, uint8_t* frame, int32_t index) {
    const MapSubsector& subsector = s.view.subsectors[index];
    const Sector& sector = game.sectors[subsector.sector];
    s.floor_plane = s.ceiling_plane = NONE;
    if (sector.floor_height < s.view.z)
        s.floor_plane = find_plane(s, wad, sector.floor_height, sector.floor_flat, sector.light);
    if (sector.ceiling_height > s.view.z || sector.ceiling_flat == wad.sky_flat)
        s.ceiling_plane = find_plane(s, wad, sector.ceiling_height, sector.ceiling_flat, sector.light);
    add_sector_sprites(s, game, wad, subsector.sector);
    for (uint32_t i = 0; i < subsector.n_segs; ++i) draw_seg(s, game, wad, frame, int32_t(subsector.first_seg + i));
}

// Whether anything in a node's box (top, bottom, left, right) can still be seen.
OFA_FUNCTION bool box_is_visible(const RenderScratch& s, const WadBlob& wad, const int32_t* box) {
    const View& v = s.view;
    const bool west = v.x <= box[2], east = !west && v.x >= box[3];
    const bool north = v.y >= box[0], south = !north && v.y <= box[1];
    // corners of the box's outline seen from outside: left one and right one
    Fixed x1, y1, x2, y2;
    if (north) {
        x1 = box[3];
        y1 = box[0];
        x2 = box[2];
        y2 = box[0];
        if (west) y2 = box[1];
        if (east) y1 = box[1];
    } else if (south) {
        x1 = box[2];
        y1 = box[1];
        x2 = box[3];
        y2 = box[1];
        if (west) y1 = box[0];
        if (east) y2 = box[0];
    } else if (west) {
        x1 = x2 = box[2];
        y1 = box[0];
        y2 = box[1];
    } else if (east) {
        x1 = x2 = box[3];
        y1 = box[1];
        y2 = box[0];
    } else {
        return true;
    }
    const Angle left = direction(wad, wrap_sub(x1, v.x), wrap_sub(y1, v.y));
    const Angle right = direction(wad, wrap_sub(x2, v.x), wrap_sub(y2, v.y));
    if (left - right >= ANGLE_180) return true;
    const Columns columns = clip_to_view(s, left, right);
    if (!columns.visible) return false;
    int i = 0;
    while (s.solid[i].last < columns.last) ++i;
    return !(columns.first >= s.solid[i].first && columns.last <= s.solid[i].last);
}

OFA_FUNCTION void walk_bsp(RenderScratch& s, Game& game, const WadBlob& wad, uint8_t* frame) {
    const View& v = s.view;
    const uint32_t n_nodes = at(wad, wad.levels)[game.level].nodes.count;
    if (n_nodes == 0) {
        draw_subsector(s, game, wad, frame, 0);
        return;
    }
    // The stack holds far sides to come back to: node * 2 + side.
    int depth = 0;
    uint32_t child = n_nodes - 1;
    for (;;) {
        while (!(child & NODE_SUBSECTOR)) {
            const MapNode& node = v.nodes[child];
            const int side = is_right_of(v.x, v.y, node.x, node.y, node.dx, node.dy) ? 0 : 1;
            if (depth < MAX_NODE_DEPTH) s.node_stack[depth++] = int32_t(child * 2 + uint32_t(side ^ 1));
            child = node.child[side];
        }
        draw_subsector(s, game, wad, frame, int32_t(child & ~uint32_t(NODE_SUBSECTOR)));
        for (;;) {
            if (depth == 0) return;
            const uint32_t far_side = uint32_t(s.node_stack[--depth]);
            const MapNode& node = v.nodes[far_side >> 1];
            if (!box_is_visible(s, wad, node.box[far_side & 1])) continue;
            child = node.child[far_side & 1];
            break;
        }
    }
}

}  // namespace render
}  // namespace doom
