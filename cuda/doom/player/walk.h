// Following a path: through openings and doors, onto lifts, around things, and what to do at its end.
#pragma once

#include "plan.h"

namespace doom {

constexpr int WAIT_LIMIT = 35 * 12, USE_PAUSE = 10, OFF_PATH_TICS = 24, OPERATED_REST = 6, MAX_AHEAD = 8;
constexpr Fixed USE_DISTANCE = 44 * UNIT, ARRIVED_DISTANCE = 20 * UNIT;
constexpr int32_t USE_ARC = int32_t(ANGLE_45 / 4);

OFA_FUNCTION const NavEdge& path_edge(const WorldBase& w, int i) {
    return at(w.wad, w.level->nav_edges)[w.g.script.path[i]];
}

OFA_FUNCTION const NavEdge& next_edge(const WorldBase& w) { return path_edge(w, w.g.script.path_length - 1); }

// The next edge cannot be taken. After three of those another goal is better.
OFA_FUNCTION void fail_next_edge(const WorldBase& w);
OFA_FUNCTION void give_goal_up(const WorldBase& w);

// Presses use now and then, as the key has to be let go in between.
OFA_FUNCTION void press_use(Script& s, Intent& in) {
    if (s.use_tics > 0) return;
    in.buttons |= BUTTON_USE;
    s.use_tics = USE_PAUSE;
}

// --- where to aim --------------------------------------------------------------------------------------------------

constexpr Fixed SWEEP_STEP = 12 * UNIT, LONGEST_SWEEP = 384 * UNIT;

// What a straight walk may meet: floors no lower than the path's, and none that hurts unless the path has one.
struct Terrain {
    Fixed lowest;
    bool may_hurt;
};

OFA_FUNCTION void add_to_terrain(const WorldBase& w, Terrain& t, int sector) {
    const Fixed floor = w.g.sectors[sector].floor_height;
    if (floor < t.lowest) t.lowest = floor;
    t.may_hurt |= hurts(w.g, sector);
}

// Whether the player can walk straight from one point to another, from a floor height on.
OFA_FUNCTION bool is_walk_clear(WorldBase& w, const Player& p, Fixed x, Fixed y, Fixed to_x, Fixed to_y, Fixed floor,
                                const Terrain& terrain) {
    const Fixed dx = wrap_sub(to_x, x), dy = wrap_sub(to_y, y);
    const Fixed length = approximate_distance(dx, dy);
    if (length < 0 || length > LONGEST_SWEEP) return false;
    const int steps = length / SWEEP_STEP + 1;
    for (int k = 1; k <= steps; ++k) {
        const Fixed at_x = x + dx / steps * k, at_y = y + dy / steps * k;
        const int sector = w.subsectors[subsector_at(w, at_x, at_y)].sector;
        const Gap gap = gap_of(w.g, sector);
        if (gap.floor < terrain.lowest - 8 * UNIT || (hurts(w.g, sector) && !terrain.may_hurt)) return false;
        if (wrap_sub(gap.floor, floor) > STEP_HEIGHT || wrap_sub(gap.ceiling, gap.floor) < BODY_HEIGHT) return false;
        int bar;
        if (probe_place(w, p, at_x, at_y, floor, true, bar) != PASSAGE_FREE) return false;
        floor = gap.floor;
    }
    return true;
}

// A point near by from which (x, y) can be walked to; false if there is none.
OFA_FUNCTION bool find_detour(WorldBase& w, const Player& p, Fixed& x, Fixed& y, const Terrain& terrain) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Angle ahead = angle_towards(w, m, x, y);
    OFA_TABLE Angle turns[6] = {ANGLE_45, 0u - ANGLE_45, ANGLE_90, 0u - ANGLE_90, ANGLE_90 + ANGLE_45, ANGLE_180 + ANGLE_45};
    for (int i = 0; i < 12; ++i) {
        const Angle angle = ahead + turns[i / 2];
        const int length = i & 1 ? 56 : 28;
        const Fixed to_x = m.x + length * cosine_of(w, angle), to_y = m.y + length * sine_of(w, angle);
        if (!is_walk_clear(w, p, m.x, m.y, to_x, to_y, m.floorz, terrain)) continue;
        if (!is_walk_clear(w, p, to_x, to_y, x, y, m.floorz, terrain)) continue;
        x = to_x;
        y = to_y;
        return true;
    }
    return false;
}

// Moves the aim sideways when something solid stands between it and the player.
OFA_FUNCTION void step_around(WorldBase& w, const Player& p, Fixed& x, Fixed& y) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Fixed far = distance_from(m, x, y);
    const Angle ahead = angle_towards(w, m, x, y);
    const Fixed box[4] = {m.y, m.y, m.x, m.x};
    for_blocks_around(w, box, 96 * UNIT, [&](int bx, int by) {
        return for_things_in_block(w, bx, by, [&](int index) {
            const Mobj& o = w.g.mobjs[index];
            if (index == p.mobj || !(o.flags & MF_SOLID)) return true;
            const Fixed dx = o.x - m.x, dy = o.y - m.y, reach = o.radius + m.radius;
            const Fixed along = fixed_mul(dx, cosine_of(w, ahead)) + fixed_mul(dy, sine_of(w, ahead));
            const Fixed left = fixed_mul(dy, cosine_of(w, ahead)) - fixed_mul(dx, sine_of(w, ahead));
            if (along <= 0 || along > 80 * UNIT || along > far || magnitude(left) > reach + reach / 4) return true;
            const Angle aside = ahead + (left > 0 ? ANGLE_270 : ANGLE_90);
            x = o.x + fixed_mul(reach + reach / 2, cosine_of(w, aside));
            y = o.y + fixed_mul(reach + reach / 2, sine_of(w, aside));
            return false;
        });
    });
}

// Walks to a point near by, around corners and things.
OFA_FUNCTION void walk_to(WorldBase& w, const Player& p, Intent& in, Fixed x, Fixed y) {
    const Mobj& m = w.g.mobjs[p.mobj];
    Terrain terrain = {m.floorz, hurts(w.g, m.sector)};
    add_to_terrain(w, terrain, w.subsectors[subsector_at(w, x, y)].sector);
    if (!is_walk_clear(w, p, m.x, m.y, x, y, m.floorz, terrain)) find_detour(w, p, x, y, terrain);
    step_around(w, p, x, y);
    run_to(w, in, m, x, y);
}

// --- doors, lifts and the path ------------------------------------------------------------------------------------

// Faces a point from near by and presses use on what is there.
OFA_FUNCTION void use_at(WorldBase& w, const Player& p, Intent& in, Fixed x, Fixed y) {
    const Mobj& m = w.g.mobjs[p.mobj];
    in.busy = 1;
    if (distance_from(m, x, y) > USE_DISTANCE) walk_to(w, p, in, x, y);
    face(w, in, m, x, y);
    if (is_facing(m, in.face, USE_ARC)) press_use(w.g.script, in);
}

// Drops edges of the path that lie behind; true while the player is on it.
OFA_FUNCTION bool keep_to_path(const WorldBase& w, int node) {
    Script& s = w.g.script;
    for (int i = s.path_length - 1; i >= 0 && i >= s.path_length - 12; --i) {
        if (path_edge(w, i).to != node) continue;
        for (int k = i; k < s.path_length; ++k) {
            if (s.path[k] != s.remedy_edge) continue;
            s.line_uses[s.remedy_line] = 0;        // it did help
            s.remedy_edge = NONE;
        }
        s.path_length = i;
        s.off_path_tics = s.wait_tics = 0;
        return true;
    }
    if (s.path_length == 0) return true;
    const int next = s.path[s.path_length - 1];
    const NavNode& here = at(w.wad, w.level->nav_nodes)[node];
    if (next >= int(here.first_edge) && next < int(here.first_edge + here.n_edges)) {
        s.off_path_tics = 0;
        return true;
    }
    return ++s.off_path_tics < OFF_PATH_TICS;
}

// Waits before (or on) something that moves.
OFA_FUNCTION void wait_for_passage(WorldBase& w, const Player& p, Intent& in, const NavEdge& e) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Fixed x = e.x * UNIT, y = e.y * UNIT;
    if (++w.g.script.wait_tics > WAIT_LIMIT) {
        fail_next_edge(w);
        return;
    }
    face(w, in, m, x, y);
    const bool riding = w.g.sectors[m.sector].mover != NONE;
    const NavNode& middle = at(w.wad, w.level->nav_nodes)[m.subsector];
    if (riding && w.subsectors[e.to].sector != m.sector) walk_to(w, p, in, middle.x * UNIT, middle.y * UNIT);
    else if (distance_from(m, x, y) > 48 * UNIT) walk_to(w, p, in, x, y);
}

OFA_FUNCTION bool is_opening(const Game& g, int sector) {
    const int mover = g.sectors[sector].mover;
    return mover != NONE && g.movers[mover].direction >= 0;
}

// Before a shut door may be a frame too thin to stand in: uses doors of the next edges from some way off.
OFA_FUNCTION bool use_door_ahead(WorldBase& w, const Player& p, Intent& in) {
    const Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    for (int i = s.path_length - 2; i >= 0 && i >= s.path_length - 4; --i) {
        const NavEdge& e = path_edge(w, i);
        if (distance_from(m, e.x * UNIT, e.y * UNIT) > 72 * UNIT) return false;
        if (!(e.flags & NAV_DOOR)) continue;
        int bar;
        const Passage how = passage(w, p, path_edge(w, i + 1).to, e, bar);
        if (how != PASSAGE_DOOR && how != PASSAGE_WAIT) continue;
        if (how == PASSAGE_WAIT && is_opening(w.g, w.subsectors[e.to].sector)) face(w, in, m, e.x * UNIT, e.y * UNIT);
        else use_at(w, p, in, e.x * UNIT, e.y * UNIT);
        return true;
    }
    return false;
}

// Whether an edge of the path can be walked through without a thought.
OFA_FUNCTION bool is_plain(WorldBase& w, const Player& p, int node, const NavEdge& e) {
    int bar;
    return e.kind != NAV_TELEPORT && passage(w, p, node, e, bar) == PASSAGE_FREE;
}

OFA_FUNCTION int node_before(const WorldBase& w, const Mobj& m, int i) {
    return i + 1 < w.g.script.path_length ? path_edge(w, i + 1).to : m.subsector;
}

// Terrain of the path up to and with edge i.
OFA_FUNCTION Terrain terrain_to(const WorldBase& w, const Mobj& m, int i) {
    Terrain t = {m.floorz, false};
    add_to_terrain(w, t, m.sector);
    for (int k = w.g.script.path_length - 1; k >= i && k >= 0; --k) add_to_terrain(w, t, w.subsectors[path_edge(w, k).to].sector);
    return t;
}

constexpr int BEYOND = 6;

// Whether one can walk straight to a point of an edge of the path, and a little beyond it.
OFA_FUNCTION bool is_crossing_clear(WorldBase& w, const Player& p, int i, Fixed x, Fixed y) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavEdge& e = path_edge(w, i);
    const Terrain terrain = terrain_to(w, m, i);
    if (is_plain(w, p, node_before(w, m, i), e)) {
        const Angle ahead = angle_to(w, e.x1 * UNIT, e.y1 * UNIT, e.x2 * UNIT, e.y2 * UNIT) + ANGLE_90;
        x += BEYOND * cosine_of(w, ahead);
        y += BEYOND * sine_of(w, ahead);
    }
    return is_walk_clear(w, p, m.x, m.y, x, y, m.floorz, terrain);
}

// Where to cross an edge of the path so that one can walk there straight: its best place, else its nearest.
OFA_FUNCTION bool find_crossing(WorldBase& w, const Player& p, int i, Fixed& x, Fixed& y) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavEdge& e = path_edge(w, i);
    x = e.x * UNIT;
    y = e.y * UNIT;
    if (is_crossing_clear(w, p, i, x, y)) return true;
    if (e.kind == NAV_TELEPORT) return false;
    nearest_crossing(w, e, m.x, m.y, x, y);
    return is_crossing_clear(w, p, i, x, y);
}

// Looks one edge farther along the path in each tic: Script::aim is the farthest that can be walked to straight.
OFA_FUNCTION bool look_ahead(WorldBase& w, const Player& p, Fixed& x, Fixed& y) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const int next = s.path_length - 1;
    if (s.aim > next || s.aim < 0 || s.aim < next - MAX_AHEAD) s.aim = next;
    if (!find_crossing(w, p, s.aim, x, y)) {
        if (s.aim == next) return false;
        s.aim = next;
        return find_crossing(w, p, next, x, y);
    }
    if (s.aim == 0 || s.aim <= next - MAX_AHEAD) return true;
    if (!is_plain(w, p, node_before(w, m, s.aim), path_edge(w, s.aim))) return true;
    Fixed farther_x, farther_y;
    if (!find_crossing(w, p, s.aim - 1, farther_x, farther_y)) return true;
    --s.aim;
    x = farther_x;
    y = farther_y;
    return true;
}

// Whether one of the next steps becomes possible by itself: pushing against it is waiting.
OFA_FUNCTION bool is_way_coming(WorldBase& w, const Player& p) {
    const Script& s = w.g.script;
    int bar;
    for (int i = s.path_length - 2; i >= 0 && i >= s.path_length - 3; --i)
        if (passage(w, p, path_edge(w, i + 1).to, path_edge(w, i), bar) == PASSAGE_WAIT) return true;
    return false;
}

// What has to be done before the next edge can be taken; false when it can be walked.
OFA_FUNCTION bool is_held_up(WorldBase& w, const Player& p, Intent& in, const NavEdge& e) {
    Game& g = w.g;
    Script& s = g.script;
    const Mobj& m = g.mobjs[p.mobj];
    int bar;
    const Passage how = passage(w, p, m.subsector, e, bar);
    const Sector& beyond = g.sectors[w.subsectors[e.to].sector];
    switch (how) {
        case PASSAGE_FREE: return false;
        case PASSAGE_DOOR:
            if (++s.wait_tics > WAIT_LIMIT) fail_next_edge(w);
            else use_at(w, p, in, e.x * UNIT, e.y * UNIT);
            return true;
        case PASSAGE_WAIT:
            if ((e.flags & NAV_DOOR) && !is_opening(g, w.subsectors[e.to].sector)) {
                ++s.wait_tics;
                use_at(w, p, in, e.x * UNIT, e.y * UNIT);
            } else {
                wait_for_passage(w, p, in, e);
            }
            return true;
        default: break;
    }
    // Across a narrow strip, or carried up by the edge of a lift: the feet are higher than this floor.
    if (e.kind != NAV_TELEPORT && wrap_sub(beyond.floor_height, m.z) <= STEP_HEIGHT &&
        wrap_sub(beyond.ceiling_height, m.z) >= BODY_HEIGHT)
        return false;
    fail_next_edge(w);
    return true;
}

// The point to walk to now.
OFA_FUNCTION void aim_point(WorldBase& w, const Player& p, Fixed& x, Fixed& y) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const bool clear = look_ahead(w, p, x, y);
    const NavEdge& e = path_edge(w, s.aim);
    if (clear) {
        if (s.aim < s.path_length - 1 || distance_from(m, x, y) >= ARRIVED_DISTANCE) return;
        // At the edge: through it.
        const Angle ahead = angle_to(w, e.x1 * UNIT, e.y1 * UNIT, e.x2 * UNIT, e.y2 * UNIT) + ANGLE_90;
        x += 32 * cosine_of(w, ahead);
        y += 32 * sine_of(w, ahead);
        return;
    }
    const Terrain terrain = terrain_to(w, m, s.aim);
    const Fixed near_x = x, near_y = y;
    x = e.x * UNIT;
    y = e.y * UNIT;
    if (find_detour(w, p, x, y, terrain)) return;
    x = near_x;
    y = near_y;
    if (find_detour(w, p, x, y, terrain)) return;
    x = e.x * UNIT;
    y = e.y * UNIT;
}

// One step along the path.
OFA_FUNCTION void follow_path(WorldBase& w, const Player& p, Intent& in) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavEdge& e = next_edge(w);
    const int next = s.path[s.path_length - 1];
    const NavNode& here = at(w.wad, w.level->nav_nodes)[m.subsector];
    if (next >= int(here.first_edge) && next < int(here.first_edge + here.n_edges) && is_held_up(w, p, in, e)) return;
    if (use_door_ahead(w, p, in)) return;
    const bool halted = approximate_distance(m.momx, m.momy) < UNIT;
    Fixed x, y;
    aim_point(w, p, x, y);
    step_around(w, p, x, y);
    face(w, in, m, x, y);
    run_to(w, in, m, x, y);
    in.moving = 1;
    if (!halted || !is_way_coming(w, p)) return;
    in.moving = 0;
    if (++s.wait_tics > WAIT_LIMIT) fail_next_edge(w);
}

// At the place of a trigger: does what sets it off. True when that is done.
OFA_FUNCTION bool operate_trigger(WorldBase& w, const Player& p, Intent& in) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavTrigger& t = at(w.wad, w.level->nav_triggers)[s.goal];
    const MapLine& l = w.lines[t.line];
    const Fixed x = t.x * UNIT, y = t.y * UNIT;
    const Angle normal = angle_to(w, 0, 0, l.dx, l.dy) - ANGLE_90;   // to the front
    if (w.g.lines[t.line].special == 0) return true;
    if (t.use == NAV_BY_CROSSING) {
        const int side = side_of_line(w, m.x, m.y, l);
        if (s.goal_side < 0) s.goal_side = side;
        if (side != s.goal_side) return true;
        const Fixed reach = side ? 40 : -40;
        const bool close = distance_from(m, x, y) < 24 * UNIT;
        const Fixed to_x = close ? x + reach * cosine_of(w, normal) : x;
        const Fixed to_y = close ? y + reach * sine_of(w, normal) : y;
        face(w, in, m, to_x, to_y);
        walk_to(w, p, in, to_x, to_y);
        in.moving = 1;
        return false;
    }
    in.busy = 1;
    if (distance_from(m, x, y) > 16 * UNIT && s.goal_tics < s.goal_limit - 100) {
        face(w, in, m, x, y);
        walk_to(w, p, in, x, y);
        in.moving = 1;
        return false;
    }
    in.face = normal + ANGLE_180;
    if (!is_facing(m, in.face, USE_ARC)) return false;
    if (t.use == NAV_BY_SHOOTING) {
        in.buttons |= BUTTON_FIRE;
        return ++s.wait_tics > 70;
    }
    if (s.use_tics > 0) return false;
    press_use(s, in);
    return true;
}

// At the goal, or walking the last steps to it inside its subsector.
OFA_FUNCTION void finish_goal(WorldBase& w, const Player& p, Intent& in) {
    Game& g = w.g;
    Script& s = g.script;
    const Mobj& m = g.mobjs[p.mobj];
    const Fixed x = s.goal_x * UNIT, y = s.goal_y * UNIT;
    switch (s.goal_kind) {
        case GOAL_ITEM:
            if (distance_from(m, x, y) < 4 * UNIT) give_goal_up(w);
            break;
        case GOAL_PLACE: s.goal_kind = GOAL_NONE; break;
        case GOAL_ENEMY: s.goal_kind = GOAL_NONE; break;
        case GOAL_TRIGGER:
            if (operate_trigger(w, p, in)) {
                s.remedy_line = at(w.wad, w.level->nav_triggers)[s.goal].line;
                give_goal_up(w);           // counts the use
                s.rest_tics = OPERATED_REST;
            }
            return;
        default: break;
    }
    if (s.goal_kind == GOAL_NONE) return;
    face(w, in, m, x, y);
    walk_to(w, p, in, x, y);
    in.moving = 1;
}

// Whether the goal is still worth going for.
OFA_FUNCTION bool is_goal_valid(const Game& g) {
    const Script& s = g.script;
    switch (s.goal_kind) {
        case GOAL_SECTOR: return !g.sectors[s.goal].seen;
        case GOAL_ITEM: return !is_removed(g, s.goal) && (g.mobjs[s.goal].flags & MF_SPECIAL);
        case GOAL_ENEMY: return !is_removed(g, s.goal) && is_enemy(g.mobjs[s.goal]);
        default: return true;
    }
}

}  // namespace doom
