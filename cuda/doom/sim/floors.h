// Floors that move to a height and stay, stairs and donuts.
#pragma once

#include "neighbours.h"
#include "planes.h"

namespace doom {

constexpr Fixed FLOOR_SPEED = UNIT;
constexpr int CRUSH_LIKE_STAIRS = 10;     // hurts, does not press on: the original leaves the field unset

OFA_FUNCTION Mover& start_floor_mover(WorldBase& w, int sector, int type, int direction, Fixed speed, Fixed target) {
    Mover& f = new_sector_mover(w.g, THINKER_FLOOR, sector);
    f.type = type;
    f.direction = direction;
    f.speed = speed;
    f.high = target;
    return f;
}

// Height of the shortest lower texture around; a missing texture counts as number 0.
OFA_FUNCTION Fixed shortest_lower_texture(const WorldBase& w, int sector) {
    const Texture* textures = at(w.wad, w.wad.textures);
    Fixed shortest = FIXED_MAX;
    for (int i = 0; i < n_sector_lines(w, sector); ++i) {
        const int line = sector_line(w, sector, i);
        if (!(w.g.lines[line].flags & LINE_TWO_SIDED)) continue;
        for (int side = 0; side < 2; ++side) {
            if (w.lines[line].side[side] < 0) continue;
            const Fixed height = textures[w.g.sides[w.lines[line].side[side]].bottom].height * UNIT;
            if (height < shortest) shortest = height;
        }
    }
    return shortest;
}

// A floor that goes down takes texture and type of the neighbour it comes level with.
OFA_FUNCTION void copy_level_neighbour(const WorldBase& w, int sector, Mover& f) {
    int bound = sector;
    for (int i = 0; i < n_sector_lines(w, bound) && i < n_sector_lines(w, sector); ++i) {
        const int line = sector_line(w, sector, i);
        if (!(w.g.lines[line].flags & LINE_TWO_SIDED)) continue;
        const MapLine& l = w.lines[line];
        bound = l.sector[0] == sector ? l.sector[1] : l.sector[0];
        if (w.g.sectors[bound].floor_height == f.high) {
            f.texture = w.g.sectors[bound].floor_flat;
            f.new_special = w.g.sectors[bound].special;
            return;
        }
    }
}

OFA_FUNCTION void start_floor(WorldBase& w, int line, int sector, int type) {
    Sector& s = w.g.sectors[sector];
    const Sector& front = w.g.sectors[w.lines[line].sector[0]];
    const Fixed floor = s.floor_height;
    switch (type) {
        case FLOOR_LOWER:
            start_floor_mover(w, sector, type, -1, FLOOR_SPEED, highest_floor_around(w, sector));
            break;
        case FLOOR_LOWER_TO_LOWEST:
            start_floor_mover(w, sector, type, -1, FLOOR_SPEED, lowest_floor_around(w, sector));
            break;
        case FLOOR_TURBO_LOWER: {
            Mover& f = start_floor_mover(w, sector, type, -1, FLOOR_SPEED * 4, highest_floor_around(w, sector));
            if (f.high != floor) f.high += 8 * UNIT;
            break;
        }
        case FLOOR_RAISE:
        case FLOOR_RAISE_CRUSH: {
            Mover& f = start_floor_mover(w, sector, type, 1, FLOOR_SPEED, lowest_ceiling_around(w, sector));
            f.crush = type == FLOOR_RAISE_CRUSH;
            if (f.high > s.ceiling_height) f.high = s.ceiling_height;
            if (f.crush) f.high -= 8 * UNIT;
            break;
        }
        case FLOOR_RAISE_TURBO:
            start_floor_mover(w, sector, type, 1, FLOOR_SPEED * 4, next_higher_floor(w, sector, floor));
            break;
        case FLOOR_RAISE_TO_NEAREST:
            start_floor_mover(w, sector, type, 1, FLOOR_SPEED, next_higher_floor(w, sector, floor));
            break;
        case FLOOR_RAISE_24:
            start_floor_mover(w, sector, type, 1, FLOOR_SPEED, floor + 24 * UNIT);
            break;
        case FLOOR_RAISE_512:
            start_floor_mover(w, sector, type, 1, FLOOR_SPEED, floor + 512 * UNIT);
            break;
        case FLOOR_RAISE_24_AND_CHANGE:
            start_floor_mover(w, sector, type, 1, FLOOR_SPEED, floor + 24 * UNIT);
            s.floor_flat = front.floor_flat;
            s.special = front.special;
            break;
        case FLOOR_RAISE_TO_TEXTURE:
            start_floor_mover(w, sector, type, 1, FLOOR_SPEED, wrap_add(floor, shortest_lower_texture(w, sector)));
            break;
        default: {
            Mover& f = start_floor_mover(w, sector, type, -1, FLOOR_SPEED, lowest_floor_around(w, sector));
            f.texture = s.floor_flat;
            copy_level_neighbour(w, sector, f);
        }
    }
}

OFA_FUNCTION bool start_floors(WorldBase& w, int line, int type) {
    return for_tagged_idle_sectors(w, w.g.lines[line].tag, [&](int sector) { start_floor(w, line, sector, type); });
}

// Steps rise from each tagged sector on, each next one higher, through neighbours with the same flat. The search for
// more tagged sectors goes on behind the last step, not behind the first.
OFA_FUNCTION bool start_stairs(WorldBase& w, int line, bool turbo) {
    Game& g = w.g;
    const Fixed step = turbo ? 16 * UNIT : 8 * UNIT;
    const Fixed speed = turbo ? FLOOR_SPEED * 4 : FLOOR_SPEED / 4;
    bool any = false;
    int sector = -1;
    while ((sector = next_tagged_sector(w, g.lines[line].tag, sector)) != NONE) {
        if (g.sectors[sector].mover != NONE) continue;
        any = true;
        Fixed height = g.sectors[sector].floor_height + step;
        const int flat = g.sectors[sector].floor_flat;
        start_floor_mover(w, sector, FLOOR_LOWER, 1, speed, height).crush = CRUSH_LIKE_STAIRS;
        bool more = true;
        while (more) {
            more = false;
            for (int i = 0; i < n_sector_lines(w, sector); ++i) {
                const int l = sector_line(w, sector, i);
                if (!(g.lines[l].flags & LINE_TWO_SIDED) || w.lines[l].sector[0] != sector) continue;
                const int next = w.lines[l].sector[1];
                if (next < 0 || g.sectors[next].floor_flat != flat) continue;
                height += step;
                if (g.sectors[next].mover != NONE) continue;
                sector = next;
                start_floor_mover(w, sector, FLOOR_LOWER, 1, speed, height).crush = CRUSH_LIKE_STAIRS;
                more = true;
                break;
            }
        }
    }
    return any;
}

// The tagged sector sinks to the level outside of the ring around it, and the ring rises to it.
OFA_FUNCTION bool start_donut(WorldBase& w, int line) {
    return for_tagged_idle_sectors(w, w.g.lines[line].tag, [&](int pool) {
        if (n_sector_lines(w, pool) == 0) return;
        const int ring = sector_across(w, sector_line(w, pool, 0), pool);
        if (ring == NONE) return;
        for (int i = 0; i < n_sector_lines(w, ring); ++i) {
            const int outside = w.lines[sector_line(w, ring, i)].sector[1];
            if (outside < 0 || outside == pool) continue;
            const Sector& o = w.g.sectors[outside];
            Mover& rising = start_floor_mover(w, ring, FLOOR_DONUT_RAISE, 1, FLOOR_SPEED / 2, o.floor_height);
            rising.texture = o.floor_flat;
            start_floor_mover(w, pool, FLOOR_LOWER, -1, FLOOR_SPEED / 2, o.floor_height);
            return;
        }
    });
}

template <class W>
OFA_FUNCTION void think_floor(W& w, Mover& f) {
    const PlaneResult result = move_floor(w, f.sector, f.speed, f.high, f.crush, f.direction);
    start_moving_sound(w, f.sector);
    if (result != PLANE_ARRIVED) return;
    Sector& s = w.g.sectors[f.sector];
    if ((f.direction > 0 && f.type == FLOOR_DONUT_RAISE) || (f.direction < 0 && f.type == FLOOR_LOWER_AND_CHANGE)) {
        s.special = int16_t(f.new_special);
        s.floor_flat = int16_t(f.texture);
    }
    start_sector_sound(w, f.sector, SOUND_PSTOP);
    remove_mover(w.g, f);
}

}  // namespace doom
