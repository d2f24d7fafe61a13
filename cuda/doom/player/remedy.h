// What opens a barred edge of the graph: keys, triggers, the death of a boss.
#pragma once

#include "passage.h"

namespace doom {

// A layer of the search (search.h): distances below OBSTACLE need nothing done first, those below 2 * OBSTACLE one
// thing, and so on.
constexpr int UNREACHED = 0x7FFFFFFF, OBSTACLE = 1 << 22;

OFA_FUNCTION int distance_to(const Script& s, int node) {
    return node < 0 || node >= MAX_NAV_NODES ? UNREACHED : s.distance[node];
}

OFA_FUNCTION bool can_reach(const Script& s, int node) { return distance_to(s, node) < OBSTACLE; }

// --- wishes --------------------------------------------------------------------------------------------------------

// Something to go for, and where.
struct Wish {
    GoalKind kind;
    int goal;                   // sector, object, trigger or node
    int node, x, y;             // place in map units
};

OFA_FUNCTION Wish place_wish(const WorldBase& w, GoalKind kind, int goal, int node) {
    const NavNode& n = at(w.wad, w.level->nav_nodes)[node];
    return {kind, goal, node, n.x, n.y};
}

OFA_FUNCTION Wish trigger_wish(const WorldBase& w, int trigger) {
    const NavTrigger& t = at(w.wad, w.level->nav_triggers)[trigger];
    return {GOAL_TRIGGER, trigger, t.node, t.x, t.y};
}

OFA_FUNCTION Wish enemy_wish(const WorldBase& w, int enemy) {
    const Mobj& m = w.g.mobjs[enemy];
    return {GOAL_ENEMY, enemy, m.subsector, m.x >> 16, m.y >> 16};
}

// The cheapest wish so far.
struct Choice {
    Wish wish;
    int cost;
};

OFA_FUNCTION void consider(const Script& s, Choice& best, const Wish& wish, int extra) {
    const int distance = distance_to(s, wish.node);
    if (distance == UNREACHED || distance + extra >= best.cost) return;
    best = {wish, distance + extra};
}

// --- items ---------------------------------------------------------------------------------------------------------

OFA_FUNCTION bool is_in_touch(Fixed item, Fixed floor) {
    const Fixed above = wrap_sub(item, floor);
    return above >= -8 * UNIT && above <= BODY_HEIGHT;
}

// Whether a solid line lies between two points near each other.
OFA_FUNCTION bool is_wall_between(WorldBase& w, Fixed x1, Fixed y1, Fixed x2, Fixed y2) {
    return !walk_path(w, x1, y1, x2, y2, PATH_LINES, [&](const Intercept& in) {
        return w.lines[in.line].sector[1] >= 0 && !(w.g.lines[in.line].flags & LINE_BLOCKING);
    });
}

// Whether a spot is where its subsector can be walked, and not behind a wall that the subsector reaches across.
OFA_FUNCTION bool is_inside(WorldBase& w, int node, Fixed x, Fixed y) {
    const NavNode& n = at(w.wad, w.level->nav_nodes)[node];
    for (uint32_t i = 0; i < n.n_edges && i < 8; ++i) {
        const NavEdge& e = at(w.wad, w.level->nav_edges)[n.first_edge + i];
        if (!is_wall_between(w, x, y, e.x * UNIT, e.y * UNIT)) return true;
    }
    return false;
}

// The nearest spot from which an item can be touched when its floor is at the one or the other height. Walls do not
// matter to that. False if there is none.
OFA_FUNCTION bool find_spot_beside(WorldBase& w, const Player& p, const Mobj& item, Fixed height, Fixed other, Wish& wish) {
    const Script& s = w.g.script;
    int nearest = UNREACHED;
    OFA_TABLE int8_t around[8] = {0, 16, 33, 33, 33, 33, 33, 16};   // along the sides of a square
    for (int i = 0; i < 16; ++i) {
        const int sign_x = (i + 8) % 16 < 8 ? -1 : 1, sign_y = (i + 12) % 16 < 8 ? 1 : -1;
        const Fixed x = item.x + sign_x * around[i % 8] * UNIT, y = item.y + sign_y * around[(i + 4) % 8] * UNIT;
        const int node = subsector_at(w, x, y);
        const Fixed floor = gap_of(w.g, w.subsectors[node].sector).floor;
        if (!is_in_touch(height, floor) && !is_in_touch(other, floor)) continue;
        int bar;
        if (distance_to(s, node) >= nearest || !is_inside(w, node, x, y)) continue;
        if (probe_place(w, p, x, y, floor, true, bar) != PASSAGE_FREE) continue;
        nearest = distance_to(s, node);
        wish.node = node;
        wish.x = x >> 16;
        wish.y = y >> 16;
    }
    return nearest != UNREACHED;
}

// Taking an item: from its own place, from beside the ledge it lies on, or after what moves its pedestal.
OFA_FUNCTION Wish item_wish(WorldBase& w, const Player& p, int item) {
    const Mobj& m = w.g.mobjs[item];
    const Script& s = w.g.script;
    Wish wish = {GOAL_ITEM, item, m.subsector, m.x >> 16, m.y >> 16};
    if (can_reach(s, wish.node)) return wish;
    Wish beside = wish;
    if (find_spot_beside(w, p, m, m.z, m.z, beside) && distance_to(s, beside.node) < distance_to(s, wish.node)) wish = beside;
    if (can_reach(s, wish.node)) return wish;
    const int distance = distance_to(s, wish.node);
    Choice best = {wish, distance == UNREACHED ? distance : distance / OBSTACLE * OBSTACLE};  // of an earlier layer
    for_triggers_of(w, m.sector, [&](int trigger) {
        const NavTrigger& t = at(w.wad, w.level->nav_triggers)[trigger];
        SectorReach after = reach_now(w.g, m.sector);
        add_effect(w, m.sector, line_special(w, t.line), after);
        if (is_trigger_spent(w, t) || !find_spot_beside(w, p, m, after.lowest, after.highest, beside)) return;
        consider(s, best, trigger_wish(w, trigger), 3000 * s.line_uses[t.line]);
    });
    return best.wish;
}

// --- remedies ------------------------------------------------------------------------------------------------------

// Looks for what opens one barred edge.
struct RemedySearch {
    WorldBase& w;
    const Player& p;
    const NavEdge& edge;
    int here, there;            // sectors
    Choice best;
};

OFA_FUNCTION void consider_key(RemedySearch& r, int colour) {
    const Game& g = r.w.g;
    for (int i = 0; i < g.script.n_keys; ++i) {
        const int key = g.script.keys[i];
        if (key_colour(g.mobjs[key].type) == colour) consider(g.script, r.best, item_wish(r.w, r.p, key), 0);
    }
}

// A door that one only passes from its own floor is of no use from far below.
OFA_FUNCTION bool is_level_with(const WorldBase& w, const NavTrigger& t) {
    if (line_special(w, t.line).trigger != TRIGGER_DOOR) return true;
    const Fixed here = gap_of(w.g, w.subsectors[t.node].sector).floor;
    return gap_of(w.g, t.sector).floor - here <= STEP_HEIGHT;
}

// Whether what a trigger does to one of the edge's sectors would open the edge.
OFA_FUNCTION bool trigger_opens(const RemedySearch& r, const NavTrigger& t) {
    SectorReach after = reach_now(r.w.g, t.sector);
    add_effect(r.w, t.sector, line_special(r.w, t.line), after);
    if (t.sector == r.there) return could_fit(reach_of(r.w, r.here), after);
    if (t.sector == r.here) return could_fit(after, reach_of(r.w, r.there));
    return true;
}

// Whether there is a place to stand to set a trigger off. A line under a shut door cannot be crossed.
OFA_FUNCTION bool is_usable(WorldBase& w, const Player& p, const NavTrigger& t) {
    if (t.node < 0 || is_trigger_spent(w, t)) return false;
    if (t.use == NAV_BY_SHOOTING && character_of(w.g).fire_range == 0) return false;
    if (t.use != NAV_BY_CROSSING) return true;
    int bar;
    const Passage how = probe_place(w, p, t.x * UNIT, t.y * UNIT, gap_of(w.g, w.subsectors[t.node].sector).floor, true, bar);
    return how != PASSAGE_CLOSED && how != PASSAGE_BARRED;
}

OFA_FUNCTION bool lasts(const LineSpecial& s) {
    switch (s.variant) {
        case DOOR_NORMAL: case DOOR_BLAZE_NORMAL: case PLAT_DOWN_WAIT_UP: case PLAT_BLAZE: return false;
        default: return true;
    }
}

// What comes back after some seconds has to be near to be of use.
OFA_FUNCTION int delay_cost(const WorldBase& w, const NavTrigger& t, const NavEdge& e) {
    const int apart = approximate_distance((t.x - e.x) * UNIT, (t.y - e.y) * UNIT) >> 16;
    return lasts(line_special(w, t.line)) ? 0 : 3 * apart;
}

OFA_FUNCTION void consider_sector(RemedySearch& r, int sector) {
    const Script& s = r.w.g.script;
    for_triggers_of(r.w, sector, [&](int trigger) {
        const NavTrigger& t = at(r.w.wad, r.w.level->nav_triggers)[trigger];
        if (!is_usable(r.w, r.p, t) || !is_level_with(r.w, t) || !trigger_opens(r, t)) return;
        if (t.key && !has_key(r.p, t.key)) consider_key(r, t.key);
        else consider(s, r.best, trigger_wish(r.w, trigger), delay_cost(r.w, t, r.edge) + 3000 * s.line_uses[t.line]);
    });
    const int boss = boss_of_sector(r.w.g, sector);
    if (boss != NONE) consider(s, r.best, enemy_wish(r.w, boss), 0);
}

// What to do about a barred edge from a node that costs less than `limit`; false when nothing is known that would help.
OFA_FUNCTION bool find_remedy(WorldBase& w, const Player& p, int from, int edge, int limit, Wish& wish) {
    const NavEdge& e = at(w.wad, w.level->nav_edges)[edge];
    RemedySearch r = {w, p, e, w.subsectors[from].sector, w.subsectors[e.to].sector, {{}, limit}};
    if (is_hand_door(w, e) && !has_key(p, e.key)) consider_key(r, e.key);
    int beside = NONE;
    passage(w, p, from, e, beside);
    consider_sector(r, r.there);
    if (r.here != r.there) consider_sector(r, r.here);
    if (beside != NONE && beside != r.here && beside != r.there) consider_sector(r, beside);
    if (r.best.cost >= limit) return false;
    wish = r.best.wish;
    return true;
}

}  // namespace doom
