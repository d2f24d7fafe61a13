// What the explorer goes for next: something useful, somewhere new, something to press, the exit.
#pragma once

#include "route.h"

namespace doom {

constexpr int ITEM_REACH = 1200, TRIGGER_PATIENCE = 1;
constexpr int LONG_STAY_TICS = 35 * 60 * 3;  // after that the exit comes before switches
constexpr int TOO_LONG_TICS = 35 * 60 * 6;   // and after that before everything

OFA_FUNCTION int distance_to(const Script& s, int node) {
    return node < 0 || node >= MAX_NAV_NODES ? UNREACHED : s.distance[node];
}

OFA_FUNCTION bool is_avoided(const Script& s, int item) {
    for (int i = 0; i < MAX_AVOIDED_ITEMS; ++i)
        if (i < s.n_avoided_items && s.avoided_items[i] == item) return true;
    return false;
}

OFA_FUNCTION void avoid_item(Script& s, int item) {
    s.avoided_items[s.n_avoided_items % MAX_AVOIDED_ITEMS] = item;
    ++s.n_avoided_items;
}

OFA_FUNCTION bool has_room(const Player& p, int ammo) { return p.ammo[ammo] * 2 < p.max_ammo[ammo]; }

// How far out of its way the player goes for an item; 0 when it is of no use.
OFA_FUNCTION int reach_for_item(const Player& p, int type) {
    switch (type) {
        case THING_BLUE_CARD: return p.cards[CARD_BLUE] ? 0 : UNREACHED;
        case THING_YELLOW_CARD: return p.cards[CARD_YELLOW] ? 0 : UNREACHED;
        case THING_RED_CARD: return p.cards[CARD_RED] ? 0 : UNREACHED;
        case THING_BLUE_SKULL: return p.cards[SKULL_BLUE] ? 0 : UNREACHED;
        case THING_YELLOW_SKULL: return p.cards[SKULL_YELLOW] ? 0 : UNREACHED;
        case THING_RED_SKULL: return p.cards[SKULL_RED] ? 0 : UNREACHED;
        case THING_SHOTGUN: return p.weapon_owned[WEAPON_SHOTGUN] ? 0 : 2 * ITEM_REACH;
        case THING_SUPER_SHOTGUN: return p.weapon_owned[WEAPON_SUPER_SHOTGUN] ? 0 : 2 * ITEM_REACH;
        case THING_CHAINGUN: return p.weapon_owned[WEAPON_CHAINGUN] ? 0 : 2 * ITEM_REACH;
        case THING_ROCKET_LAUNCHER: return p.weapon_owned[WEAPON_ROCKETS] ? 0 : 2 * ITEM_REACH;
        case THING_PLASMA_RIFLE: return p.weapon_owned[WEAPON_PLASMA] ? 0 : 2 * ITEM_REACH;
        case THING_STIMPACK:
        case THING_MEDIKIT: return p.health < 50 ? 3 * ITEM_REACH : p.health < 90 ? ITEM_REACH / 2 : 0;
        case THING_SOULSPHERE:
        case THING_MEGASPHERE: return ITEM_REACH;
        case THING_GREEN_ARMOR: return p.armor < 60 ? ITEM_REACH : 0;
        case THING_BLUE_ARMOR: return p.armor < 120 ? ITEM_REACH : 0;
        case THING_CLIP:
        case THING_BULLET_BOX: return has_room(p, AMMO_BULLETS) ? ITEM_REACH / 2 : 0;
        case THING_SHELLS:
        case THING_SHELL_BOX: return has_room(p, AMMO_SHELLS) ? ITEM_REACH / 2 : 0;
        case THING_BACKPACK: return p.backpack ? 0 : ITEM_REACH;
        default: return 0;
    }
}

OFA_FUNCTION void set_goal(Script& s, GoalKind kind, int goal, int node, int x, int y) {
    if (s.goal != goal) s.goal_failures = 0;
    s.goal_kind = kind;
    s.goal = goal;
    s.goal_node = node;
    s.goal_x = x;
    s.goal_y = y;
    s.goal_tics = 0;
    s.goal_limit = 350 + distance_to(s, node) / 4;
    s.goal_side = -1;
    s.wait_tics = s.off_path_tics = 0;
    take_way_to(s, node);
}

OFA_FUNCTION bool choose_item(WorldBase& w, const Player& p, int limit_distance) {
    Game& g = w.g;
    Script& s = g.script;
    int best = NONE, nearest = limit_distance;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !(g.mobjs[node].flags & MF_SPECIAL)) continue;
        const Mobj& m = g.mobjs[node];
        const int distance = distance_to(s, m.subsector);
        if (distance >= nearest || distance >= reach_for_item(p, m.type) || is_avoided(s, node)) continue;
        nearest = distance;
        best = node;
    }
    if (best == NONE) return false;
    set_goal(s, GOAL_ITEM, best, g.mobjs[best].subsector, g.mobjs[best].x >> 16, g.mobjs[best].y >> 16);
    return true;
}

OFA_FUNCTION int nearest_new_node(WorldBase& w, int& distance) {
    Script& s = w.g.script;
    int best = NONE;
    distance = UNREACHED;
    for (int node = 0; node < n_nav_nodes(w); ++node) {
        const int sector = w.subsectors[node].sector;
        if (s.distance[node] == UNREACHED || w.g.sectors[sector].seen || s.sector_failures[sector] >= 3) continue;
        const int cost = s.distance[node] + 1500 * s.sector_failures[sector];
        if (cost >= distance) continue;
        distance = cost;
        best = node;
    }
    return best;
}

// The best trigger to go for: `exits` or those of frontier sectors (or, with `any`, of all), least used, then nearest.
OFA_FUNCTION bool choose_trigger(WorldBase& w, const Player& p, bool exits, bool any, int most_uses) {
    Script& s = w.g.script;
    const NavTrigger* triggers = at(w.wad, w.level->nav_triggers);
    int best = NONE, least = UNREACHED;
    for (int i = 0; i < int(w.level->nav_triggers.count); ++i) {
        const NavTrigger& t = triggers[i];
        if ((t.sector < 0) != exits || distance_to(s, t.node) == UNREACHED) continue;
        if (w.g.lines[t.line].special == 0 || !has_key(p, t.key) || s.line_uses[t.line] > most_uses) continue;
        if (!exits && !any && !s.sector_frontier[t.sector]) continue;
        if (!exits && w.g.sectors[t.sector].mover != NONE && s.line_uses[t.line] > 0) continue;
        const int cost = s.distance[t.node] + 3000 * s.line_uses[t.line] + (exits && t.exits == 2 ? 1000 : 0);
        if (cost >= least) continue;
        least = cost;
        best = i;
    }
    if (best == NONE) return false;
    set_goal(s, GOAL_TRIGGER, best, triggers[best].node, triggers[best].x, triggers[best].y);
    return true;
}

// The best there is to do now. False when there is nothing at all.
OFA_FUNCTION bool choose_best_goal(WorldBase& w, const Player& p) {
    Game& g = w.g;
    Script& s = g.script;
    s.goal_kind = GOAL_NONE;
    s.path_length = 0;
    find_ways(w, p, g.mobjs[p.mobj].subsector);
    if (g.level_tics > TOO_LONG_TICS && choose_trigger(w, p, true, false, 20)) return true;
    int distance;
    const int node = nearest_new_node(w, distance);
    if (choose_item(w, p, UNREACHED)) return true;
    if (node != NONE) {
        const NavNode& n = at(w.wad, w.level->nav_nodes)[node];
        set_goal(s, GOAL_SECTOR, w.subsectors[node].sector, node, n.x, n.y);
        return true;
    }
    if (g.level_tics > LONG_STAY_TICS && choose_trigger(w, p, true, false, 20)) return true;
    for (int uses = 0; uses <= TRIGGER_PATIENCE; ++uses)
        if (choose_trigger(w, p, false, false, uses)) return true;
    if (choose_trigger(w, p, true, false, 200)) return true;
    if (choose_trigger(w, p, false, true, 0)) return true;
    return false;
}

// Finds something to do and a way there.
OFA_NOINLINE bool choose_goal(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    for (int tries = 0; tries < 4; ++tries) {
        if (!choose_best_goal(w, p)) break;
        if (check_path(w, p)) return true;
    }
    if (s.goal_kind != GOAL_NONE) return true;
    // Nothing left: forgive what went wrong and begin again; believe in passages that look too high.
    s.despair ^= 1;
    for (uint8_t& failures : s.sector_failures) failures /= 2;
    for (uint8_t& failures : s.edge_failures) failures /= 2;
    for (uint8_t& uses : s.line_uses) uses /= 2;
    s.n_avoided_items = 0;
    return false;
}

OFA_FUNCTION void give_goal_up(const WorldBase& w) {
    Script& s = w.g.script;
    if (s.goal_kind == GOAL_SECTOR && s.sector_failures[s.goal] < 255) ++s.sector_failures[s.goal];
    if (s.goal_kind == GOAL_ITEM) avoid_item(s, s.goal);
    if (s.goal_kind == GOAL_TRIGGER) {
        const int line = at(w.wad, w.level->nav_triggers)[s.goal].line;
        if (s.line_uses[line] < 255) ++s.line_uses[line];
    }
    s.goal_kind = GOAL_NONE;
    s.path_length = s.goal_failures = 0;
}

}  // namespace doom
