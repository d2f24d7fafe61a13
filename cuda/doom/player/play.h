// A tic of a scripted player: look, choose, walk, fight. Shared by all behaviours; what they differ in is their Character
// and the function that chooses goals.
#pragma once

#include "post.h"

namespace doom {

constexpr int REPLAN_TICS = 35 * 6, MOST_GOAL_TRIES = 5, WEAK_HEALTH = 40;

// A level begins. What did not work in it before is remembered over a death.
OFA_FUNCTION void forget_level(Game& g) {
    Script& s = g.script;
    if (s.level != g.level) {
        memset(s.edge_failures, 0, sizeof s.edge_failures);
        s.stay_tics = s.idle_tics = 0;
        s.despair = s.stubborn = 0;
    }
    s.level = g.level;
    drop_goal(s);
    s.searching = s.search_wanted = 0;
    s.off_path_tics = s.wait_tics = s.rest_tics = s.use_tics = s.goal_failures = s.goal_tries = 0;
    s.last_kind = GOAL_NONE;
    s.evade_tics = s.strafe_tics = s.plan_tics = s.watch_tics = s.posts = s.advances = 0;
    s.threat = s.brawl_tics = 0;
    s.remedy_edge = s.remedy_line = NONE;
    s.sectors_seen = 0;
    for (int i = 0; i < g.n_sectors; ++i) s.sectors_seen += g.sectors[i].seen;
    forget_progress(s);
    s.enemy = s.spared = NONE;
    s.enemy_tics = s.peace_tics = s.n_avoided_items = 0;
    s.random_ties = s.random;
    memset(s.sector_failures, 0, sizeof s.sector_failures);
    memset(s.line_uses, 0, sizeof s.line_uses);
    for (SectorReach& r : s.reach) r.search = 0;
    s.search_number = 0;
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
    int bar;
    for (uint32_t i = 0; i < here.n_edges; ++i) {
        const NavEdge& e = at(w.wad, w.level->nav_edges)[here.first_edge + i];
        const int dx = nodes[e.to].x - (m.x >> 16), dy = nodes[e.to].y - (m.y >> 16);
        if (dx * dx + dy * dy >= 64 * 64 || w.g.sectors[w.subsectors[e.to].sector].seen) continue;
        if (e.kind != NAV_TELEPORT && passage(w, p, m.subsector, e, bar) == PASSAGE_FREE)
            mark_seen(w.g, w.subsectors[e.to].sector);
    }
}

// Nothing left to do: forgive what went wrong and begin again from elsewhere.
template <class ChooseAny>
OFA_FUNCTION void despair(WorldBase& w, ChooseAny choose_any) {
    Script& s = w.g.script;
    s.stubborn = 1;
    s.despair ^= 1;
    for (uint8_t& failures : s.sector_failures) failures /= 2;
    for (uint8_t& failures : s.edge_failures) failures /= 2;
    for (uint8_t& uses : s.line_uses) uses /= 2;
    if (!choose_any()) s.wander_tics = WANDER_TICS / 4;
}

// Keeps a search going while there is no goal, or a plan is old. `choose()` makes one from what was found.
template <class Choose>
OFA_FUNCTION void plan(WorldBase& w, const Player& p, Choose choose) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    ++s.plan_tics;
    if (!s.searching) {
        const bool old = s.plan_tics > REPLAN_TICS && s.path_length > 0;
        if (s.goal_kind != GOAL_NONE && !old && !s.search_wanted) return;
        begin_search(w, m.subsector);
    }
    if (!advance_search(w, p)) return;
    s.plan_tics = s.search_wanted = 0;
    const GoalKind before = s.goal_kind;
    const bool found = (s.random_places > 0 && go_anywhere(w, p)) || choose();
    s.stubborn = 0;
    if (!found && before == GOAL_NONE) despair(w, [&] { return go_anywhere(w, p); });
}

// The legs' part: along the path, or what is to be done at its end.
OFA_FUNCTION void walk(WorldBase& w, const Player& p, Intent& in) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    if (s.goal_kind != GOAL_NONE && !is_goal_valid(w.g)) drop_goal(s);
    if (s.goal_kind != GOAL_NONE && (++s.goal_tics > s.goal_limit || s.goal_tries > MOST_GOAL_TRIES)) give_goal_up(w);
    if (s.goal_kind != GOAL_NONE && !keep_to_path(w, m.subsector)) {
        doubt_edge(s, s.path[s.path_length - 1]);
        drop_goal(s);
    }
    // A path that was cut off ends short of the goal.
    if (s.goal_kind != GOAL_NONE && s.path_length == 0 && m.subsector != s.goal_node && ++s.off_path_tics > OFF_PATH_TICS)
        drop_goal(s);
    if (s.goal_kind == GOAL_NONE) return;
    if (!check_path(w, p)) s.search_wanted = 1;
    const int waits = s.wait_tics;
    if (is_at_post(s, m)) keep_watch(s, m, in);
    else if (s.path_length > 0) follow_path(w, p, in);
    else finish_goal(w, p, in);
    s.waiting = s.wait_tics > waits;
}

// Walks off in some direction, to get free.
OFA_FUNCTION void stray(WorldBase& w, Intent& in) {
    Script& s = w.g.script;
    --s.dodge_tics;
    if (s.wander_tics > 0) --s.wander_tics;
    in.face = s.dodge_angle;
    move_along(w, in, s.dodge_angle, RUN_SPEED);
    press_use(s, in);
    excuse_standing(s);
}

// Whether the player is on its way to something that it needs to live on.
OFA_FUNCTION bool is_seeking_help(const Game& g, const Player& p) {
    const Script& s = g.script;
    return p.health < WEAK_HEALTH && s.goal_kind == GOAL_ITEM && heals(g.mobjs[s.goal].type);
}

// A wound makes the player think again about where to go.
OFA_FUNCTION void note_health(Script& s, const Player& p) {
    if (p.health < WEAK_HEALTH && s.health >= WEAK_HEALTH) s.search_wanted = 1;
    s.health = p.health;
}

// Whether the player stops for an enemy it fights.
OFA_FUNCTION bool stands_for(const WorldBase& w, const Player& p, const Mobj& enemy, Fixed distance) {
    const Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const Character& character = character_of(w.g);
    if (is_seeking_help(w.g, p) || is_hurt_by(w.g, p, m.sector)) return false;
    if ((s.brawl_tics > BRAWL_TICS && !character.settled) || distance > character.stand_range) return false;
    if (distance < CLOSE_RANGE) return true;
    if (enemy.target != p.mobj) return false;
    return !character.single_minded || is_within(angle_towards(w, m, enemy.x, enemy.y), s.heading, AHEAD_ARC);
}

// The arms' part, and the legs' where the character stands for a fight. True when it does.
OFA_FUNCTION bool fight(WorldBase& w, const Player& p, Intent& in) {
    const Script& s = w.g.script;
    const Character& character = character_of(w.g);
    if (s.enemy == NONE) return false;
    const Mobj &m = w.g.mobjs[p.mobj], &enemy = w.g.mobjs[s.enemy];
    const Fixed distance = distance_between(m, enemy);
    if (distance > character.fire_range) return false;
    const bool by_hand = character.by_hand || is_hand_weapon(weapon_for(w, p, enemy, distance));
    if (!stands_for(w, p, enemy, distance) || (by_hand && distance > CLOSE_RANGE * 2)) {
        if (!in.busy) shoot_at(w, p, in, enemy, by_hand);
        return false;
    }
    in = stand_still(m);
    shoot_at(w, p, in, enemy, by_hand);
    if (by_hand) run_to(w, in, m, enemy.x, enemy.y);
    else dance(w, p, in, enemy);
    return true;
}

template <class Choose>
OFA_FUNCTION Intent play_level(WorldBase& w, const Player& p, Choose choose) {
    Script& s = w.g.script;
    const Character& character = character_of(w.g);
    const Mobj& m = w.g.mobjs[p.mobj];
    Intent in = stand_still(m);
    if (s.use_tics > 0) --s.use_tics;
    mark_surroundings(w, p);
    note_progress(w, p);
    note_place(s, m);
    note_health(s, p);
    if (s.brawl_tics == BRAWL_TICS + 1 && !character.settled && (s.enemy != NONE || s.idle_tics > BRAWL_TICS)) {
        if (s.enemy == NONE) abandon_goal(w);
        s.random_places = 1;               // on with it somewhere else
        drop_goal(s);
    }
    if (character.fire_range > 0) watch_for_enemies(w, p);
    s.waiting = 1;
    plan(w, p, choose);
    if (s.dodge_tics == 0 && s.wander_tics > 0) dodge(s, any_angle(s), 15 + script_random(s) % 25);
    if (s.dodge_tics > 0) {
        s.waiting = 0;
        stray(w, in);
        fight(w, p, in);
        return in;
    }
    if (fight(w, p, in)) {
        evade(w, p, in);
        excuse_standing(s);
        return in;
    }
    if (s.rest_tics > 0) {
        --s.rest_tics;
        excuse_standing(s);
        return in;
    }
    in = stand_still(m);
    walk(w, p, in);
    if (in.moving) s.heading = angle_to(w, 0, 0, in.vx, in.vy);
    fight(w, p, in);
    if (in.moving && !in.busy) evade(w, p, in);
    watch_pushing(w, m, in.moving);
    return in;
}

// Between levels and after a death a button leads on.
OFA_FUNCTION bool press_on(const Game& g, const Player& p, TicCommand& c) {
    if (g.mode != MODE_LEVEL) {
        if (g.intermission.tics % 70 >= 64 || g.intermission.finale_tics % 70 >= 64) c.buttons = BUTTON_USE;
        return true;
    }
    if (p.mode == PLAYER_ALIVE) return false;
    if (g.level_tics % 70 >= 64) c.buttons = BUTTON_USE;
    return true;
}

}  // namespace doom
