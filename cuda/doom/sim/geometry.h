// Which side of a line a point or a box is on, and where lines cross.
#pragma once

#include "fixed.h"

namespace doom {

enum Box { BOX_TOP, BOX_BOTTOM, BOX_LEFT, BOX_RIGHT };

struct DivLine {
    Fixed x, y, dx, dy;
};

OFA_FUNCTION DivLine div_line(const WorldBase& w, const MapLine& l) {
    return {w.vertices[l.v1].x, w.vertices[l.v1].y, l.dx, l.dy};
}

// 0 front (right of the line's direction), 1 back.
OFA_FUNCTION int side_of_line(const WorldBase& w, Fixed x, Fixed y, const MapLine& l) {
    const MapVertex& v = w.vertices[l.v1];
    if (l.dx == 0) return x <= v.x ? l.dy > 0 : l.dy < 0;
    if (l.dy == 0) return y <= v.y ? l.dx < 0 : l.dx > 0;
    const Fixed left = fixed_mul(l.dy >> 16, wrap_sub(x, v.x));
    const Fixed right = fixed_mul(wrap_sub(y, v.y), l.dx >> 16);
    return right < left ? 0 : 1;
}

// Side the whole box is on, or -1 when the (endless) line cuts it.
OFA_FUNCTION int side_of_box(const WorldBase& w, const Fixed* box, const MapLine& l) {
    const MapVertex& v = w.vertices[l.v1];
    int a = 0, b = 0;
    switch (l.slope) {
        case SLOPE_HORIZONTAL:
            a = box[BOX_TOP] > v.y;
            b = box[BOX_BOTTOM] > v.y;
            if (l.dx < 0) a ^= 1, b ^= 1;
            break;
        case SLOPE_VERTICAL:
            a = box[BOX_RIGHT] < v.x;
            b = box[BOX_LEFT] < v.x;
            if (l.dy < 0) a ^= 1, b ^= 1;
            break;
        case SLOPE_POSITIVE:
            a = side_of_line(w, box[BOX_LEFT], box[BOX_TOP], l);
            b = side_of_line(w, box[BOX_RIGHT], box[BOX_BOTTOM], l);
            break;
        default:
            a = side_of_line(w, box[BOX_RIGHT], box[BOX_TOP], l);
            b = side_of_line(w, box[BOX_LEFT], box[BOX_BOTTOM], l);
    }
    return a == b ? a : -1;
}

OFA_FUNCTION int side_of_div_line(Fixed x, Fixed y, const DivLine& l) {
    if (l.dx == 0) return x <= l.x ? l.dy > 0 : l.dy < 0;
    if (l.dy == 0) return y <= l.y ? l.dx < 0 : l.dx > 0;
    const Fixed dx = wrap_sub(x, l.x), dy = wrap_sub(y, l.y);
    if ((l.dy ^ l.dx ^ dx ^ dy) < 0) return (l.dy ^ dx) < 0 ? 1 : 0;
    const Fixed left = fixed_mul(l.dy >> 8, dx >> 8);
    const Fixed right = fixed_mul(dy >> 8, l.dx >> 8);
    return right < left ? 0 : 1;
}

// How far along `path` (0 to 1 in fixed point) it meets `other`; 0 for parallels.
OFA_FUNCTION Fixed intercept_fraction(const DivLine& path, const DivLine& other) {
    const Fixed denominator =
            wrap_sub(fixed_mul(other.dy >> 8, path.dx), fixed_mul(other.dx >> 8, path.dy));
    if (denominator == 0) return 0;
    const Fixed numerator = wrap_add(fixed_mul(wrap_sub(other.x, path.x) >> 8, other.dy),
                                     fixed_mul(wrap_sub(path.y, other.y) >> 8, other.dx));
    return fixed_div(numerator, denominator);
}

// Subsector the point is in.
OFA_FUNCTION int subsector_at(const WorldBase& w, Fixed x, Fixed y) {
    if (w.level->nodes.count == 0) return 0;
    uint32_t node = w.level->nodes.count - 1;
    while (!(node & NODE_SUBSECTOR)) {
        const MapNode& n = w.nodes[node];
        int side;
        if (n.dx == 0) {
            side = x <= n.x ? n.dy > 0 : n.dy < 0;
        } else if (n.dy == 0) {
            side = y <= n.y ? n.dx < 0 : n.dx > 0;
        } else {
            const Fixed dx = wrap_sub(x, n.x), dy = wrap_sub(y, n.y);
            if ((n.dy ^ n.dx ^ dx ^ dy) < 0) {
                side = (n.dy ^ dx) < 0;
            } else {
                side = fixed_mul(dy, n.dx >> 16) >= fixed_mul(n.dy >> 16, dx);
            }
        }
        node = n.child[side];
    }
    return int(node & ~uint32_t(NODE_SUBSECTOR));
}

// Opening between the two sectors of a line, into Clip's open_*. A one-sided line only sets open_range to 0.
OFA_FUNCTION void find_opening(WorldBase& w, int line) {
    Clip& c = w.g.clip;
    const MapLine& l = w.lines[line];
    if (l.sector[1] < 0) {
        c.open_range = 0;
        return;
    }
    const Sector& front = w.g.sectors[l.sector[0]];
    const Sector& back = w.g.sectors[l.sector[1]];
    c.open_top = front.ceiling_height < back.ceiling_height ? front.ceiling_height : back.ceiling_height;
    const bool front_higher = front.floor_height > back.floor_height;
    c.open_bottom = front_higher ? front.floor_height : back.floor_height;
    c.low_floor = front_higher ? back.floor_height : front.floor_height;
    c.open_range = wrap_sub(c.open_top, c.open_bottom);
}

}  // namespace doom
