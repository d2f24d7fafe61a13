// What a player can go for: items, what is new, exits, triggers, enemies, any place at all.
#pragma once

#include "walk.h"

namespace doom {

constexpr int FAILURES = 3;
constexpr int MOST_TRIES = 3;              // plans tried for one kind of goal before another kind is better

OFA_FUNCTION bool is_avoided(const Script& s, int item) {
    for (int i = 0; i < MAX_AVOIDED_ITEMS; ++i)
        if (i < s.n_avoided_items && s.avoided_items[i] == item) return true;
    return false;
}

OFA_FUNCTION void avoid_item(Script& s, int item) {
    s.avoided_items[s.n_avoided_items % MAX_AVOIDED_ITEMS] = item;
    ++s.n_avoided_items;
}

OFA_FUNCTION void give_goal_up(const WorldBase& w) {
    Script& s = w.g.script;
    if (s.goal_kind == GOAL_SECTOR && s.sector_failures[s.goal] < 255) ++s.sector_failures[s.goal];
    if (s.goal_kind == GOAL_ITEM || s.goal_kind == GOAL_ENEMY) avoid_item(s, s.goal);
    if (s.goal_kind == GOAL_TRIGGER) {
        const int line = at(w.wad, w.level->nav_triggers)[s.goal].line;
        if (s.line_uses[line] < 255) ++s.line_uses[line];
    }
    drop_goal(s);
    s.goal_failures = s.goal_tries = 0;
}

OFA_FUNCTION void fail_next_edge(const WorldBase& w) {
    Script& s = w.g.script;
    if (s.path_length > 0) fail_edge(s, s.path[s.path_length - 1]);
    if (++s.goal_failures >= 3) give_goal_up(w);
    else drop_goal(s);
}

// Gives the goal up for good, until failures are forgotten.
OFA_FUNCTION void abandon_goal(const WorldBase& w) {
    Script& s = w.g.script;
    if (s.goal_kind == GOAL_SECTOR && s.sector_failures[s.goal] < FAILURES) s.sector_failures[s.goal] = FAILURES - 1;
    give_goal_up(w);
}

// Everything is tried again. What looked too high may be passable after all.
OFA_FUNCTION void forget_failures(Script& s) {
    s.despair ^= 1;
    memset(s.sector_failures, 0, sizeof s.sector_failures);
    for (uint8_t& failures : s.edge_failures) failures /= 4;
    memset(s.line_uses, 0, sizeof s.line_uses);
    s.n_avoided_items = 0;
}

// --- kinds of goals --------------------------------------------------------------------------------------------------
// Each makes the best of its kind the goal; false when there is none.

// An item within its reach, Character::greed quarters of the usual. Keys only where they are on the way.
OFA_FUNCTION bool go_for_item(WorldBase& w, const Player& p) {
    const int greed = character_of(w.g).greed;
    Game& g = w.g;
    Script& s = g.script;
    Choice best = {{}, OBSTACLE};
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !(g.mobjs[node].flags & MF_SPECIAL)) continue;
        const int reach = reach_for_item(w, p, g.mobjs[node].type);
        if (reach == 0) continue;
        if (is_hurt_by(g, p, g.mobjs[node].sector) && reach != ANY_WAY && !heals(g.mobjs[node].type)) continue;
        const int far = reach == ANY_WAY ? ITEM_REACH * 2 : reach / 4 * greed;
        const Wish wish = item_wish(w, p, node);
        if (distance_to(s, wish.node) < far && !is_avoided(s, node)) consider(s, best, wish, 0);
    }
    return best.cost < OBSTACLE && pursue(w, p, best.wish);
}

OFA_FUNCTION bool go_for_key(WorldBase& w, const Player& p) {
    Game& g = w.g;
    Choice best = {{}, OBSTACLE};
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !(g.mobjs[node].flags & MF_SPECIAL)) continue;
        if (reach_for_item(w, p, g.mobjs[node].type) == ANY_WAY && !is_avoided(g.script, node))
            consider(g.script, best, item_wish(w, p, node), 0);
    }
    return best.cost < OBSTACLE && pursue(w, p, best.wish);
}

// The nearest sector not yet seen; `limit` is OBSTACLE for those that can be reached as things are.
OFA_FUNCTION bool go_somewhere_new(WorldBase& w, const Player& p, int limit, bool careful) {
    Script& s = w.g.script;
    const NavNode* nodes = at(w.wad, w.level->nav_nodes);
    for (int tries = 0; tries < MOST_TRIES; ++tries) {
        int best = NONE, least = limit;
        for (int node = 0; node < n_nav_nodes(w); ++node) {
            const int sector = w.subsectors[node].sector;
            if (s.distance[node] >= limit || w.g.sectors[sector].seen || s.sector_failures[sector] >= FAILURES) continue;
            if ((careful && hurts(w.g, sector)) || (nodes[node].flags & NAV_NARROW)) continue;
            const int cost = s.distance[node] + 1500 * s.sector_failures[sector];
            if (cost >= least) continue;
            least = cost;
            best = node;
        }
        if (best == NONE) return false;
        const int sector = w.subsectors[best].sector;
        if (pursue(w, p, place_wish(w, GOAL_SECTOR, sector, best))) return true;
        s.sector_failures[sector] = FAILURES;
    }
    return false;
}

// The exit, or the boss whose death is one, or a floor that ends the level.
OFA_FUNCTION bool go_for_exit(WorldBase& w, const Player& p, int limit) {
    Game& g = w.g;
    Script& s = g.script;
    const NavTrigger* triggers = at(w.wad, w.level->nav_triggers);
    Choice best = {{}, limit};
    const int first_of_sectors = at(w.wad, w.level->nav_sector_triggers)[0];
    for (int i = 0; i < first_of_sectors; ++i) {
        const NavTrigger& t = triggers[i];
        if (t.node < 0 || g.lines[t.line].special == 0 || s.line_uses[t.line] > MOST_USES) continue;
        consider(s, best, trigger_wish(w, i), 3000 * s.line_uses[t.line] + (t.exits == 2 ? 20000 : 0));
    }
    if (s.exit_boss != NONE) consider(s, best, enemy_wish(w, s.exit_boss), 0);
    for (int node = 0; node < n_nav_nodes(w); ++node)
        if (g.sectors[w.subsectors[node].sector].special == 11)
            consider(s, best, place_wish(w, GOAL_PLACE, node, node), 0);
    return best.cost < limit && pursue(w, p, best.wish);
}

// A trigger that can be reached and has not been used often, the nearest first.
OFA_FUNCTION bool go_for_trigger(WorldBase& w, const Player& p, int most_uses) {
    Script& s = w.g.script;
    const NavTrigger* triggers = at(w.wad, w.level->nav_triggers);
    Choice best = {{}, OBSTACLE};
    for (int i = at(w.wad, w.level->nav_sector_triggers)[0]; i < int(w.level->nav_triggers.count); ++i) {
        const NavTrigger& t = triggers[i];
        if (w.g.lines[t.line].special == 0 || !has_key(p, t.key) || !is_usable(w, p, t)) continue;
        if (s.line_uses[t.line] > most_uses || w.g.sectors[t.sector].mover != NONE) continue;
        consider(s, best, trigger_wish(w, i), 3000 * s.line_uses[t.line]);
    }
    return best.cost < OBSTACLE && pursue(w, p, best.wish);
}

// The nearest enemy there is a way to.
OFA_FUNCTION bool go_for_enemy(WorldBase& w, const Player& p, int limit) {
    Game& g = w.g;
    Script& s = g.script;
    Choice best = {{}, limit};
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !is_enemy(g.mobjs[node]) || is_avoided(s, node)) continue;
        consider(s, best, enemy_wish(w, node), 0);
    }
    if (best.cost >= limit) return false;
    if (pursue(w, p, best.wish)) return true;
    avoid_item(s, best.wish.goal);
    return false;
}

constexpr int TOO_LONG_TICS = 35 * 60 * 6;   // in a level: the exit comes before everything then
constexpr int IDLE_TICS = 35 * 90;           // so it does when nothing new has happened for so long

OFA_FUNCTION bool is_time_to_leave(const Script& s) { return s.stay_tics > TOO_LONG_TICS || s.idle_tics > IDLE_TICS; }

constexpr int NEAREST_PLACE = 300, FARTHEST_PLACE = 4000;

// Some place not too near.
OFA_FUNCTION bool go_anywhere(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    const int n = n_nav_nodes(w);
    if (s.random_places > 0) --s.random_places;
    int best = NONE;
    for (int tries = 0; tries < 48; ++tries) {
        const int node = script_random(s) % n;
        if (!can_reach(s, node) || s.distance[node] < 128) continue;
        best = node;
        if (s.distance[node] >= NEAREST_PLACE && s.distance[node] <= FARTHEST_PLACE) break;
    }
    return best != NONE && pursue(w, p, place_wish(w, GOAL_PLACE, best, best));
}

}  // namespace doom
