// Can one object see another: along the BSP, through the openings of the lines between.
#pragma once

#include "geometry.h"

namespace doom {

constexpr int MAX_NODE_DEPTH = 256;

// 0 front, 1 back, 2 on the line. (For a line along x the original compares x with y; so do we.)
OFA_FUNCTION int sight_side(Fixed x, Fixed y, const DivLine& l) {
    if (l.dx == 0) return x == l.x ? 2 : x <= l.x ? l.dy > 0 : l.dy < 0;
    if (l.dy == 0) return x == l.y ? 2 : y <= l.y ? l.dx < 0 : l.dx > 0;
    const Fixed dx = wrap_sub(x, l.x), dy = wrap_sub(y, l.y);
    const Fixed left = wrap_mul(l.dy >> 16, dx >> 16);
    const Fixed right = wrap_mul(dy >> 16, l.dx >> 16);
    return right < left ? 0 : left == right ? 2 : 1;
}

struct Sight {
    DivLine ray;
    Fixed to_x, to_y;
    Fixed eye_z, top, bottom;             // slopes still open
};

OFA_FUNCTION bool see_through_subsector(WorldBase& w, Sight& s, int subsector) {
    const MapSubsector& sub = w.subsectors[subsector];
    for (uint32_t i = 0; i < sub.n_segs; ++i) {
        const MapSeg& seg = w.segs[sub.first_seg + i];
        Line& line = w.g.lines[seg.line];
        if (line.valid == w.g.valid_count) continue;
        line.valid = w.g.valid_count;
        const MapLine& l = w.lines[seg.line];
        const MapVertex &v1 = w.vertices[l.v1], &v2 = w.vertices[l.v2];
        if (sight_side(v1.x, v1.y, s.ray) == sight_side(v2.x, v2.y, s.ray)) continue;
        const DivLine wall = {v1.x, v1.y, wrap_sub(v2.x, v1.x), wrap_sub(v2.y, v1.y)};
        if (sight_side(s.ray.x, s.ray.y, wall) == sight_side(s.to_x, s.to_y, wall)) continue;
        if (l.sector[1] < 0 || !(line.flags & LINE_TWO_SIDED)) return false;
        if (seg.back < 0) return false;
        const Sector &front = w.g.sectors[seg.front], &back = w.g.sectors[seg.back];
        if (front.floor_height == back.floor_height && front.ceiling_height == back.ceiling_height) continue;
        const Fixed open_top = front.ceiling_height < back.ceiling_height ? front.ceiling_height : back.ceiling_height;
        const Fixed open_bottom = front.floor_height > back.floor_height ? front.floor_height : back.floor_height;
        if (open_bottom >= open_top) return false;
        const Fixed fraction = intercept_fraction(s.ray, wall);
        if (front.floor_height != back.floor_height) {
            const Fixed slope = fixed_div(wrap_sub(open_bottom, s.eye_z), fraction);
            if (slope > s.bottom) s.bottom = slope;
        }
        if (front.ceiling_height != back.ceiling_height) {
            const Fixed slope = fixed_div(wrap_sub(open_top, s.eye_z), fraction);
            if (slope < s.top) s.top = slope;
        }
        if (s.top <= s.bottom) return false;
    }
    return true;
}

OFA_NOINLINE bool can_see(WorldBase& w, int from, int to) {
    const Mobj &a = w.g.mobjs[from], &b = w.g.mobjs[to];
    const uint32_t bit = uint32_t(a.sector) * w.level->sectors.count + uint32_t(b.sector);
    if ((bit >> 3) < w.level->reject.count && (w.reject[bit >> 3] & (1 << (bit & 7)))) return false;
    ++w.g.valid_count;
    Sight s;
    s.eye_z = wrap_sub(wrap_add(a.z, a.height), a.height >> 2);
    s.top = wrap_sub(wrap_add(b.z, b.height), s.eye_z);
    s.bottom = wrap_sub(b.z, s.eye_z);
    s.ray = {a.x, a.y, wrap_sub(b.x, a.x), wrap_sub(b.y, a.y)};
    s.to_x = b.x;
    s.to_y = b.y;

    if (w.level->nodes.count == 0) return see_through_subsector(w, s, 0);
    uint16_t waiting[MAX_NODE_DEPTH];
    int n_waiting = 0;
    uint32_t node = w.level->nodes.count - 1;
    for (;;) {
        while (!(node & NODE_SUBSECTOR)) {
            const MapNode& n = w.nodes[node];
            const DivLine partition = {n.x, n.y, n.dx, n.dy};
            int side = sight_side(s.ray.x, s.ray.y, partition);
            if (side == 2) side = 0;
            if (side != sight_side(s.to_x, s.to_y, partition) && n_waiting < MAX_NODE_DEPTH)
                waiting[n_waiting++] = n.child[side ^ 1];
            node = n.child[side];
        }
        if (!see_through_subsector(w, s, int(node & ~uint32_t(NODE_SUBSECTOR)))) return false;
        if (n_waiting == 0) return true;
        node = waiting[--n_waiting];
    }
}

}  // namespace doom
