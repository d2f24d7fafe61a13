// Launching missiles.
#pragma once

#include "shoot.h"

namespace doom {

// Moves a new missile half a step out of its owner; it may hit something there already.
template <class W>
OFA_FUNCTION void launch(W& w, int index) {
    Mobj& m = w.g.mobjs[index];
    shorten_tics(w, m);
    m.x = wrap_add(m.x, m.momx >> 1);
    m.y = wrap_add(m.y, m.momy >> 1);
    m.z = wrap_add(m.z, m.momz >> 1);
    if (!try_move(w, index, m.x, m.y)) explode_missile(w, index);
}

// Climb per tic to get from a to b at a speed.
OFA_FUNCTION Fixed climb(const Mobj& from, const Mobj& to, Fixed height, int speed) {
    int tics = approximate_distance(wrap_sub(to.x, from.x), wrap_sub(to.y, from.y)) / speed;
    if (tics < 1) tics = 1;
    return height / tics;
}

template <class W>
OFA_FUNCTION int spawn_missile(W& w, int source, int target, int type) {
    Game& g = w.g;
    const Mobj &from = g.mobjs[source], &to = g.mobjs[target];
    const int index = spawn_mobj(w, from.x, from.y, wrap_add(from.z, 32 * UNIT), type);
    start_sound(w, index, w.types[type].see_sound);
    Mobj& m = g.mobjs[index];
    const int speed = type_speed(w, type);
    m.target = source;
    Angle angle = angle_to(w, from.x, from.y, to.x, to.y);
    if (to.flags & MF_SHADOW) angle += Angle(random_difference(w)) << 20;
    m.angle = angle;
    m.momx = fixed_mul(speed, cosine_of(w, angle));
    m.momy = fixed_mul(speed, sine_of(w, angle));
    m.momz = climb(from, to, wrap_sub(to.z, from.z), speed);
    launch(w, index);
    return index;
}

template <class W>
OFA_FUNCTION void spawn_player_missile(W& w, int source, int type) {
    Game& g = w.g;
    const Mobj& from = g.mobjs[source];
    Angle angle = from.angle;
    Fixed slope = aim(w, source, angle, 16 * 64 * UNIT);
    if (g.clip.line_target == NONE) slope = aim(w, source, angle = from.angle + (1 << 26), 16 * 64 * UNIT);
    if (g.clip.line_target == NONE) slope = aim(w, source, angle = from.angle - (1 << 26), 16 * 64 * UNIT);
    if (g.clip.line_target == NONE) {
        angle = from.angle;
        slope = 0;
    }
    const int index = spawn_mobj(w, from.x, from.y, wrap_add(from.z, 32 * UNIT), type);
    start_sound(w, index, w.types[type].see_sound);
    Mobj& m = g.mobjs[index];
    const int speed = type_speed(w, type);
    m.target = source;
    m.angle = angle;
    m.momx = fixed_mul(speed, cosine_of(w, angle));
    m.momy = fixed_mul(speed, sine_of(w, angle));
    m.momz = fixed_mul(speed, slope);
    launch(w, index);
}

}  // namespace doom
