// Ceilings that move, and crushers.
#pragma once

#include "neighbours.h"
#include "planes.h"

namespace doom {

constexpr Fixed CEILING_SPEED = UNIT;

OFA_FUNCTION bool is_crusher(int type) {
    return type == CEILING_CRUSH_AND_RAISE || type == CEILING_FAST_CRUSH || type == CEILING_SILENT_CRUSH;
}

OFA_FUNCTION void start_ceiling(WorldBase& w, int sector, int type) {
    Sector& s = w.g.sectors[sector];
    Mover& c = new_sector_mover(w.g, THINKER_CEILING, sector);
    c.type = type;
    c.tag = s.tag;
    c.speed = type == CEILING_FAST_CRUSH ? CEILING_SPEED * 2 : CEILING_SPEED;
    c.direction = -1;
    c.low = s.floor_height;
    if (type == CEILING_RAISE_TO_HIGHEST) {
        c.high = highest_ceiling_around(w, sector);
        c.direction = 1;
        return;
    }
    if (is_crusher(type)) {
        c.crush = 1;
        c.high = s.ceiling_height;
    }
    if (type != CEILING_LOWER_TO_FLOOR) c.low += 8 * UNIT;
}

OFA_FUNCTION bool start_ceilings(WorldBase& w, int line, int type) {
    const int tag = w.g.lines[line].tag;
    if (is_crusher(type)) {
        for_movers(w.g, THINKER_CEILING, tag, [](Mover& c) {
            if (c.direction == 0) c.direction = c.old_direction;
        });
    }
    return for_tagged_idle_sectors(w, tag, [&](int sector) { start_ceiling(w, sector, type); });
}

OFA_FUNCTION bool stop_ceilings(WorldBase& w, int line) {
    bool any = false;
    for_movers(w.g, THINKER_CEILING, w.g.lines[line].tag, [&](Mover& c) {
        if (c.direction == 0) return;
        c.old_direction = c.direction;
        c.direction = 0;
        any = true;
    });
    return any;
}

template <class W>
OFA_FUNCTION void think_ceiling(W& w, Mover& c) {
    const bool silent = c.type == CEILING_SILENT_CRUSH;
    if (c.direction > 0) {
        const PlaneResult result = move_ceiling(w, c.sector, c.speed, c.high, 0, 1);
        if (!silent) start_moving_sound(w, c.sector);
        if (result != PLANE_ARRIVED) return;
        if (silent) start_sector_sound(w, c.sector, SOUND_PSTOP);
        if (c.type == CEILING_RAISE_TO_HIGHEST) remove_mover(w.g, c);
        else if (is_crusher(c.type)) c.direction = -1;
    } else if (c.direction < 0) {
        const PlaneResult result = move_ceiling(w, c.sector, c.speed, c.low, c.crush, -1);
        if (!silent) start_moving_sound(w, c.sector);
        if (result == PLANE_ARRIVED) {
            if (silent) start_sector_sound(w, c.sector, SOUND_PSTOP);
            if (is_crusher(c.type)) {
                if (c.type != CEILING_FAST_CRUSH) c.speed = CEILING_SPEED;
                c.direction = 1;
            } else {
                remove_mover(w.g, c);
            }
        } else if (result == PLANE_BLOCKED) {
            if (c.type != CEILING_FAST_CRUSH && c.type != CEILING_LOWER_TO_FLOOR) c.speed = CEILING_SPEED / 8;
        }
    }
}

}  // namespace doom
