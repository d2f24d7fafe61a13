// Aiming and shooting along a line: bullets, punches, puffs and blood.
#pragma once

#include "mobj.h"
#include "sight.h"

namespace doom {

constexpr Fixed MELEE_RANGE = 64 * UNIT, MISSILE_RANGE = 32 * 64 * UNIT;

OFA_FUNCTION void begin_shot(WorldBase& w, int shooter, Angle angle, Fixed range, Fixed& x2, Fixed& y2) {
    Clip& c = w.g.clip;
    const Mobj& m = w.g.mobjs[shooter];
    c.shooter = shooter;
    c.range = range;
    c.shoot_z = wrap_add(wrap_add(m.z, m.height >> 1), 8 * UNIT);
    x2 = wrap_add(m.x, wrap_mul(range >> 16, cosine_of(w, angle)));
    y2 = wrap_add(m.y, wrap_mul(range >> 16, sine_of(w, angle)));
}

OFA_FUNCTION bool floors_differ(const WorldBase& w, const MapLine& l) {
    return w.g.sectors[l.sector[0]].floor_height != w.g.sectors[l.sector[1]].floor_height;
}

OFA_FUNCTION bool ceilings_differ(const WorldBase& w, const MapLine& l) {
    return w.g.sectors[l.sector[0]].ceiling_height != w.g.sectors[l.sector[1]].ceiling_height;
}

OFA_FUNCTION bool aim_at(WorldBase& w, const Intercept& in) {
    Clip& c = w.g.clip;
    const Fixed distance = fixed_mul(c.range, in.fraction);
    if (in.line != NONE) {
        if (!(w.g.lines[in.line].flags & LINE_TWO_SIDED)) return false;
        find_opening(w, in.line);
        const MapLine& l = w.lines[in.line];
        if (l.sector[1] < 0 || c.open_bottom >= c.open_top) return false;
        if (floors_differ(w, l)) {
            const Fixed slope = fixed_div(wrap_sub(c.open_bottom, c.shoot_z), distance);
            if (slope > c.bottom_slope) c.bottom_slope = slope;
        }
        if (ceilings_differ(w, l)) {
            const Fixed slope = fixed_div(wrap_sub(c.open_top, c.shoot_z), distance);
            if (slope < c.top_slope) c.top_slope = slope;
        }
        return c.top_slope > c.bottom_slope;
    }
    const Mobj& thing = w.g.mobjs[in.thing];
    if (in.thing == c.shooter || !(thing.flags & MF_SHOOTABLE)) return true;
    Fixed top = fixed_div(wrap_sub(wrap_add(thing.z, thing.height), c.shoot_z), distance);
    if (top < c.bottom_slope) return true;
    Fixed bottom = fixed_div(wrap_sub(thing.z, c.shoot_z), distance);
    if (bottom > c.top_slope) return true;
    if (top > c.top_slope) top = c.top_slope;
    if (bottom < c.bottom_slope) bottom = c.bottom_slope;
    c.slope = wrap_add(top, bottom) / 2;
    c.line_target = in.thing;
    return false;
}

// Slope at which a shot hits the first target within range; Clip::line_target is -1 (and the slope 0) without one.
OFA_NOINLINE Fixed aim(WorldBase& w, int shooter, Angle angle, Fixed range) {
    Clip& c = w.g.clip;
    const Mobj& m = w.g.mobjs[shooter];
    Fixed x2, y2;
    begin_shot(w, shooter, angle, range, x2, y2);
    c.top_slope = 100 * UNIT / 160;
    c.bottom_slope = -100 * UNIT / 160;
    c.line_target = NONE;
    walk_path(w, m.x, m.y, x2, y2, PATH_LINES | PATH_THINGS, [&](const Intercept& in) { return aim_at(w, in); });
    return c.line_target == NONE ? 0 : c.slope;
}

template <class W>
OFA_FUNCTION void spawn_puff(W& w, Fixed x, Fixed y, Fixed z) {
    z = wrap_add(z, random_difference(w) * 1024);
    const int index = spawn_mobj(w, x, y, z, THING_PUFF);
    Mobj& m = w.g.mobjs[index];
    m.momz = UNIT;
    shorten_tics(w, m);
    if (w.g.clip.range == MELEE_RANGE) set_state(w, index, STATE_PUFF3);  // punches make no spark
}

template <class W>
OFA_FUNCTION void spawn_blood(W& w, Fixed x, Fixed y, Fixed z, int damage) {
    z = wrap_add(z, random_difference(w) * 1024);
    const int index = spawn_mobj(w, x, y, z, THING_BLOOD);
    Mobj& m = w.g.mobjs[index];
    m.momz = 2 * UNIT;
    shorten_tics(w, m);
    if (damage <= 12 && damage >= 9) set_state(w, index, STATE_BLOOD2);
    else if (damage < 9) set_state(w, index, STATE_BLOOD3);
}

template <class W>
OFA_FUNCTION bool shoot_line(W& w, const Intercept& in) {
    Game& g = w.g;
    Clip& c = g.clip;
    const MapLine& l = w.lines[in.line];
    if (g.lines[in.line].special) shoot_special_line(w, in.line, c.shooter);
    if ((g.lines[in.line].flags & LINE_TWO_SIDED) && l.sector[1] >= 0) {
        find_opening(w, in.line);
        const Fixed distance = fixed_mul(c.range, in.fraction);
        const bool low = floors_differ(w, l) && fixed_div(wrap_sub(c.open_bottom, c.shoot_z), distance) > c.slope;
        if (!low) {
            if (!ceilings_differ(w, l) || fixed_div(wrap_sub(c.open_top, c.shoot_z), distance) >= c.slope) return true;
        }
    }
    const Fixed fraction = wrap_sub(in.fraction, fixed_div(4 * UNIT, c.range));
    const Fixed x = wrap_add(c.trace_x, fixed_mul(c.trace_dx, fraction));
    const Fixed y = wrap_add(c.trace_y, fixed_mul(c.trace_dy, fraction));
    const Fixed z = wrap_add(c.shoot_z, fixed_mul(c.slope, fixed_mul(fraction, c.range)));
    const Sector& front = g.sectors[l.sector[0]];
    if (front.ceiling_flat == w.wad.sky_flat) {
        if (z > front.ceiling_height) return false;
        if (l.sector[1] >= 0 && g.sectors[l.sector[1]].ceiling_flat == w.wad.sky_flat) return false;
    }
    spawn_puff(w, x, y, z);
    return false;
}

template <class W>
OFA_FUNCTION bool shoot_thing(W& w, const Intercept& in) {
    Game& g = w.g;
    Clip& c = g.clip;
    const Mobj& thing = g.mobjs[in.thing];
    if (in.thing == c.shooter || !(thing.flags & MF_SHOOTABLE)) return true;
    const Fixed distance = fixed_mul(c.range, in.fraction);
    if (fixed_div(wrap_sub(wrap_add(thing.z, thing.height), c.shoot_z), distance) < c.slope) return true;
    if (fixed_div(wrap_sub(thing.z, c.shoot_z), distance) > c.slope) return true;
    const Fixed fraction = wrap_sub(in.fraction, fixed_div(10 * UNIT, c.range));
    const Fixed x = wrap_add(c.trace_x, fixed_mul(c.trace_dx, fraction));
    const Fixed y = wrap_add(c.trace_y, fixed_mul(c.trace_dy, fraction));
    const Fixed z = wrap_add(c.shoot_z, fixed_mul(c.slope, fixed_mul(fraction, c.range)));
    if (thing.flags & MF_NOBLOOD) spawn_puff(w, x, y, z);
    else spawn_blood(w, x, y, z, c.damage);
    if (c.damage) damage_mobj(w, in.thing, c.shooter, c.shooter, c.damage);
    return false;
}

template <class W>
OFA_NOINLINE void shoot(W& w, int shooter, Angle angle, Fixed range, Fixed slope, int damage) {
    Clip& c = w.g.clip;
    const Mobj& m = w.g.mobjs[shooter];
    Fixed x2, y2;
    begin_shot(w, shooter, angle, range, x2, y2);
    c.damage = damage;
    c.slope = slope;
    walk_path(w, m.x, m.y, x2, y2, PATH_LINES | PATH_THINGS,
              [&](const Intercept& in) { return in.line != NONE ? shoot_line(w, in) : shoot_thing(w, in); });
}

}  // namespace doom
