// Moving one floor or ceiling by one tic, and what stands between.
#pragma once

#include "damage.h"

namespace doom {

enum PlaneResult { PLANE_MOVED, PLANE_BLOCKED, PLANE_ARRIVED };

// What a moved floor or ceiling does to an object of its sector: carry, squash the dead, or hurt.
template <class W>
OFA_FUNCTION void squeeze_thing(W& w, int index, int crush) {
    Game& g = w.g;
    if (clip_height(w, index)) return;
    Mobj& m = g.mobjs[index];
    if (m.health <= 0) {
        set_state(w, index, STATE_GIBS);
        m.flags &= ~uint32_t(MF_SOLID);
        m.height = 0;
        m.radius = 0;
        return;
    }
    if (m.flags & MF_DROPPED) {
        remove_mobj(w, index);
        return;
    }
    if (!(m.flags & MF_SHOOTABLE)) return;
    g.clip.no_fit = 1;
    if (!crush || (g.level_tics & 3)) return;
    damage_mobj(w, index, NONE, NONE, 10);
    const int blood = spawn_mobj(w, m.x, m.y, wrap_add(m.z, m.height / 2), THING_BLOOD);
    g.mobjs[blood].momx = random_difference(w) * 4096;
    g.mobjs[blood].momy = random_difference(w) * 4096;
}

// Fits everything near the sector after its height changed; true when something does not fit.
template <class W>
OFA_FUNCTION bool settle_sector(W& w, int sector, int crush) {
    const int32_t* box = w.sectors[sector].block_box;
    w.g.clip.no_fit = 0;
    for (int bx = box[BOX_LEFT]; bx <= box[BOX_RIGHT]; ++bx)
        for (int by = box[BOX_BOTTOM]; by <= box[BOX_TOP]; ++by)
            for_things_in_block(w, bx, by, [&](int thing) { return squeeze_thing(w, thing, crush), true; });
    return w.g.clip.no_fit;
}

template <class W>
OFA_FUNCTION bool try_height(W& w, int sector, Fixed& height, Fixed value, int crush) {
    const Fixed before = height;
    height = value;
    if (!settle_sector(w, sector, crush)) return false;
    height = before;
    settle_sector(w, sector, crush);
    return true;
}

// `crush`: 0 no, 1 crushes on, other values hurt but do not press on (stairs).
template <class W>
OFA_NOINLINE PlaneResult move_floor(W& w, int sector, Fixed speed, Fixed target, int crush, int direction) {
    Fixed& height = w.g.sectors[sector].floor_height;
    if (direction < 0) {
        if (wrap_sub(height, speed) < target) {
            try_height(w, sector, height, target, crush);
            return PLANE_ARRIVED;
        }
        return try_height(w, sector, height, wrap_sub(height, speed), crush) ? PLANE_BLOCKED : PLANE_MOVED;
    }
    if (wrap_add(height, speed) > target) {
        try_height(w, sector, height, target, crush);
        return PLANE_ARRIVED;
    }
    if (crush != 1) return try_height(w, sector, height, wrap_add(height, speed), crush) ? PLANE_BLOCKED : PLANE_MOVED;
    height = wrap_add(height, speed);
    return settle_sector(w, sector, crush) ? PLANE_BLOCKED : PLANE_MOVED;
}

template <class W>
OFA_NOINLINE PlaneResult move_ceiling(W& w, int sector, Fixed speed, Fixed target, int crush, int direction) {
    Fixed& height = w.g.sectors[sector].ceiling_height;
    if (direction < 0) {
        if (wrap_sub(height, speed) < target) {
            try_height(w, sector, height, target, crush);
            return PLANE_ARRIVED;
        }
        if (crush != 1) return try_height(w, sector, height, wrap_sub(height, speed), crush) ? PLANE_BLOCKED : PLANE_MOVED;
        height = wrap_sub(height, speed);
        return settle_sector(w, sector, crush) ? PLANE_BLOCKED : PLANE_MOVED;
    }
    if (wrap_add(height, speed) > target) {
        try_height(w, sector, height, target, crush);
        return PLANE_ARRIVED;
    }
    height = wrap_add(height, speed);
    settle_sector(w, sector, crush);
    return PLANE_MOVED;
}

}  // namespace doom
