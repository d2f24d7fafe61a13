// What the explorer goes for next: something useful, somewhere new, something to press, the exit.
#pragma once

#include "route.h"

namespace doom {

constexpr int ITEM_REACH = 1200, FAILURES = 3;
constexpr int LONG_STAY_TICS = 35 * 60 * 3;  // after that the exit comes before switches
constexpr int TOO_LONG_TICS = 35 * 60 * 6;   // and after that before everything
constexpr int IDLE_TICS = 35 * 90;           // so does it when nothing new has happened for so long
constexpr int RELAX_TICS = 35 * 60 * 2;      // and what failed is tried again
constexpr int ENDLESS_TICS = 35 * 60 * 8;    // and after so long in the level it also searches at random

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

OFA_FUNCTION bool choose_item(WorldBase& w, const Player& p, int limit_distance) {
    Game& g = w.g;
    Script& s = g.script;
    int best = NONE, best_place = NONE, nearest = limit_distance;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !(g.mobjs[node].flags & MF_SPECIAL)) continue;
        const Mobj& m = g.mobjs[node];
        const int reach = reach_for_item(p, m.type);
        int place = m.subsector;
        if (reach == UNREACHED && distance_to(s, place) == UNREACHED) place = place_beside(w, m);
        const int distance = distance_to(s, place);
        if (distance >= nearest || distance >= reach) continue;
        // No way on without a key: it is tried again now and then.
        if (is_avoided(s, node) && (reach != UNREACHED || (script_random(s) & 3))) continue;
        nearest = distance;
        best = node;
        best_place = place;
    }
    if (best == NONE) return false;
    set_goal(s, GOAL_ITEM, best, best_place, g.mobjs[best].x >> 16, g.mobjs[best].y >> 16);
    return true;
}

OFA_FUNCTION bool hurts(const Game& g, int sector) {
    switch (g.sectors[sector].special) {
        case 4: case 5: case 7: case 11: case 16: return true;
        default: return false;
    }
}

// Sectors not yet seen, the near ones first; without those that failed `most_failures` times or, if `careful`, hurt.
OFA_FUNCTION int nearest_new_node(WorldBase& w, int most_failures, bool careful) {
    Script& s = w.g.script;
    int best = NONE;
    int least = UNREACHED;
    for (int node = 0; node < n_nav_nodes(w); ++node) {
        const int sector = w.subsectors[node].sector;
        if (s.distance[node] == UNREACHED || w.g.sectors[sector].seen) continue;
        if (s.sector_failures[sector] >= most_failures || (careful && hurts(w.g, sector))) continue;
        const int cost = s.distance[node] + 1500 * s.sector_failures[sector];
        if (cost >= least) continue;
        least = cost;
        best = node;
    }
    return best;
}

// A door that one only passes from its own floor is of no use from far below.
OFA_FUNCTION bool is_level_with(const WorldBase& w, const NavTrigger& t) {
    if (line_special(w, t.line).trigger != TRIGGER_DOOR) return true;
    const Fixed here = gap_of(w.g, w.subsectors[t.node].sector).floor;
    return gap_of(w.g, t.sector).floor - here <= STEP_HEIGHT;
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
        if (!exits && !is_level_with(w, t)) continue;
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

// Any place there is a way to. False when there is none.
OFA_FUNCTION bool choose_place(WorldBase& w) {
    Script& s = w.g.script;
    const int n = n_nav_nodes(w);
    for (int tries = 0; tries < 32; ++tries) {
        const int node = script_random(s) % n;
        if (s.distance[node] == UNREACHED || s.distance[node] < 128) continue;
        const NavNode& place = at(w.wad, w.level->nav_nodes)[node];
        set_goal(s, GOAL_PLACE, node, node, place.x, place.y);
        return true;
    }
    return false;
}

OFA_FUNCTION bool choose_new_sector(WorldBase& w, int most_failures, bool careful) {
    const int node = nearest_new_node(w, most_failures, careful);
    if (node == NONE) return false;
    const NavNode& n = at(w.wad, w.level->nav_nodes)[node];
    set_goal(w.g.script, GOAL_SECTOR, w.subsectors[node].sector, node, n.x, n.y);
    return true;
}

// What has not been tried yet.
OFA_FUNCTION bool choose_untried(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    find_ways(w, p, w.g.mobjs[p.mobj].subsector, false);
    const bool leaving = s.stay_tics > TOO_LONG_TICS || s.idle_tics > IDLE_TICS;
    if (leaving && choose_trigger(w, p, true, false, 20)) return true;
    if (s.random_places > 0) {
        --s.random_places;
        if (choose_place(w)) return true;
    }
    if (choose_item(w, p, UNREACHED)) return true;
    if (leaving && choose_trigger(w, p, false, false, 0)) return true;
    if (choose_new_sector(w, FAILURES, true)) return true;
    if (s.stay_tics > LONG_STAY_TICS && choose_trigger(w, p, true, false, 20)) return true;
    return choose_trigger(w, p, false, false, 0) || choose_new_sector(w, FAILURES, false) ||
           choose_trigger(w, p, true, false, 200) ||
           choose_trigger(w, p, false, true, 0);
}

// What has failed or been used before, by ways that have failed before.
OFA_FUNCTION bool choose_again(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    find_ways(w, p, w.g.mobjs[p.mobj].subsector, true);
    if (choose_trigger(w, p, true, false, 200) || choose_item(w, p, UNREACHED)) return true;
    const bool press = script_random(s) & 1;
    if (press && choose_trigger(w, p, false, false, 200)) return true;
    return choose_new_sector(w, 2 * FAILURES, false) || choose_trigger(w, p, false, false, 200) ||
           choose_trigger(w, p, false, true, 0);
}

// The best there is to do now. False when there is nothing at all.
OFA_FUNCTION bool choose_best_goal(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    s.goal_kind = GOAL_NONE;
    s.path_length = 0;
    return choose_untried(w, p) || choose_again(w, p);
}

// Finds something to do and a way there.
OFA_NOINLINE bool choose_goal(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    for (int tries = 0; tries < 4; ++tries) {
        if (!choose_best_goal(w, p)) break;
        if (check_path(w, p)) return true;
    }
    if (s.goal_kind != GOAL_NONE) return true;
    // Nothing left: forgive what went wrong and begin again from elsewhere; believe in passages that look too high.
    s.despair ^= 1;
    for (uint8_t& failures : s.sector_failures) failures /= 2;
    for (uint8_t& failures : s.edge_failures) failures /= 2;
    for (uint8_t& uses : s.line_uses) uses /= 2;
    return choose_place(w);
}

OFA_FUNCTION void forget_failures(Script& s) {
    s.despair ^= 1;
    memset(s.sector_failures, 0, sizeof s.sector_failures);
    memset(s.edge_failures, 0, sizeof s.edge_failures);
    memset(s.line_uses, 0, sizeof s.line_uses);
    s.n_avoided_items = 0;
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

// Gives the goal up for good, until failures are forgotten.
OFA_FUNCTION void abandon_goal(const WorldBase& w) {
    Script& s = w.g.script;
    if (s.goal_kind == GOAL_SECTOR && s.sector_failures[s.goal] < FAILURES)
        s.sector_failures[s.goal] = FAILURES - 1;
    give_goal_up(w);
}

}  // namespace doom
