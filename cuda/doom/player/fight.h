// Whom to shoot, with what, and how to stay out of the way.
#pragma once

#include "knowledge.h"
#include "passage.h"
#include "steer.h"

namespace doom {

constexpr Fixed SIGHT_RANGE = 1400 * UNIT, CLOSE_RANGE = 160 * UNIT, BLAST_RANGE = 224 * UNIT;
constexpr Fixed FIST_RANGE = 64 * UNIT, BULLET_COMFORT = 400 * UNIT, MISSILE_COMFORT = 224 * UNIT;
constexpr int MOST_SIGHTS = 16;
constexpr int FIGHT_TICS = 140, PEACE_TICS = 350, LOOK_EVERY = 4, STRAFE_TICS = 22;
constexpr int32_t FIRE_ARC = int32_t(ANGLE_45 / 12), AHEAD_ARC = int32_t(ANGLE_45 / 3 * 4);

OFA_FUNCTION Fixed distance_between(const Mobj& a, const Mobj& b) {
    return approximate_distance(wrap_sub(a.x, b.x), wrap_sub(a.y, b.y));
}

// A shot is aimed up or down by itself, but not by more than this slope.
OFA_FUNCTION bool is_in_slope(const Mobj& m, const Mobj& o, Fixed distance) {
    const Fixed up = magnitude(wrap_sub(o.z, m.z));
    return up < 48 * UNIT || up / 5 < distance / 9;
}

struct Sighting {
    int enemy;                  // that matters most: near and awake; NONE if nobody is in sight
    int threat;                 // danger of all those awake in sight
};

// Enemies to look at, the ones that matter most first.
struct Suspects {
    int objects[MOST_SIGHTS];
    Fixed costs[MOST_SIGHTS];
    int n;
};

OFA_FUNCTION void add_suspect(Suspects& s, int object, Fixed cost) {
    int at = s.n < MOST_SIGHTS ? s.n++ : MOST_SIGHTS;
    for (; at > 0 && s.costs[at - 1] > cost; --at) {
        if (at == MOST_SIGHTS) continue;
        s.objects[at] = s.objects[at - 1];
        s.costs[at] = s.costs[at - 1];
    }
    if (at == MOST_SIGHTS) return;
    s.objects[at] = object;
    s.costs[at] = cost;
}

// Looks around: at the MOST_SIGHTS nearest, who is asleep or busy with another counting as farther away.
OFA_FUNCTION Sighting look_for_enemies(WorldBase& w, int self, Fixed range) {
    Game& g = w.g;
    const Mobj& m = g.mobjs[self];
    Suspects suspects;
    suspects.n = 0;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !is_enemy(g.mobjs[node]) || node == g.script.spared) continue;
        const Fixed distance = distance_between(m, g.mobjs[node]);
        if (distance >= 0 && distance < range) add_suspect(suspects, node, g.mobjs[node].target == self ? distance : distance * 2);
    }
    Sighting found = {NONE, 0};
    for (int i = 0; i < suspects.n; ++i) {
        const Mobj& o = g.mobjs[suspects.objects[i]];
        if (!can_see(w, self, suspects.objects[i])) continue;
        if (o.target == self) found.threat += danger_of(o.type);
        if (found.enemy == NONE && is_in_slope(m, o, distance_between(m, o))) found.enemy = suspects.objects[i];
    }
    return found;
}

// --- weapons -------------------------------------------------------------------------------------------------------

OFA_FUNCTION bool can_fire(const WorldBase& w, const Player& p, int weapon) {
    const int ammo = w.weapons[weapon].ammo;
    if (!p.weapon_owned[weapon]) return false;
    return ammo < 0 || ammo >= AMMO_TYPES || p.ammo[ammo] >= w.weapons[weapon].ammo_per_shot;
}

OFA_FUNCTION bool is_hand_weapon(int weapon) { return weapon == WEAPON_FIST || weapon == WEAPON_CHAINSAW; }

OFA_FUNCTION int hand_weapon(const Player& p) {
    if (p.powers[POWER_STRENGTH]) return WEAPON_FIST;
    return p.weapon_owned[WEAPON_CHAINSAW] ? WEAPON_CHAINSAW : WEAPON_FIST;
}

// Weapon for an enemy at a distance. Nothing that explodes near by; cells and rockets are for those who last.
OFA_FUNCTION int weapon_for(const WorldBase& w, const Player& p, const Mobj& enemy, Fixed distance) {
    const bool tough = w.types[enemy.type].health >= 300, near_by = distance < CLOSE_RANGE * 2;
    if (w.types[enemy.type].health >= 1000 && distance < CLOSE_RANGE * 5 && can_fire(w, p, WEAPON_BFG)) return WEAPON_BFG;
    if (tough && can_fire(w, p, WEAPON_PLASMA)) return WEAPON_PLASMA;
    if (tough && distance > BLAST_RANGE && can_fire(w, p, WEAPON_ROCKETS)) return WEAPON_ROCKETS;
    if (near_by && can_fire(w, p, WEAPON_SUPER_SHOTGUN)) return WEAPON_SUPER_SHOTGUN;
    if (near_by && can_fire(w, p, WEAPON_SHOTGUN)) return WEAPON_SHOTGUN;
    if (can_fire(w, p, WEAPON_CHAINGUN)) return WEAPON_CHAINGUN;
    if (can_fire(w, p, WEAPON_SHOTGUN)) return WEAPON_SHOTGUN;
    if (can_fire(w, p, WEAPON_SUPER_SHOTGUN)) return WEAPON_SUPER_SHOTGUN;
    if (can_fire(w, p, WEAPON_PLASMA)) return WEAPON_PLASMA;
    if (can_fire(w, p, WEAPON_PISTOL)) return WEAPON_PISTOL;
    if (distance > BLAST_RANGE && can_fire(w, p, WEAPON_ROCKETS)) return WEAPON_ROCKETS;
    return hand_weapon(p);
}

// Asks for a weapon with the number a key would give. Not while another change is on.
OFA_FUNCTION void choose_weapon(const Game& g, const Player& p, Intent& in, int weapon) {
    if (weapon == p.ready_weapon || p.pending_weapon != WEAPON_NO_CHANGE || g.level_tics % 8) return;
    int key = weapon;                      // two weapons share the key of another
    if (weapon == WEAPON_SUPER_SHOTGUN) key = WEAPON_SHOTGUN;
    if (weapon == WEAPON_CHAINSAW) key = WEAPON_FIST;
    in.buttons = uint8_t(in.buttons | BUTTON_CHANGE | key << BUTTON_WEAPON_SHIFT);
}

// --- the enemy in mind -----------------------------------------------------------------------------------------------

// Keeps Script::enemy: whom the player fights now. Who cannot be hurt for too long is left alone for a while.
OFA_FUNCTION void watch_for_enemies(WorldBase& w, const Player& p) {
    Game& g = w.g;
    Script& s = g.script;
    if (s.peace_tics > 0 && --s.peace_tics == 0) s.spared = NONE;
    const int before = s.enemy;
    if (g.level_tics % LOOK_EVERY == 0) {
        const Sighting seen = look_for_enemies(w, p.mobj, SIGHT_RANGE);
        s.enemy = seen.enemy;
        s.threat = seen.threat;
    }
    if (s.enemy != NONE && (is_removed(g, s.enemy) || !is_enemy(g.mobjs[s.enemy]))) s.enemy = NONE;
    if (s.enemy == NONE) return;
    const Mobj& enemy = g.mobjs[s.enemy];
    if (s.enemy != before || enemy.health != s.enemy_health) s.enemy_tics = 0;
    s.enemy_health = enemy.health;
    if (++s.enemy_tics < FIGHT_TICS) return;
    s.spared = s.enemy;
    s.peace_tics = PEACE_TICS;
    s.enemy_tics = 0;
    s.enemy = NONE;
}

// Looks at the enemy and fires when it is in line.
OFA_FUNCTION void shoot_at(WorldBase& w, const Player& p, Intent& in, const Mobj& enemy, bool by_hand) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Fixed distance = distance_between(m, enemy);
    const int weapon = by_hand ? hand_weapon(p) : weapon_for(w, p, enemy, distance);
    choose_weapon(w.g, p, in, weapon);
    // Where it will be when a shot is there does not matter to bullets, and little to the rest.
    face(w, in, m, enemy.x, enemy.y);
    in.haste = 1;
    const int32_t arc = distance < CLOSE_RANGE ? 2 * FIRE_ARC : FIRE_ARC;
    if (!is_facing(m, in.face, arc)) return;
    const int ready = p.ready_weapon;
    if (by_hand && !is_hand_weapon(ready)) return;
    if (ready == WEAPON_ROCKETS && distance < BLAST_RANGE) return;
    if (is_hand_weapon(ready) && distance > FIST_RANGE + enemy.radius + 16 * UNIT) return;
    in.buttons |= BUTTON_FIRE;
}

// --- legs in a fight -------------------------------------------------------------------------------------------------

// Whether a step leads neither against a wall, nor over an edge, nor into what hurts.
OFA_FUNCTION bool is_step_safe(WorldBase& w, const Player& p, Angle angle, Fixed length) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Fixed x = m.x + fixed_mul(length, cosine_of(w, angle)), y = m.y + fixed_mul(length, sine_of(w, angle));
    const int sector = w.subsectors[subsector_at(w, x, y)].sector;
    int bar;
    if (hurts(w.g, sector) && !hurts(w.g, m.sector)) return false;
    if (wrap_sub(m.floorz, w.g.sectors[sector].floor_height) > STEP_HEIGHT) return false;
    return probe_place(w, p, x, y, m.floorz, true, bar) == PASSAGE_FREE;
}

// A missile that will hit: the direction to step aside. False if there is none.
OFA_FUNCTION bool find_way_aside(WorldBase& w, const Player& p, Angle& aside) {
    Game& g = w.g;
    const Mobj& m = g.mobjs[p.mobj];
    Fixed nearest = 420 * UNIT;
    bool found = false;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !(g.mobjs[node].flags & MF_MISSILE)) continue;
        const Mobj& o = g.mobjs[node];
        const Fixed distance = distance_between(m, o);
        if (o.target == p.mobj || distance < 0 || distance >= nearest) continue;
        const Angle flight = angle_to(w, 0, 0, o.momx, o.momy);
        const Fixed dx = m.x - o.x, dy = m.y - o.y;
        const Fixed along = fixed_mul(dx, cosine_of(w, flight)) + fixed_mul(dy, sine_of(w, flight));
        const Fixed left = fixed_mul(dy, cosine_of(w, flight)) - fixed_mul(dx, sine_of(w, flight));
        if (along < 0 || magnitude(left) > m.radius + o.radius + 24 * UNIT) continue;
        nearest = distance;
        aside = flight + (left >= 0 ? ANGLE_90 : ANGLE_270);
        found = true;
    }
    return found;
}

// Steps out of a missile's way while that lasts; true when it does.
OFA_FUNCTION bool evade(WorldBase& w, const Player& p, Intent& in) {
    Script& s = w.g.script;
    Angle aside;
    if (s.evade_tics == 0 && w.g.level_tics % 2 == 0 && find_way_aside(w, p, aside)) {
        if (!is_step_safe(w, p, aside, 40 * UNIT)) aside += ANGLE_180;
        if (is_step_safe(w, p, aside, 40 * UNIT)) {
            s.evade_tics = 8;
            s.evade_angle = aside;
        }
    }
    if (s.evade_tics == 0) return false;
    --s.evade_tics;
    if (!is_step_safe(w, p, s.evade_angle, 24 * UNIT)) s.evade_tics = 0;
    move_along(w, in, s.evade_angle, RUN_SPEED);
    return true;
}

// Below which distance it is better to step back. Bullets of monsters scatter more than the player's: far off it wins.
OFA_FUNCTION Fixed comfort_of(int type) {
    if (shoots_bullets(type)) return BULLET_COMFORT;
    return only_bites(type) ? CLOSE_RANGE * 2 : MISSILE_COMFORT;
}

// Sideways, now left, now right; backwards from who is too near.
OFA_FUNCTION void dance(WorldBase& w, const Player& p, Intent& in, const Mobj& enemy) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const Angle ahead = angle_towards(w, m, enemy.x, enemy.y);
    const bool too_near = distance_between(m, enemy) < comfort_of(enemy.type);
    if (--s.strafe_tics <= 0) {
        s.strafe_tics = STRAFE_TICS;
        s.strafes_right ^= 1;
    }
    // Turns to the left of `ahead`, in eighths of a circle.
    OFA_TABLE uint8_t far_steps[5] = {2, 6, 3, 5, 4}, near_steps[5] = {3, 4, 5, 2, 6};
    for (int i = 0; i < 5; ++i) {
        const int step = too_near ? near_steps[i] : far_steps[i];
        const Angle angle = ahead + (s.strafes_right ? 8 - step : step) * ANGLE_45;
        if (!is_step_safe(w, p, angle, 40 * UNIT)) continue;
        move_along(w, in, angle, too_near ? RUN_SPEED : 10 * UNIT);
        if (i == 1 && !too_near) s.strafes_right ^= 1;
        return;
    }
}

constexpr Fixed BRAWL_RADIUS = 150 * UNIT;
constexpr int BRAWL_TICS = 35 * 9, RESTLESS_TICS = 35 * 4;

// Nobody gets on by staying in one place: after BRAWL_TICS of it the player goes elsewhere. Once a tic.
OFA_FUNCTION void note_place(Script& s, const Mobj& m) {
    if (distance_from(m, s.brawl_x, s.brawl_y) > BRAWL_RADIUS) {
        s.brawl_x = m.x;
        s.brawl_y = m.y;
        s.brawl_tics = 0;
    }
    if (++s.brawl_tics > BRAWL_TICS + RESTLESS_TICS) s.brawl_tics = 0;
}

}  // namespace doom
