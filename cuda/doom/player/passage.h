// Whether the player gets along an edge of the navigation graph: now, soon, or once something else has been done.
#pragma once

#include "../sim/game.h"

namespace doom {

constexpr Fixed BODY_HEIGHT = 56 * UNIT;
constexpr Fixed FAR_AWAY = 8192 * UNIT;   // a height whose exact value does not matter

// BARRED: a trigger, a key or the death of a boss would open it.
enum Passage { PASSAGE_CLOSED, PASSAGE_FREE, PASSAGE_DOOR, PASSAGE_WAIT, PASSAGE_BARRED };

struct Gap {
    Fixed floor, ceiling;
};

OFA_FUNCTION bool fits_through(const Gap& from, const Gap& to) {
    const Fixed floor = from.floor > to.floor ? from.floor : to.floor;
    const Fixed ceiling = from.ceiling < to.ceiling ? from.ceiling : to.ceiling;
    return wrap_sub(ceiling, floor) >= BODY_HEIGHT && wrap_sub(to.floor, from.floor) <= STEP_HEIGHT;
}

OFA_FUNCTION Gap gap_of(const Game& g, int sector) {
    return {g.sectors[sector].floor_height, g.sectors[sector].ceiling_height};
}

// Gaps a sector has now and will have by itself; returns how many.
OFA_FUNCTION int coming_gaps(const Game& g, int sector, Gap* gaps) {
    const Gap now = gap_of(g, sector);
    int n = 0;
    gaps[n++] = now;
    if (g.sectors[sector].mover == NONE) return n;
    const Mover& m = g.movers[g.sectors[sector].mover];
    switch (g.thinkers[MAX_MOBJS + g.sectors[sector].mover].kind) {
        case THINKER_DOOR:
            if (m.direction != DOOR_DOWN || m.type == DOOR_CLOSE_30_OPEN) gaps[n++] = {now.floor, m.high};
            break;
        case THINKER_FLOOR: gaps[n++] = {m.high, now.ceiling}; break;
        case THINKER_PLAT:
            if (m.stasis) break;
            gaps[n++] = {m.high, now.ceiling};
            if (m.direction != PLAT_UP || m.type == PLAT_PERPETUAL) gaps[n++] = {m.low, now.ceiling};
            break;
        case THINKER_CEILING:
            if (!m.stasis && (m.crush || m.direction > 0)) gaps[n++] = {now.floor, m.high};
            break;
        default: break;
    }
    return n;
}

// --- what triggers would do --------------------------------------------------------------------------------------

OFA_FUNCTION void reach_floor(SectorReach& r, Fixed height) {
    if (height < r.lowest) r.lowest = height;
    if (height > r.highest) r.highest = height;
}

OFA_FUNCTION void reach_ceiling(SectorReach& r, Fixed height) {
    if (height > r.ceiling) r.ceiling = height;
}

// Widens a sector's reach by what a special would do to it. Stairs and donuts count as able to come to any height.
OFA_FUNCTION void add_effect(const WorldBase& w, int sector, const LineSpecial& s, SectorReach& r) {
    const Fixed floor = w.g.sectors[sector].floor_height;
    switch (s.kind) {
        case KIND_DOOR: reach_ceiling(r, lowest_ceiling_around(w, sector) - DOOR_GAP); return;
        case KIND_STAIRS: reach_floor(r, wrap_add(floor, FAR_AWAY)); return;
        case KIND_DONUT:
            reach_floor(r, wrap_add(floor, FAR_AWAY));
            reach_floor(r, floor - FAR_AWAY);
            return;
        case KIND_CEILING:
            if (s.variant == CEILING_RAISE_AND_FLOOR_LOWER) {
                reach_ceiling(r, highest_ceiling_around(w, sector));
                reach_floor(r, lowest_floor_around(w, sector));
            }
            return;
        case KIND_FLOOR:
        case KIND_PLAT: break;
        default: return;
    }
    switch (s.variant) {
        case FLOOR_LOWER: reach_floor(r, highest_floor_around(w, sector)); return;
        case FLOOR_TURBO_LOWER: reach_floor(r, highest_floor_around(w, sector) + 8 * UNIT); return;
        case FLOOR_RAISE:
        case FLOOR_RAISE_CRUSH: reach_floor(r, lowest_ceiling_around(w, sector)); return;
        case FLOOR_RAISE_24:
        case FLOOR_RAISE_24_AND_CHANGE: reach_floor(r, wrap_add(floor, 24 * UNIT)); return;
        case FLOOR_RAISE_512: reach_floor(r, wrap_add(floor, 512 * UNIT)); return;
        case FLOOR_RAISE_TO_TEXTURE: reach_floor(r, wrap_add(floor, shortest_lower_texture(w, sector))); return;
        case PLAT_RAISE_AND_CHANGE: reach_floor(r, wrap_add(floor, s.argument * UNIT)); return;
        case FLOOR_RAISE_TO_NEAREST:
        case FLOOR_RAISE_TURBO:
        case PLAT_RAISE_TO_NEAREST_AND_CHANGE: reach_floor(r, next_higher_floor(w, sector, floor)); return;
        case PLAT_PERPETUAL:
            reach_floor(r, lowest_floor_around(w, sector));
            reach_floor(r, highest_floor_around(w, sector));
            return;
        default: reach_floor(r, lowest_floor_around(w, sector)); return;
    }
}

// A living monster whose kind has to die out before the sector moves; NONE for all but a few sectors.
OFA_FUNCTION int boss_of_sector(const Game& g, int sector) {
    const int tag = g.sectors[sector].tag;
    return tag == 666 ? g.script.bosses[0] : tag == 667 ? g.script.bosses[1] : NONE;
}

OFA_FUNCTION SectorReach reach_now(const Game& g, int sector) {
    SectorReach r = {g.sectors[sector].floor_height, g.sectors[sector].floor_height, g.sectors[sector].ceiling_height, 0};
    Gap gaps[3];
    for (int i = coming_gaps(g, sector, gaps) - 1; i >= 0; --i) {
        reach_floor(r, gaps[i].floor);
        reach_ceiling(r, gaps[i].ceiling);
    }
    return r;
}

// visit(index of a trigger) for the triggers of a sector that still work.
template <class F>
OFA_FUNCTION void for_triggers_of(const WorldBase& w, int sector, F visit) {
    const int32_t* first = at(w.wad, w.level->nav_sector_triggers) + sector;
    for (int i = first[0]; i < first[1]; ++i)
        if (w.g.lines[at(w.wad, w.level->nav_triggers)[i].line].special) visit(i);
}

OFA_FUNCTION bool is_trigger_spent(const WorldBase& w, const NavTrigger& t) {
    return w.g.script.line_uses[t.line] >= MOST_USES;
}

// Heights a sector can come to by its triggers, worked out once in a search.
OFA_FUNCTION const SectorReach& reach_of(const WorldBase& w, int sector) {
    SectorReach& r = w.g.script.reach[sector];
    const int32_t search = w.g.script.search_number;
    if (r.search == search) return r;
    r = reach_now(w.g, sector);
    for_triggers_of(w, sector, [&](int trigger) {
        const NavTrigger& t = at(w.wad, w.level->nav_triggers)[trigger];
        if (!is_trigger_spent(w, t)) add_effect(w, sector, line_special(w, t.line), r);
    });
    if (boss_of_sector(w.g, sector) != NONE) {
        reach_ceiling(r, lowest_ceiling_around(w, sector) - DOOR_GAP);
        reach_floor(r, lowest_floor_around(w, sector));
        reach_floor(r, wrap_add(w.g.sectors[sector].floor_height, shortest_lower_texture(w, sector)));
    }
    r.search = search;
    return r;
}

// Whether two sectors can come to heights at which the player gets from one to the other.
OFA_FUNCTION bool could_fit(const SectorReach& from, const SectorReach& to) {
    const Fixed needed = to.lowest - STEP_HEIGHT;
    const Fixed floor = from.lowest > needed ? from.lowest : needed;
    if (floor > from.highest) return false;
    const Fixed ceiling = from.ceiling < to.ceiling ? from.ceiling : to.ceiling;
    return wrap_sub(ceiling, floor > to.lowest ? floor : to.lowest) >= BODY_HEIGHT;
}

// --- passages ----------------------------------------------------------------------------------------------------

// Whether an edge leads through a door that is opened by hand; the key is another matter.
OFA_FUNCTION bool is_hand_door(const WorldBase& w, const NavEdge& e) {
    return (e.flags & NAV_DOOR) && line_special(w, e.line).trigger == TRIGGER_DOOR;
}

constexpr Fixed HAND_REACH = 72 * UNIT;

// Whether a door's own line can be used from about a point.
OFA_FUNCTION bool is_at_hand(const WorldBase& w, const NavTrigger& t, Fixed x, Fixed y) {
    return line_special(w, t.line).trigger == TRIGGER_DOOR && side_of_line(w, x, y, w.lines[t.line]) == 0 &&
           approximate_distance(t.x * UNIT - x, t.y * UNIT - y) < HAND_REACH;
}

// What it takes until a sector beside a passage at a point is out of the way.
OFA_FUNCTION Passage help_by_sector(const WorldBase& w, const Player& p, int sector, Fixed x, Fixed y) {
    if (w.g.sectors[sector].mover != NONE) return PASSAGE_WAIT;
    Passage best = boss_of_sector(w.g, sector) != NONE ? PASSAGE_BARRED : PASSAGE_CLOSED;
    for_triggers_of(w, sector, [&](int trigger) {
        const NavTrigger& t = at(w.wad, w.level->nav_triggers)[trigger];
        if (has_key(p, t.key) && is_at_hand(w, t, x, y)) best = PASSAGE_DOOR;
        else if (best == PASSAGE_CLOSED && !is_trigger_spent(w, t)) best = PASSAGE_BARRED;
    });
    return best;
}

OFA_FUNCTION bool crosses_box(const WorldBase& w, const MapLine& l, const Fixed* box) {
    return box[BOX_RIGHT] > l.box[BOX_LEFT] && box[BOX_LEFT] < l.box[BOX_RIGHT] && box[BOX_TOP] > l.box[BOX_BOTTOM] &&
           box[BOX_BOTTOM] < l.box[BOX_TOP] && side_of_box(w, box, l) == -1;
}

// Whether the player has room at a point, coming from a floor height: something beside the passage may be in the way
// and has to move first. `bar` becomes that sector. `walls`: solid lines count too.
OFA_FUNCTION Passage probe_place(WorldBase& w, const Player& p, Fixed x, Fixed y, Fixed floor, bool walls, int& bar) {
    const Fixed radius = w.types[THING_PLAYER].radius - (walls ? UNIT : 0);
    const Fixed box[4] = {wrap_add(y, radius), wrap_sub(y, radius), wrap_sub(x, radius), wrap_add(x, radius)};
    Passage worst = PASSAGE_FREE;
    Game& g = w.g;
    ++g.valid_count;
    for_blocks_around(w, box, 0, [&](int bx, int by) {
        return for_lines_in_block(w, bx, by, [&](int line) {
            const MapLine& l = w.lines[line];
            const bool solid = l.sector[1] < 0 || (g.lines[line].flags & LINE_BLOCKING);
            if ((solid && !walls) || !crosses_box(w, l, box)) return true;
            if (solid) {
                worst = PASSAGE_CLOSED;
                return false;
            }
            find_opening(w, line);
            if (g.clip.open_range >= BODY_HEIGHT && wrap_sub(g.clip.open_bottom, floor) <= STEP_HEIGHT) return true;
            Passage help = PASSAGE_CLOSED;
            for (int side = 0; side < 2 && help == PASSAGE_CLOSED; ++side) {
                help = help_by_sector(w, p, l.sector[side], x, y);
                bar = l.sector[side];
            }
            worst = help;
            return worst != PASSAGE_CLOSED;
        });
    });
    return worst;
}

// Whether the player gets along an edge from a node, and what it takes. `bar` is the sector beside the passage that is
// in the way, if it is none of the two.
OFA_FUNCTION Passage passage(WorldBase& w, const Player& p, int node, const NavEdge& e, int& bar) {
    if (e.kind == NAV_TELEPORT) return line_special(w, e.line).kind == KIND_TELEPORT ? PASSAGE_FREE : PASSAGE_CLOSED;
    const int here = w.subsectors[node].sector, there = w.subsectors[e.to].sector;
    if (fits_through(gap_of(w.g, here), gap_of(w.g, there))) {
        if (e.kind != NAV_MOVES) return PASSAGE_FREE;
        return probe_place(w, p, e.x * UNIT, e.y * UNIT, gap_of(w.g, here).floor, false, bar);
    }
    if (w.g.script.despair && e.kind == NAV_OPEN) return PASSAGE_FREE;
    Gap from[4], to[3];
    int n_from = coming_gaps(w.g, here, from);
    const int n_to = coming_gaps(w.g, there, to);
    // Who has come into a shut door's sector has opened it.
    if (wrap_sub(from[0].ceiling, from[0].floor) < BODY_HEIGHT)
        from[n_from++] = {from[0].floor, lowest_ceiling_around(w, here) - DOOR_GAP};
    for (int i = 0; i < n_from; ++i)
        for (int k = 0; k < n_to; ++k)
            if (i + k > 0 && fits_through(from[i], to[k])) return PASSAGE_WAIT;
    if (is_hand_door(w, e)) {
        const Gap opened = {to[0].floor, lowest_ceiling_around(w, there) - DOOR_GAP};
        for (int i = 0; i < n_from; ++i)
            if (fits_through(from[i], opened)) return has_key(p, e.key) ? PASSAGE_DOOR : PASSAGE_BARRED;
    }
    return could_fit(reach_of(w, here), reach_of(w, there)) ? PASSAGE_BARRED : PASSAGE_CLOSED;
}

}  // namespace doom
