// A player who runs into a wall slides along it.
#pragma once

#include "move.h"

namespace doom {

// Notes the nearest line that blocks the way from one corner of the object's box; false when it is found.
OFA_FUNCTION bool note_slide_line(WorldBase& w, int index, const Intercept& in) {
    Game& g = w.g;
    Clip& c = g.clip;
    const Mobj& m = g.mobjs[index];
    if (g.lines[in.line].flags & LINE_TWO_SIDED) {
        find_opening(w, in.line);
        if (c.open_range >= m.height && wrap_sub(c.open_top, m.z) >= m.height &&
            wrap_sub(c.open_bottom, m.z) <= STEP_HEIGHT)
            return true;
    } else if (side_of_line(w, m.x, m.y, w.lines[in.line])) {
        return true;
    }
    if (in.fraction < c.best_slide) {
        c.second_slide = c.best_slide;
        c.second_slide_line = c.best_slide_line;
        c.best_slide = in.fraction;
        c.best_slide_line = in.line;
    }
    return false;
}

// Turns the rest of the move (slide_momx, slide_momy) along the line that stopped it.
OFA_FUNCTION void bend_along_line(WorldBase& w, int index, int line) {
    Clip& c = w.g.clip;
    const MapLine& l = w.lines[line];
    if (l.slope == SLOPE_HORIZONTAL) {
        c.slide_momy = 0;
        return;
    }
    if (l.slope == SLOPE_VERTICAL) {
        c.slide_momx = 0;
        return;
    }
    const Mobj& m = w.g.mobjs[index];
    Angle along = angle_to(w, 0, 0, l.dx, l.dy);
    if (side_of_line(w, m.x, m.y, l) == 1) along += ANGLE_180;
    Angle turn = angle_to(w, 0, 0, c.slide_momx, c.slide_momy) - along;
    if (turn > ANGLE_180) turn += ANGLE_180;
    const Fixed length = fixed_mul(approximate_distance(c.slide_momx, c.slide_momy), cosine_of(w, turn));
    c.slide_momx = fixed_mul(length, cosine_of(w, along));
    c.slide_momy = fixed_mul(length, sine_of(w, along));
}

template <class W>
OFA_FUNCTION void slide_move(W& w, int index) {
    Clip& c = w.g.clip;
    Mobj& m = w.g.mobjs[index];
    for (int hits = 1; hits < 3; ++hits) {
        const Fixed lead_x = m.momx > 0 ? wrap_add(m.x, m.radius) : wrap_sub(m.x, m.radius);
        const Fixed trail_x = m.momx > 0 ? wrap_sub(m.x, m.radius) : wrap_add(m.x, m.radius);
        const Fixed lead_y = m.momy > 0 ? wrap_add(m.y, m.radius) : wrap_sub(m.y, m.radius);
        const Fixed trail_y = m.momy > 0 ? wrap_sub(m.y, m.radius) : wrap_add(m.y, m.radius);
        c.best_slide = UNIT + 1;
        auto note = [&](const Intercept& in) { return note_slide_line(w, index, in); };
        auto look_from = [&](Fixed x, Fixed y) {
            walk_path(w, x, y, wrap_add(x, m.momx), wrap_add(y, m.momy), PATH_LINES, note);
        };
        look_from(lead_x, lead_y);
        look_from(trail_x, lead_y);
        look_from(lead_x, trail_y);
        if (c.best_slide == UNIT + 1) break;

        c.best_slide -= 0x800;
        if (c.best_slide > 0) {
            const Fixed dx = fixed_mul(m.momx, c.best_slide), dy = fixed_mul(m.momy, c.best_slide);
            if (!try_move(w, index, wrap_add(m.x, dx), wrap_add(m.y, dy))) break;
        }
        c.best_slide = UNIT - (c.best_slide + 0x800);
        if (c.best_slide > UNIT) c.best_slide = UNIT;
        if (c.best_slide <= 0) return;
        c.slide_momx = fixed_mul(m.momx, c.best_slide);
        c.slide_momy = fixed_mul(m.momy, c.best_slide);
        bend_along_line(w, index, c.best_slide_line);
        m.momx = c.slide_momx;
        m.momy = c.slide_momy;
        if (try_move(w, index, wrap_add(m.x, m.momx), wrap_add(m.y, m.momy))) return;
    }
    if (!try_move(w, index, m.x, wrap_add(m.y, m.momy))) try_move(w, index, wrap_add(m.x, m.momx), m.y);
}

}  // namespace doom
