// From a wish to what has to be done first: keys and triggers before what they open.
#pragma once

#include "search.h"

namespace doom {

constexpr int REMEDIES = 6;               // steps of a plan: the key behind the door behind the lift...

// Something to go for, and where.
struct Wish {
    GoalKind kind;
    int goal;                   // sector, object, trigger or node
    int node, x, y;             // place in map units
};

OFA_FUNCTION void drop_goal(Script& s) {
    s.goal_kind = GOAL_NONE;
    s.path_length = 0;
}

OFA_FUNCTION void set_goal(Script& s, const Wish& wish) {
    const bool same = s.goal_kind == wish.kind && s.goal == wish.goal;
    if (!same) s.goal_failures = s.goal_tics = 0;
    s.goal_kind = wish.kind;
    s.goal = wish.goal;
    s.goal_node = wish.node;
    s.goal_x = wish.x;
    s.goal_y = wish.y;
    s.goal_limit = s.goal_tics + 350 + (distance_to(s, wish.node) & (TRAP_COST - 1)) / 4;
    s.goal_side = -1;
    s.wait_tics = s.off_path_tics = 0;
    take_way_to(s, wish.node);
    s.path_checked = s.stubborn ? 0 : s.path_length;
}

OFA_FUNCTION void fail_edge(Script& s, int edge, int by) {
    if (s.edge_failures[edge] < 240) s.edge_failures[edge] = uint8_t(s.edge_failures[edge] + by);
}

OFA_FUNCTION Wish place_wish(const WorldBase& w, GoalKind kind, int goal, int node) {
    const NavNode& n = at(w.wad, w.level->nav_nodes)[node];
    return {kind, goal, node, n.x, n.y};
}

OFA_FUNCTION Wish trigger_wish(const WorldBase& w, int trigger) {
    const NavTrigger& t = at(w.wad, w.level->nav_triggers)[trigger];
    return {GOAL_TRIGGER, trigger, t.node, t.x, t.y};
}

// A subsector from which an item on a ledge can be touched; NONE if there is none.
OFA_FUNCTION int place_beside(const WorldBase& w, const Mobj& item) {
    const Script& s = w.g.script;
    int best = NONE;
    for (int i = 0; i < 8; ++i) {
        const Angle angle = Angle(i) * ANGLE_45;
        const Fixed x = item.x + 33 * cosine_of(w, angle), y = item.y + 33 * sine_of(w, angle);
        const int node = subsector_at(w, x, y);
        const Fixed up = item.z - gap_of(w.g, w.subsectors[node].sector).floor;
        if (up < -8 * UNIT || up > BODY_HEIGHT || distance_to(s, node) >= distance_to(s, best)) continue;
        best = node;
    }
    return best;
}

OFA_FUNCTION Wish item_wish(const WorldBase& w, int item) {
    const Mobj& m = w.g.mobjs[item];
    int node = m.subsector;
    if (!can_reach(w.g.script, node)) {
        const int beside = place_beside(w, m);
        if (distance_to(w.g.script, beside) < distance_to(w.g.script, node)) node = beside;
    }
    return {GOAL_ITEM, item, node, m.x >> 16, m.y >> 16};
}

OFA_FUNCTION Wish enemy_wish(const WorldBase& w, int enemy) {
    const Mobj& m = w.g.mobjs[enemy];
    return {GOAL_ENEMY, enemy, m.subsector, m.x >> 16, m.y >> 16};
}

// --- remedies ------------------------------------------------------------------------------------------------------

struct Remedy {
    Wish wish;
    int cost;
};

OFA_FUNCTION void consider(const Script& s, Remedy& best, const Wish& wish, int extra) {
    const int distance = distance_to(s, wish.node);
    if (distance == UNREACHED || distance + extra >= best.cost) return;
    best = {wish, distance + extra};
}

OFA_FUNCTION void consider_key(const WorldBase& w, Remedy& best, int colour) {
    for (int node = w.g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = w.g.thinkers[node].next)
        if (w.g.thinkers[node].kind == THINKER_MOBJ && key_colour(w.g.mobjs[node].type) == colour)
            consider(w.g.script, best, item_wish(w, node), 0);
}

// A door that one only passes from its own floor is of no use from far below.
OFA_FUNCTION bool is_level_with(const WorldBase& w, const NavTrigger& t) {
    if (line_special(w, t.line).trigger != TRIGGER_DOOR) return true;
    const Fixed here = gap_of(w.g, w.subsectors[t.node].sector).floor;
    return gap_of(w.g, t.sector).floor - here <= STEP_HEIGHT;
}

// Whether what a trigger does to one of the edge's sectors would open the edge.
OFA_FUNCTION bool trigger_opens(const WorldBase& w, const NavTrigger& t, int here, int there) {
    SectorReach after = reach_now(w.g, t.sector);
    add_effect(w, t.sector, line_special(w, t.line), after);
    if (t.sector == there) return could_fit(reach_of(w, here), after);
    if (t.sector == here) return could_fit(after, reach_of(w, there));
    return true;
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

OFA_FUNCTION void consider_triggers(const WorldBase& w, const Player& p, Remedy& best, int sector, int here, int there,
                                    const NavEdge& e) {
    for_triggers_of(w, sector, [&](int trigger) {
        const NavTrigger& t = at(w.wad, w.level->nav_triggers)[trigger];
        if (t.node < 0 || is_trigger_spent(w, t) || !is_level_with(w, t)) return;
        const int unlikely = trigger_opens(w, t, here, there) ? 0 : OBSTACLE / 2;
        const int extra = delay_cost(w, t, e) + 3000 * w.g.script.line_uses[t.line] + unlikely;
        if (t.key && !has_key(p, t.key)) consider_key(w, best, t.key);
        else consider(w.g.script, best, trigger_wish(w, trigger), extra);
    });
    const int boss = boss_of_sector(w.g, sector);
    if (boss != NONE) consider(w.g.script, best, enemy_wish(w, boss), 0);
}

// What to do about a barred edge; false when nothing is known that would help.
OFA_FUNCTION bool find_remedy(WorldBase& w, const Player& p, int from, int edge, Wish& wish) {
    const NavEdge& e = at(w.wad, w.level->nav_edges)[edge];
    const int here = w.subsectors[from].sector, there = w.subsectors[e.to].sector;
    Remedy best = {{}, UNREACHED};
    if (is_hand_door(w, e) && !has_key(p, e.key)) consider_key(w, best, e.key);
    int bar = NONE;
    passage(w, p, from, e, bar);
    consider_triggers(w, p, best, there, here, there, e);
    if (here != there) consider_triggers(w, p, best, here, here, there, e);
    if (bar != NONE && bar != here && bar != there) consider_triggers(w, p, best, bar, here, there, e);
    if (best.cost == UNREACHED) return false;
    wish = best.wish;
    return true;
}

// Makes a wish the goal, or the first thing to be done for it. False when no way to it is known.
OFA_NOINLINE bool pursue(WorldBase& w, const Player& p, Wish wish) {
    Script& s = w.g.script;
    int tried[REMEDIES];
    for (int n = 0; n < REMEDIES; ++n) {
        if (distance_to(s, wish.node) == UNREACHED) return false;
        int from = NONE;
        const int edge = first_obstacle(s, wish.node, from);
        if (edge == NONE) {
            set_goal(s, wish);
            s.remedy_edge = n > 0 ? tried[n - 1] : NONE;
            return true;
        }
        bool again = false;
        for (int i = 0; i < n; ++i) again |= tried[i] == edge;
        tried[n] = edge;
        if (again || !find_remedy(w, p, from, edge, wish)) {
            fail_edge(s, edge, EDGE_FAILURES);
            s.search_again = 1;
            return false;
        }
    }
    return false;
}

// --- the way, in thought -----------------------------------------------------------------------------------------

constexpr int CHECKED_AHEAD = 40, CHECKED_A_TIC = 6, DOUBTED = 1;

// Where the way is before its edge number i.
OFA_FUNCTION void way_point(const WorldBase& w, const Mobj& m, int i, Fixed& x, Fixed& y, int& node) {
    const Script& s = w.g.script;
    x = m.x;
    y = m.y;
    node = m.subsector;
    if (i + 1 >= s.path_length) return;
    const NavEdge& e = at(w.wad, w.level->nav_edges)[s.path[i + 1]];
    node = e.to;
    if (e.kind == NAV_TELEPORT) {
        const NavNode& n = at(w.wad, w.level->nav_nodes)[node];
        x = n.x * UNIT;
        y = n.y * UNIT;
    } else {
        x = e.x * UNIT;
        y = e.y * UNIT;
    }
}

OFA_FUNCTION bool is_edge_walkable(WorldBase& w, const Player& p, int i) {
    const Script& s = w.g.script;
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavEdge& e = edges[s.path[i]];
    Fixed x, y;
    int node, bar;
    way_point(w, m, i, x, y, node);
    if (i + 1 < s.path_length && edges[s.path[i + 1]].kind == NAV_TELEPORT) return true;
    // Who comes off a ledge is still up there at first.
    Fixed floor = gap_of(w.g, w.subsectors[node].sector).floor;
    const Fixed before = i + 2 < s.path_length ? gap_of(w.g, w.subsectors[edges[s.path[i + 2]].to].sector).floor : m.z;
    if (before > floor) floor = before;
    const Fixed dx = e.x * UNIT - x, dy = e.y * UNIT - y;
    const int steps = approximate_distance(dx, dy) / (16 * UNIT);
    for (int k = 1; k < steps; ++k)
        if (probe_place(w, p, x + dx / steps * k, y + dy / steps * k, floor, true, bar) == PASSAGE_CLOSED) return false;
    return true;
}

// Walks the next edges of the path in thought, some each tic: a subsector may be too narrow between two places where the
// player fits. False, and the edge marked, when one cannot be reached straight.
OFA_NOINLINE bool check_path(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    if (s.path_checked > s.path_length) s.path_checked = s.path_length;
    for (int n = 0; n < CHECKED_A_TIC && s.path_checked > 0 && s.path_checked > s.path_length - CHECKED_AHEAD; ++n) {
        const int i = s.path_checked - 1;
        s.path_checked = i;
        // Another way may be better; if there is none, sliding along a corner may do.
        if (s.edge_failures[s.path[i]] >= DOUBTED || is_edge_walkable(w, p, i)) continue;
        fail_edge(s, s.path[i], DOUBTED);
        return false;
    }
    return true;
}

}  // namespace doom
