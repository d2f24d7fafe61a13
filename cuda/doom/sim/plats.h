// Lifts and platforms.
#pragma once

#include "neighbours.h"
#include "planes.h"

namespace doom {

constexpr Fixed PLAT_SPEED = UNIT;
constexpr int PLAT_WAIT = 3 * 35;
enum PlatDirection { PLAT_UP, PLAT_DOWN, PLAT_WAITS };

OFA_FUNCTION void start_plat(WorldBase& w, int line, int sector, int type, int amount) {
    Game& g = w.g;
    Sector& s = g.sectors[sector];
    const Fixed floor = s.floor_height;
    Mover& p = new_sector_mover(g, THINKER_PLAT, sector);
    p.type = type;
    p.tag = g.lines[line].tag;
    switch (type) {
        case PLAT_RAISE_TO_NEAREST_AND_CHANGE:
        case PLAT_RAISE_AND_CHANGE:
            p.speed = PLAT_SPEED / 2;
            s.floor_flat = g.sectors[w.sides[w.lines[line].side[0]].sector].floor_flat;
            p.high = type == PLAT_RAISE_AND_CHANGE ? floor + amount * UNIT : next_higher_floor(w, sector, floor);
            p.wait = 0;
            p.direction = PLAT_UP;
            if (type == PLAT_RAISE_TO_NEAREST_AND_CHANGE) s.special = 0;
            start_sector_sound(w, sector, SOUND_STNMOV);
            break;
        case PLAT_PERPETUAL:
            p.speed = PLAT_SPEED;
            p.low = lowest_floor_around(w, sector);
            if (p.low > floor) p.low = floor;
            p.high = highest_floor_around(w, sector);
            if (p.high < floor) p.high = floor;
            p.wait = PLAT_WAIT;
            p.direction = next_random(w) & 1;
            start_sector_sound(w, sector, SOUND_PSTART);
            break;
        default:
            p.speed = type == PLAT_BLAZE ? PLAT_SPEED * 8 : PLAT_SPEED * 4;
            p.low = lowest_floor_around(w, sector);
            if (p.low > floor) p.low = floor;
            p.high = floor;
            p.wait = PLAT_WAIT;
            p.direction = PLAT_DOWN;
            start_sector_sound(w, sector, SOUND_PSTART);
    }
}

OFA_FUNCTION bool start_plats(WorldBase& w, int line, int type, int amount) {
    const int tag = w.g.lines[line].tag;
    if (type == PLAT_PERPETUAL) for_movers(w.g, THINKER_PLAT, tag, [](Mover& p) { p.stasis = 0; });
    return for_tagged_idle_sectors(w, tag, [&](int sector) { start_plat(w, line, sector, type, amount); });
}

OFA_FUNCTION void stop_plats(WorldBase& w, int line) {
    for_movers(w.g, THINKER_PLAT, w.g.lines[line].tag, [](Mover& p) { p.stasis = 1; });
}

template <class W>
OFA_FUNCTION void think_plat(W& w, Mover& p) {
    if (p.stasis) return;
    if (p.direction == PLAT_UP) {
        const PlaneResult result = move_floor(w, p.sector, p.speed, p.high, p.crush, 1);
        if (p.type == PLAT_RAISE_AND_CHANGE || p.type == PLAT_RAISE_TO_NEAREST_AND_CHANGE) start_moving_sound(w, p.sector);
        if (result == PLANE_BLOCKED && !p.crush) {
            p.count = p.wait;
            p.direction = PLAT_DOWN;
            start_sector_sound(w, p.sector, SOUND_PSTART);
        } else if (result == PLANE_ARRIVED) {
            p.count = p.wait;
            p.direction = PLAT_WAITS;
            start_sector_sound(w, p.sector, SOUND_PSTOP);
            if (p.type != PLAT_PERPETUAL) remove_mover(w.g, p);
        }
    } else if (p.direction == PLAT_DOWN) {
        if (move_floor(w, p.sector, p.speed, p.low, 0, -1) == PLANE_ARRIVED) {
            p.count = p.wait;
            p.direction = PLAT_WAITS;
            start_sector_sound(w, p.sector, SOUND_PSTOP);
        }
    } else if (--p.count == 0) {
        p.direction = w.g.sectors[p.sector].floor_height == p.low ? PLAT_UP : PLAT_DOWN;
        start_sector_sound(w, p.sector, SOUND_PSTART);
    }
}

}  // namespace doom
