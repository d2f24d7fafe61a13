// From a wish to what has to be done first: keys and triggers before what they open.
#pragma once

#include "search.h"

namespace doom {

OFA_FUNCTION void drop_goal(Script& s) {
    s.goal_kind = GOAL_NONE;
    s.path_length = 0;
}

OFA_FUNCTION void set_goal(Script& s, const Wish& wish) {
    const bool same = s.last_kind == wish.kind && s.goal == wish.goal;
    if (!same) s.goal_failures = s.goal_tics = s.goal_tries = 0;
    else if (s.goal_kind == GOAL_NONE) ++s.goal_tries;
    s.last_kind = wish.kind;
    s.goal_kind = wish.kind;
    s.goal = wish.goal;
    s.goal_node = wish.node;
    s.goal_x = wish.x;
    s.goal_y = wish.y;
    s.goal_limit = s.goal_tics + 350 + (distance_to(s, wish.node) & (TRAP_COST - 1)) / 4;
    s.goal_side = -1;
    s.wait_tics = s.off_path_tics = 0;
    take_way_to(s, wish.node);
    s.aim = s.path_length - 1;
    s.path_checked = s.stubborn ? 0 : s.path_length;
}

constexpr int DOUBTED = 1;                // failures of an edge that may not be walkable

// The edge could not be taken. Each time it takes longer until that is forgiven.
OFA_FUNCTION void fail_edge(Script& s, int edge) {
    uint8_t& failures = s.edge_failures[edge];
    failures = uint8_t(failures == 0 ? 2 : failures < EDGE_FAILURES ? EDGE_FAILURES : failures < 100 ? failures * 2 : failures);
}

// The way led off an edge: a few of those, and it counts as not to be taken.
OFA_FUNCTION void doubt_edge(Script& s, int edge) {
    if (s.edge_failures[edge] < EDGE_FAILURES) ++s.edge_failures[edge];
}

// Makes a wish the goal, or the first thing that has to be done for it. False when no way to it is known.
OFA_NOINLINE bool pursue(WorldBase& w, const Player& p, Wish wish) {
    Script& s = w.g.script;
    s.remedy_edge = NONE;
    while (distance_to(s, wish.node) != UNREACHED) {
        int from = NONE;
        const int edge = first_obstacle(s, wish.node, from);
        if (edge == NONE) {
            set_goal(s, wish);
            return true;
        }
        const int layer = layer_of(s, at(w.wad, w.level->nav_edges)[edge].to);
        if (!find_remedy(w, p, from, edge, layer * OBSTACLE, wish)) break;  // the level has changed since
        s.remedy_edge = edge;
    }
    return false;
}

// --- the way, in thought -----------------------------------------------------------------------------------------

constexpr int CHECKED_AHEAD = 40, CHECKED_A_TIC = 6;

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

// Point of an edge's opening nearest to (x, y) at which the player has room from its ends.
OFA_FUNCTION void nearest_crossing(const WorldBase& w, const NavEdge& e, Fixed x, Fixed y, Fixed& to_x, Fixed& to_y) {
    const Fixed x1 = e.x1 * UNIT, y1 = e.y1 * UNIT;
    const Fixed length = approximate_distance((e.x2 - e.x1) * UNIT, (e.y2 - e.y1) * UNIT);
    const Angle right = angle_to(w, x1, y1, e.x2 * UNIT, e.y2 * UNIT);
    const Fixed margin = 18 * UNIT;
    Fixed along = fixed_mul(x - x1, cosine_of(w, right)) + fixed_mul(y - y1, sine_of(w, right));
    if (along > length - margin) along = length - margin;
    if (along < margin) along = length < 2 * margin ? length / 2 : margin;
    to_x = x1 + fixed_mul(along, cosine_of(w, right));
    to_y = y1 + fixed_mul(along, sine_of(w, right));
}

OFA_FUNCTION bool is_passable_line(WorldBase& w, const Player& p, Fixed x, Fixed y, Fixed to_x, Fixed to_y, Fixed floor) {
    const Fixed dx = to_x - x, dy = to_y - y;
    const int steps = approximate_distance(dx, dy) / (16 * UNIT);
    int bar;
    for (int k = 1; k < steps; ++k)
        if (probe_place(w, p, x + dx / steps * k, y + dy / steps * k, floor, true, bar) == PASSAGE_CLOSED) return false;
    return true;
}

OFA_FUNCTION bool is_edge_walkable(WorldBase& w, const Player& p, int i) {
    const Script& s = w.g.script;
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavEdge& e = edges[s.path[i]];
    Fixed x, y, to_x, to_y;
    int node;
    way_point(w, m, i, x, y, node);
    if (i + 1 < s.path_length && edges[s.path[i + 1]].kind == NAV_TELEPORT) return true;
    // Who comes off a ledge is still up there at first.
    Fixed floor = reach_now(w.g, w.subsectors[node].sector).highest;
    const Fixed before = i + 2 < s.path_length ? gap_of(w.g, w.subsectors[edges[s.path[i + 2]].to].sector).floor : m.z;
    if (before > floor) floor = before;
    if (is_passable_line(w, p, x, y, e.x * UNIT, e.y * UNIT, floor)) return true;
    nearest_crossing(w, e, x, y, to_x, to_y);
    return is_passable_line(w, p, x, y, to_x, to_y, floor);
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
        s.edge_failures[s.path[i]] = DOUBTED;
        return false;
    }
    return true;
}

}  // namespace doom
