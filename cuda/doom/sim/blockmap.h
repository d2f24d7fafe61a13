// Where objects are: lists per sector and per blockmap cell, searches over cells, and walks along a line.
//
// Objects are linked at the head of their lists; a box search takes columns first. Both orders decide which of several
// things is met first.
#pragma once

#include "geometry.h"
#include "thinkers.h"

namespace doom {

constexpr int BLOCK_SHIFT = 23;           // a cell is 128 units
constexpr Fixed LARGEST_RADIUS = 32 * UNIT;

OFA_FUNCTION int block_x(const WorldBase& w, Fixed x) { return wrap_sub(x, w.level->block_x) >> BLOCK_SHIFT; }
OFA_FUNCTION int block_y(const WorldBase& w, Fixed y) { return wrap_sub(y, w.level->block_y) >> BLOCK_SHIFT; }

// Number of the cell in column bx and row by; -1 outside of the map.
OFA_FUNCTION int block_cell(const WorldBase& w, int bx, int by) {
    if (bx < 0 || by < 0 || bx >= w.level->block_columns || by >= w.level->block_rows) return NONE;
    return by * w.level->block_columns + bx;
}

OFA_FUNCTION void unlink_position(WorldBase& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (!(m.flags & MF_NOSECTOR)) {
        if (m.sector_next != NONE) g.mobjs[m.sector_next].sector_prev = m.sector_prev;
        if (m.sector_prev != NONE) g.mobjs[m.sector_prev].sector_next = m.sector_next;
        else g.sectors[m.sector].objects = m.sector_next;
    }
    if (!(m.flags & MF_NOBLOCKMAP)) {
        if (m.block_next != NONE) g.mobjs[m.block_next].block_prev = m.block_prev;
        if (m.block_prev != NONE) {
            g.mobjs[m.block_prev].block_next = m.block_next;
        } else {
            const int cell = block_cell(w, block_x(w, m.x), block_y(w, m.y));
            if (cell != NONE) g.block_objects[cell] = m.block_next;
        }
    }
}

OFA_FUNCTION void link_position(WorldBase& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    m.subsector = subsector_at(w, m.x, m.y);
    m.sector = w.subsectors[m.subsector].sector;
    if (!(m.flags & MF_NOSECTOR)) {
        Sector& s = g.sectors[m.sector];
        m.sector_prev = NONE;
        m.sector_next = s.objects;
        if (s.objects != NONE) g.mobjs[s.objects].sector_prev = index;
        s.objects = index;
    }
    if (!(m.flags & MF_NOBLOCKMAP)) {
        const int cell = block_cell(w, block_x(w, m.x), block_y(w, m.y));
        m.block_prev = m.block_next = NONE;
        if (cell != NONE) {
            m.block_next = g.block_objects[cell];
            if (m.block_next != NONE) g.mobjs[m.block_next].block_prev = index;
            g.block_objects[cell] = index;
        }
    }
}

// visit(line) for every line of a cell not yet visited in this search; false as soon as a visit says false.
template <class F>
OFA_FUNCTION bool for_lines_in_block(WorldBase& w, int bx, int by, F visit) {
    const int cell = block_cell(w, bx, by);
    if (cell == NONE) return true;
    for (uint32_t i = w.block_first[cell]; i < w.block_first[cell + 1]; ++i) {
        const int line = w.block_lines[i];
        if (w.g.lines[line].valid == w.g.valid_count) continue;
        w.g.lines[line].valid = w.g.valid_count;
        if (!visit(line)) return false;
    }
    return true;
}

template <class F>
OFA_FUNCTION bool for_things_in_block(WorldBase& w, int bx, int by, F visit) {
    const int cell = block_cell(w, bx, by);
    if (cell == NONE) return true;
    for (int m = w.g.block_objects[cell]; m != NONE; m = w.g.mobjs[m].block_next)
        if (!visit(m)) return false;
    return true;
}

OFA_FUNCTION void add_intercept(Game& g, Fixed fraction, int line, int thing) {
    if (g.n_intercepts == MAX_INTERCEPTS) return;
    g.intercepts[g.n_intercepts++] = {fraction, line, thing};
}

OFA_FUNCTION void intercept_line(WorldBase& w, const DivLine& path, int line) {
    const MapLine& l = w.lines[line];
    const MapVertex &a = w.vertices[l.v1], &b = w.vertices[l.v2];
    int side_a, side_b;
    const bool is_long = path.dx > 16 * UNIT || path.dy > 16 * UNIT || path.dx < -16 * UNIT || path.dy < -16 * UNIT;
    if (is_long) {
        side_a = side_of_div_line(a.x, a.y, path);
        side_b = side_of_div_line(b.x, b.y, path);
    } else {
        side_a = side_of_line(w, path.x, path.y, l);
        side_b = side_of_line(w, wrap_add(path.x, path.dx), wrap_add(path.y, path.dy), l);
    }
    if (side_a == side_b) return;
    const Fixed fraction = intercept_fraction(path, div_line(w, l));
    if (fraction >= 0) add_intercept(w.g, fraction, line, NONE);
}

// An object is met where the path crosses the diagonal of its box that lies across the path.
OFA_FUNCTION void intercept_thing(WorldBase& w, const DivLine& path, int thing) {
    const Mobj& m = w.g.mobjs[thing];
    const bool rising = (path.dx ^ path.dy) > 0;
    const Fixed left = wrap_sub(m.x, m.radius), right = wrap_add(m.x, m.radius);
    const Fixed low = wrap_sub(m.y, m.radius), high = wrap_add(m.y, m.radius);
    const Fixed y1 = rising ? high : low, y2 = rising ? low : high;
    if (side_of_div_line(left, y1, path) == side_of_div_line(right, y2, path)) return;
    const Fixed fraction = intercept_fraction(path, {left, y1, wrap_sub(right, left), wrap_sub(y2, y1)});
    if (fraction >= 0) add_intercept(w.g, fraction, NONE, thing);
}

enum PathWhat { PATH_LINES = 1, PATH_THINGS = 2 };

// Walks from (x1, y1) to (x2, y2) and calls visit(intercept) for what is met, nearest first, until a visit says false.
template <class F>
OFA_FUNCTION bool walk_path(WorldBase& w, Fixed x1, Fixed y1, Fixed x2, Fixed y2, int what, F visit) {
    Game& g = w.g;
    const Fixed origin_x = w.level->block_x, origin_y = w.level->block_y;
    const Fixed cell_mask = (1 << BLOCK_SHIFT) - 1;
    ++g.valid_count;
    g.n_intercepts = 0;
    if ((wrap_sub(x1, origin_x) & cell_mask) == 0) x1 = wrap_add(x1, UNIT);
    if ((wrap_sub(y1, origin_y) & cell_mask) == 0) y1 = wrap_add(y1, UNIT);
    const DivLine path = {x1, y1, wrap_sub(x2, x1), wrap_sub(y2, y1)};
    g.clip.trace_x = path.x;
    g.clip.trace_y = path.y;
    g.clip.trace_dx = path.dx;
    g.clip.trace_dy = path.dy;

    x1 = wrap_sub(x1, origin_x);
    y1 = wrap_sub(y1, origin_y);
    x2 = wrap_sub(x2, origin_x);
    y2 = wrap_sub(y2, origin_y);
    const int first_x = x1 >> BLOCK_SHIFT, first_y = y1 >> BLOCK_SHIFT;
    const int last_x = x2 >> BLOCK_SHIFT, last_y = y2 >> BLOCK_SHIFT;
    constexpr int TO_CELLS = BLOCK_SHIFT - 16;
    const Fixed from_left = (x1 >> TO_CELLS) & (UNIT - 1), from_bottom = (y1 >> TO_CELLS) & (UNIT - 1);
    int step_x = 0, step_y = 0;
    Fixed partial = UNIT, y_per_column = 256 * UNIT, x_per_row = 256 * UNIT;
    if (last_x != first_x) {
        step_x = last_x > first_x ? 1 : -1;
        partial = last_x > first_x ? UNIT - from_left : from_left;
        y_per_column = fixed_div(wrap_sub(y2, y1), magnitude(wrap_sub(x2, x1)));
    }
    Fixed y_at = wrap_add(y1 >> TO_CELLS, fixed_mul(partial, y_per_column));
    partial = UNIT;
    if (last_y != first_y) {
        step_y = last_y > first_y ? 1 : -1;
        partial = last_y > first_y ? UNIT - from_bottom : from_bottom;
        x_per_row = fixed_div(wrap_sub(x2, x1), magnitude(wrap_sub(y2, y1)));
    }
    Fixed x_at = wrap_add(x1 >> TO_CELLS, fixed_mul(partial, x_per_row));

    int bx = first_x, by = first_y;
    for (int count = 0; count < 64; ++count) {
        if (what & PATH_LINES)
            for_lines_in_block(w, bx, by, [&](int line) { return intercept_line(w, path, line), true; });
        if (what & PATH_THINGS)
            for_things_in_block(w, bx, by, [&](int thing) { return intercept_thing(w, path, thing), true; });
        if (bx == last_x && by == last_y) break;
        if ((y_at >> 16) == by) {
            y_at = wrap_add(y_at, y_per_column);
            bx += step_x;
        } else if ((x_at >> 16) == bx) {
            x_at = wrap_add(x_at, x_per_row);
            by += step_y;
        }
    }

    for (int left = g.n_intercepts; left > 0; --left) {
        Fixed nearest = FIXED_MAX;
        int best = NONE;
        for (int i = 0; i < g.n_intercepts; ++i) {
            if (g.intercepts[i].fraction < nearest) {
                nearest = g.intercepts[i].fraction;
                best = i;
            }
        }
        if (best == NONE || nearest > UNIT) return true;
        const Intercept in = g.intercepts[best];
        if (!visit(in)) return false;
        g.intercepts[best].fraction = FIXED_MAX;
    }
    return true;
}

}  // namespace doom
