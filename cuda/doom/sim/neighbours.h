// What the sectors around a sector are like.
#pragma once

#include "thinkers.h"

namespace doom {

OFA_FUNCTION int sector_line(const WorldBase& w, int sector, int i) {
    return w.sector_lines[w.sectors[sector].first_line + i];
}

OFA_FUNCTION int n_sector_lines(const WorldBase& w, int sector) { return int(w.sectors[sector].n_lines); }

// The sector across a line, -1 when the line is not two-sided.
OFA_FUNCTION int sector_across(const WorldBase& w, int line, int sector) {
    if (!(w.g.lines[line].flags & LINE_TWO_SIDED)) return NONE;
    const MapLine& l = w.lines[line];
    return l.sector[0] == sector ? l.sector[1] : l.sector[0];
}

// visit(neighbour) across every two-sided line of the sector, in map order.
template <class F>
OFA_FUNCTION void for_neighbours(const WorldBase& w, int sector, F visit) {
    for (int i = 0; i < n_sector_lines(w, sector); ++i) {
        const int other = sector_across(w, sector_line(w, sector, i), sector);
        if (other != NONE) visit(w.g.sectors[other]);
    }
}

OFA_FUNCTION Fixed lowest_floor_around(const WorldBase& w, int sector) {
    Fixed height = w.g.sectors[sector].floor_height;
    for_neighbours(w, sector, [&](const Sector& s) {
        if (s.floor_height < height) height = s.floor_height;
    });
    return height;
}

OFA_FUNCTION Fixed highest_floor_around(const WorldBase& w, int sector) {
    Fixed height = -500 * UNIT;
    for_neighbours(w, sector, [&](const Sector& s) {
        if (s.floor_height > height) height = s.floor_height;
    });
    return height;
}

// Lowest neighbouring floor above `current`, or `current`. The original looks at the first 20 higher ones.
OFA_FUNCTION Fixed next_higher_floor(const WorldBase& w, int sector, Fixed current) {
    Fixed height = FIXED_MAX;
    int found = 0;
    for_neighbours(w, sector, [&](const Sector& s) {
        if (s.floor_height <= current || found == 20) return;
        ++found;
        if (s.floor_height < height) height = s.floor_height;
    });
    return found ? height : current;
}

OFA_FUNCTION Fixed lowest_ceiling_around(const WorldBase& w, int sector) {
    Fixed height = FIXED_MAX;
    for_neighbours(w, sector, [&](const Sector& s) {
        if (s.ceiling_height < height) height = s.ceiling_height;
    });
    return height;
}

OFA_FUNCTION Fixed highest_ceiling_around(const WorldBase& w, int sector) {
    Fixed height = 0;
    for_neighbours(w, sector, [&](const Sector& s) {
        if (s.ceiling_height > height) height = s.ceiling_height;
    });
    return height;
}

OFA_FUNCTION int darkest_light_around(const WorldBase& w, int sector, int light) {
    for_neighbours(w, sector, [&](const Sector& s) {
        if (s.light < light) light = s.light;
    });
    return light;
}

// First sector after `after` with the tag, -1 if there is none.
OFA_FUNCTION int next_tagged_sector(const WorldBase& w, int tag, int after) {
    for (int i = after + 1; i < w.g.n_sectors; ++i)
        if (w.g.sectors[i].tag == tag) return i;
    return NONE;
}

// start(sector) for every sector with the line's tag that nothing moves yet; true if there was one.
template <class F>
OFA_FUNCTION bool for_tagged_idle_sectors(const WorldBase& w, int tag, F start) {
    bool any = false;
    for (int s = next_tagged_sector(w, tag, -1); s != NONE; s = next_tagged_sector(w, tag, s)) {
        if (w.g.sectors[s].mover != NONE) continue;
        any = true;
        start(s);
    }
    return any;
}

// visit(mover) for the movers of a kind with a tag.
template <class F>
OFA_FUNCTION void for_movers(Game& g, ThinkerKind kind, int tag, F visit) {
    for (int i = 0; i < MAX_MOVERS; ++i)
        if (g.thinkers[MAX_MOBJS + i].kind == kind && g.movers[i].tag == tag) visit(g.movers[i]);
}

}  // namespace doom
