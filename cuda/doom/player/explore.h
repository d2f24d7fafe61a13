// explore: visits sectors not yet seen, opens doors, rides lifts, presses switches, collects, and leaves in the end.
#pragma once

#include "fight.h"
#include "goals.h"
#include "progress.h"

namespace doom {

constexpr int SAMPLE_TICS = 21, WAIT_LIMIT = 35 * 12, USE_PAUSE = 10;
constexpr Fixed STUCK_DISTANCE = 12 * UNIT, USE_DISTANCE = 44 * UNIT, ARRIVED_DISTANCE = 20 * UNIT;
constexpr int32_t USE_ARC = int32_t(ANGLE_45 / 4);

// A level begins. What did not work in it before is remembered over a death.
OFA_FUNCTION void forget_level(Game& g) {
    Script& s = g.script;
    if (s.level != g.level) {
        memset(s.edge_failures, 0, sizeof s.edge_failures);
        s.stay_tics = s.idle_tics = 0;
    }
    s.level = g.level;
    s.goal_kind = GOAL_NONE;
    s.path_length = s.off_path_tics = s.wait_tics = s.rest_tics = s.use_tics = 0;
    s.despair = s.goal_failures = 0;
    s.sample_tics = s.moving_tics = 0;
    s.sectors_seen = 0;
    for (int i = 0; i < g.n_sectors; ++i) s.sectors_seen += g.sectors[i].seen;
    forget_progress(s);
    s.enemy = NONE;
    s.enemy_tics = s.peace_tics = s.n_avoided_items = 0;
    memset(s.sector_failures, 0, sizeof s.sector_failures);
    memset(s.line_uses, 0, sizeof s.line_uses);
}

OFA_FUNCTION void mark_seen(Game& g, int sector) {
    if (g.sectors[sector].seen) return;
    g.sectors[sector].seen = 1;
    ++g.script.sectors_seen;
}

// The sector stood in, and neighbours whose middle is within two steps.
OFA_FUNCTION void mark_surroundings(WorldBase& w, const Player& p) {
    const Mobj& m = w.g.mobjs[p.mobj];
    mark_seen(w.g, m.sector);
    if (m.subsector >= n_nav_nodes(w)) return;
    const NavNode* nodes = at(w.wad, w.level->nav_nodes);
    const NavNode& here = nodes[m.subsector];
    for (uint32_t i = 0; i < here.n_edges; ++i) {
        const NavEdge& e = at(w.wad, w.level->nav_edges)[here.first_edge + i];
        if (e.kind == NAV_TELEPORT || passage(w, p, m.subsector, e) != PASSAGE_FREE) continue;
        const int dx = nodes[e.to].x - (m.x >> 16), dy = nodes[e.to].y - (m.y >> 16);
        if (dx * dx + dy * dy < 64 * 64) mark_seen(w.g, w.subsectors[e.to].sector);
    }
}

// Presses use now and then, as the key has to be let go in between.
OFA_FUNCTION void press_use(Script& s, TicCommand& c) {
    if (s.use_tics > 0) return;
    c.buttons |= BUTTON_USE;
    s.use_tics = USE_PAUSE;
}

// Faces a point from near by and presses use on what is there.
OFA_FUNCTION void use_at(const WorldBase& w, TicCommand& c, const Mobj& m, Fixed x, Fixed y) {
    if (approximate_distance(x - m.x, y - m.y) > USE_DISTANCE) run_to(w, c, m, x, y);
    else stand(w, c, m);
    const int32_t left = turn_towards(c, m.angle, angle_to(w, m.x, m.y, x, y));
    if (left > -USE_ARC && left < USE_ARC) press_use(w.g.script, c);
}

// Drops edges of the path that lie behind; true while the player is on it.
OFA_FUNCTION bool keep_to_path(const WorldBase& w, int node) {
    Script& s = w.g.script;
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    for (int i = s.path_length - 1; i >= 0 && i >= s.path_length - 12; --i) {
        if (edges[s.path[i]].to != node) continue;
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
    return ++s.off_path_tics < 24;
}

// Waits before (or on) something that moves.
OFA_FUNCTION void wait_for_passage(const WorldBase& w, TicCommand& c, const Mobj& m, const NavEdge& e) {
    const Fixed x = e.x * UNIT, y = e.y * UNIT;
    Script& s = w.g.script;
    if (++s.wait_tics > WAIT_LIMIT) {
        fail_next_edge(w);
        return;
    }
    turn_towards(c, m.angle, angle_to(w, m.x, m.y, x, y));
    const bool riding = w.g.sectors[m.sector].mover != NONE;
    const NavNode& middle = at(w.wad, w.level->nav_nodes)[m.subsector];
    if (riding && w.subsectors[e.to].sector != m.sector) run_to(w, c, m, middle.x * UNIT, middle.y * UNIT);
    else if (approximate_distance(x - m.x, y - m.y) > 48 * UNIT) run_to(w, c, m, x, y);
    else stand(w, c, m);
}

OFA_FUNCTION bool is_opening(const Game& g, int sector) {
    const int mover = g.sectors[sector].mover;
    return mover != NONE && g.movers[mover].direction >= 0;
}

// Before a shut door may be a frame too thin to stand in: uses doors of the next edges from some way off.
OFA_FUNCTION bool use_door_ahead(WorldBase& w, const Player& p, TicCommand& c) {
    const Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    for (int i = s.path_length - 2; i >= 0 && i >= s.path_length - 4; --i) {
        const NavEdge& e = edges[s.path[i]];
        if (approximate_distance(e.x * UNIT - m.x, e.y * UNIT - m.y) > 72 * UNIT) return false;
        if (!(e.flags & NAV_DOOR)) continue;
        const Passage how = passage(w, p, edges[s.path[i + 1]].to, e);
        if (how == PASSAGE_FREE || how == PASSAGE_CLOSED) continue;
        if (how == PASSAGE_WAIT && is_opening(w.g, w.subsectors[e.to].sector)) {
            stand(w, c, m);
            turn_towards(c, m.angle, angle_to(w, m.x, m.y, e.x * UNIT, e.y * UNIT));
        } else {
            use_at(w, c, m, e.x * UNIT, e.y * UNIT);
        }
        return true;
    }
    return false;
}

// Moves the aim from the opening's middle to a place before it, until the player is in line, and then behind it.
OFA_FUNCTION void aim_through(const WorldBase& w, const Mobj& m, const NavEdge& e, Fixed& x, Fixed& y) {
    const Angle right = angle_to(w, e.x1 * UNIT, e.y1 * UNIT, e.x2 * UNIT, e.y2 * UNIT);
    const Angle ahead = right + ANGLE_90;
    const Fixed dx = m.x - x, dy = m.y - y;
    const Fixed before = -(fixed_mul(dx, cosine_of(w, ahead)) + fixed_mul(dy, sine_of(w, ahead)));
    const Fixed aside = magnitude(fixed_mul(dx, cosine_of(w, right)) + fixed_mul(dy, sine_of(w, right)));
    const Fixed half = approximate_distance(e.x2 - e.x1, e.y2 - e.y1) * (UNIT / 2);
    const Fixed tolerance = half > 48 * UNIT ? half - 40 * UNIT : 8 * UNIT;
    if (before > 40 * UNIT || (aside > tolerance && before > 0)) {
        x -= 24 * cosine_of(w, ahead);
        y -= 24 * sine_of(w, ahead);
    } else {
        x += 40 * cosine_of(w, ahead);
        y += 40 * sine_of(w, ahead);
    }
}

// Moves the aim sideways when something solid stands between it and the player.
OFA_FUNCTION void step_around(WorldBase& w, const Player& p, Fixed& x, Fixed& y) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Fixed far = approximate_distance(x - m.x, y - m.y);
    const Angle ahead = angle_to(w, m.x, m.y, x, y);
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

// Whether one of the next steps becomes possible by itself: pushing against it is waiting.
OFA_FUNCTION bool is_way_coming(WorldBase& w, const Player& p) {
    const Script& s = w.g.script;
    const NavEdge* edges = at(w.wad, w.level->nav_edges);
    for (int i = s.path_length - 2; i >= 0 && i >= s.path_length - 3; --i)
        if (passage(w, p, edges[s.path[i + 1]].to, edges[s.path[i]]) == PASSAGE_WAIT) return true;
    return false;
}

// One step along the path. Sets `moving` when the player means to get on.
OFA_FUNCTION void follow_path(WorldBase& w, const Player& p, TicCommand& c, bool& moving) {
    Game& g = w.g;
    Script& s = g.script;
    const Mobj& m = g.mobjs[p.mobj];
    const NavEdge& e = at(w.wad, w.level->nav_edges)[s.path[s.path_length - 1]];
    Fixed x = e.x * UNIT, y = e.y * UNIT;
    const NavNode& here = at(w.wad, w.level->nav_nodes)[m.subsector];
    const int next = s.path[s.path_length - 1];
    const bool at_edge = next >= int(here.first_edge) && next < int(here.first_edge + here.n_edges);
    if (at_edge) {
        Passage how = passage(w, p, m.subsector, e);
        const Sector& beyond = g.sectors[w.subsectors[e.to].sector];
        if (how == PASSAGE_CLOSED && e.kind == NAV_OPEN && beyond.floor_height - m.z <= STEP_HEIGHT &&
            beyond.ceiling_height - m.z >= BODY_HEIGHT)
            how = PASSAGE_FREE;            // across a narrow strip
        if (how == PASSAGE_CLOSED) {
            fail_next_edge(w);
            return;
        }
        if (how == PASSAGE_DOOR) {
            if (++s.wait_tics > WAIT_LIMIT) fail_next_edge(w);
            else use_at(w, c, m, x, y);
            return;
        }
        if (how == PASSAGE_WAIT) {
            const int there = w.subsectors[e.to].sector;
            if ((e.flags & NAV_DOOR) && !is_opening(g, there)) use_at(w, c, m, x, y);
            else wait_for_passage(w, c, m, e);
            return;
        }
    }
    if (use_door_ahead(w, p, c)) return;
    const bool halted = approximate_distance(m.momx, m.momy) < UNIT;
    const NavEdge* aim = &e;
    if (halted && s.path_length > 1 && approximate_distance(x - m.x, y - m.y) < ARRIVED_DISTANCE) {
        // At the edge, but the opening behind it is somewhat to the side.
        aim = &at(w.wad, w.level->nav_edges)[s.path[s.path_length - 2]];
        x = aim->x * UNIT;
        y = aim->y * UNIT;
    }
    aim_through(w, m, *aim, x, y);
    step_around(w, p, x, y);
    turn_towards(c, m.angle, angle_to(w, m.x, m.y, x, y));
    run_to(w, c, m, x, y);
    moving = true;
    if (!halted || !is_way_coming(w, p)) return;
    moving = false;
    if (++s.wait_tics > WAIT_LIMIT) fail_next_edge(w);
}

// At the place of a trigger: does what sets it off. True when that is done.
OFA_FUNCTION bool operate_trigger(WorldBase& w, const Player& p, TicCommand& c, bool& moving) {
    Game& g = w.g;
    Script& s = g.script;
    const Mobj& m = g.mobjs[p.mobj];
    const NavTrigger& t = at(w.wad, w.level->nav_triggers)[s.goal];
    const MapLine& l = w.lines[t.line];
    const Fixed x = t.x * UNIT, y = t.y * UNIT;
    const Angle normal = angle_to(w, 0, 0, l.dx, l.dy) - ANGLE_90;   // to the front
    if (t.use == NAV_BY_CROSSING) {
        const int side = side_of_line(w, m.x, m.y, l);
        if (s.goal_side < 0) s.goal_side = side;
        if (side != s.goal_side) return true;
        const Fixed reach = side ? 40 : -40;
        const bool close = approximate_distance(x - m.x, y - m.y) < 24 * UNIT;
        const Fixed to_x = close ? x + reach * cosine_of(w, normal) : x;
        const Fixed to_y = close ? y + reach * sine_of(w, normal) : y;
        turn_towards(c, m.angle, angle_to(w, m.x, m.y, to_x, to_y));
        run_to(w, c, m, to_x, to_y);
        moving = true;
        return false;
    }
    if (approximate_distance(x - m.x, y - m.y) > 16 * UNIT && s.goal_tics < s.goal_limit - 100) {
        turn_towards(c, m.angle, angle_to(w, m.x, m.y, x, y));
        run_to(w, c, m, x, y);
        moving = true;
        return false;
    }
    stand(w, c, m);
    const int32_t left = turn_towards(c, m.angle, normal + ANGLE_180);
    if (left < -USE_ARC || left > USE_ARC) return false;
    if (t.use == NAV_BY_SHOOTING) {
        c.buttons |= BUTTON_FIRE;
        return ++s.wait_tics > 70;
    }
    if (s.use_tics > 0) return false;
    press_use(s, c);
    return true;
}

// At the goal, or walking the last steps to it inside its subsector.
OFA_FUNCTION void pursue_goal(WorldBase& w, const Player& p, TicCommand& c, bool& moving) {
    Game& g = w.g;
    Script& s = g.script;
    const Mobj& m = g.mobjs[p.mobj];
    const Fixed x = s.goal_x * UNIT, y = s.goal_y * UNIT;
    switch (s.goal_kind) {
        case GOAL_SECTOR:
            if (g.sectors[s.goal].seen) s.goal_kind = GOAL_NONE;
            break;
        case GOAL_ITEM:
            if (is_removed(g, s.goal) || !(g.mobjs[s.goal].flags & MF_SPECIAL)) s.goal_kind = GOAL_NONE;
            else if (approximate_distance(x - m.x, y - m.y) < 4 * UNIT) give_goal_up(w);
            break;
        case GOAL_PLACE: s.goal_kind = GOAL_NONE; break;
        case GOAL_TRIGGER:
            if (operate_trigger(w, p, c, moving)) {
                give_goal_up(w);           // counts the use
                s.rest_tics = 18;
            }
            return;
        default: break;
    }
    if (s.goal_kind == GOAL_NONE) return;
    turn_towards(c, m.angle, angle_to(w, m.x, m.y, x, y));
    run_to(w, c, m, x, y);
    moving = true;
}

// Breaks out of a push against a wall at once: another direction for a moment, then another approach.
OFA_FUNCTION void watch_progress(WorldBase& w, const Mobj& m, bool moving) {
    Script& s = w.g.script;
    s.moving_tics += moving && w.g.sectors[m.sector].mover == NONE;
    if (++s.sample_tics < SAMPLE_TICS) return;
    const Fixed moved = approximate_distance(wrap_sub(m.x, s.sample_x), wrap_sub(m.y, s.sample_y));
    if (s.moving_tics > SAMPLE_TICS * 3 / 4 && moved < STUCK_DISTANCE) {
        dodge(s, any_angle(s), 10 + script_random(s) % 20);
        if (s.path_length > 0) fail_next_edge(w);
        else give_goal_up(w);
    }
    s.sample_x = m.x;
    s.sample_y = m.y;
    s.sample_tics = s.moving_tics = 0;
}

OFA_FUNCTION TicCommand explore_level(WorldBase& w, const Player& p) {
    Game& g = w.g;
    Script& s = g.script;
    const Mobj& m = g.mobjs[p.mobj];
    TicCommand c = {};
    if (s.use_tics > 0) --s.use_tics;
    mark_surroundings(w, p);
    note_progress(w, p);
    watch_for_enemies(w, p);
    s.waiting = 1;
    if (fight(w, p, c)) {
        s.sample_tics = SAMPLE_TICS;
        s.moving_tics = 0;
        return c;
    }
    if (s.dodge_tics == 0 && s.wander_tics > 0) dodge(s, any_angle(s), 15 + script_random(s) % 25);
    if (s.dodge_tics > 0) {
        s.waiting = 0;
        --s.dodge_tics;
        if (s.wander_tics > 0) --s.wander_tics;
        turn_towards(c, m.angle, s.dodge_angle);
        move_with_velocity(w, c, m, fixed_mul(RUN_SPEED, cosine_of(w, s.dodge_angle)),
                           fixed_mul(RUN_SPEED, sine_of(w, s.dodge_angle)));
        press_use(s, c);
        s.sample_tics = SAMPLE_TICS;
        s.moving_tics = 0;
        return c;
    }
    if (s.rest_tics > 0) {
        --s.rest_tics;
        s.sample_tics = SAMPLE_TICS;
        s.moving_tics = 0;
        stand(w, c, m);
        return c;
    }
    if (s.goal_kind == GOAL_SECTOR && g.sectors[s.goal].seen) s.goal_kind = GOAL_NONE;
    if (s.goal_kind != GOAL_NONE && ++s.goal_tics > s.goal_limit) give_goal_up(w);
    if (s.goal_kind != GOAL_NONE && !keep_to_path(w, m.subsector)) s.goal_kind = GOAL_NONE;
    // A path that was cut off ends short of the goal.
    if (s.goal_kind != GOAL_NONE && s.path_length == 0 && m.subsector != s.goal_node && ++s.off_path_tics > 24)
        s.goal_kind = GOAL_NONE;
    if (s.goal_kind == GOAL_NONE && !choose_goal(w, p)) {
        s.wander_tics = WANDER_TICS / 4;   // somewhere else there may be something to do
        s.waiting = 0;
        return c;
    }
    bool moving = false;
    const int waits = s.wait_tics;
    if (s.path_length > 0) follow_path(w, p, c, moving);
    else pursue_goal(w, p, c, moving);
    s.waiting = s.wait_tics > waits;
    watch_progress(w, m, moving);
    return c;
}

OFA_FUNCTION TicCommand explore(WorldBase& w, const Player& p) {
    Game& g = w.g;
    Script& s = g.script;
    TicCommand c = {};
    if (g.mode != MODE_LEVEL) {
        if (g.intermission.tics % 70 >= 64 || g.intermission.finale_tics % 70 >= 64) c.buttons = BUTTON_USE;
        return c;
    }
    if (p.mode != PLAYER_ALIVE) {
        if (g.level_tics % 70 >= 64) c.buttons = BUTTON_USE;
        return c;
    }
    if (s.level != g.level || g.level_tics < s.level_tics) forget_level(g);
    s.level_tics = g.level_tics;
    return explore_level(w, p);
}

}  // namespace doom
