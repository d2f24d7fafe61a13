// Whom to shoot, with what, and how to stay out of the way.
#pragma once

#include "character.h"
#include "passage.h"
#include "steer.h"

namespace doom {

constexpr Fixed SIGHT_RANGE = 1400 * UNIT, CLOSE_RANGE = 160 * UNIT, BLAST_RANGE = 224 * UNIT;
constexpr Fixed FIST_RANGE = 64 * UNIT;
constexpr int FIGHT_TICS = 350, PEACE_TICS = 140, LOOK_EVERY = 4, STRAFE_TICS = 22;
constexpr int32_t FIRE_ARC = int32_t(ANGLE_45 / 12);

OFA_FUNCTION Fixed distance_between(const Mobj& a, const Mobj& b) {
    return approximate_distance(wrap_sub(a.x, b.x), wrap_sub(a.y, b.y));
}

// A shot is aimed up or down by itself, but not by more than this slope.
OFA_FUNCTION bool is_in_slope(const Mobj& m, const Mobj& o, Fixed distance) {
    const Fixed up = magnitude(wrap_sub(o.z, m.z));
    return up < 48 * UNIT || up / 5 < distance / 9;
}

// Enemy in sight that matters most: near and dangerous ones first. NONE if there is none.
OFA_FUNCTION int find_enemy(WorldBase& w, int self, Fixed range) {
    Game& g = w.g;
    const Mobj& m = g.mobjs[self];
    int best = NONE;
    Fixed least = FIXED_MAX;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !is_enemy(g.mobjs[node])) continue;
        const Mobj& o = g.mobjs[node];
        const Fixed distance = distance_between(m, o);
        if (distance < 0 || distance >= range || !is_in_slope(m, o, distance)) continue;
        // Who is asleep, or busy with another, can wait.
        const Fixed cost = o.target == self ? distance : distance * 2;
        if (cost >= least || !can_see(w, self, node)) continue;
        least = cost;
        best = node;
    }
    return best;
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

// Keeps Script::enemy: whom the player fights now. A fight that goes on for too long is given up for a while.
OFA_FUNCTION void watch_for_enemies(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    if (s.peace_tics > 0) {
        --s.peace_tics;
        s.enemy = NONE;
        return;
    }
    if (w.g.level_tics % LOOK_EVERY == 0) s.enemy = find_enemy(w, p.mobj, SIGHT_RANGE);
    if (s.enemy != NONE && (is_removed(w.g, s.enemy) || !is_enemy(w.g.mobjs[s.enemy]))) s.enemy = NONE;
    if (s.enemy == NONE) {
        if (s.enemy_tics > 0) --s.enemy_tics;
        return;
    }
    if (++s.enemy_tics > FIGHT_TICS) {
        s.peace_tics = PEACE_TICS;
        s.enemy_tics = 0;
        s.enemy = NONE;
    }
}

// Looks at the enemy and fires when it is in line.
OFA_FUNCTION void shoot_at(WorldBase& w, const Player& p, Intent& in, const Mobj& enemy, bool by_hand) {
    const Mobj& m = w.g.mobjs[p.mobj];
    const Fixed distance = distance_between(m, enemy);
    const int weapon = by_hand ? hand_weapon(p) : weapon_for(w, p, enemy, distance);
    choose_weapon(w.g, p, in, weapon);
    // Where it will be when a shot is there does not matter to bullets, and little to the rest.
    face(w, in, m, enemy.x, enemy.y);
    const int32_t arc = distance < CLOSE_RANGE ? 2 * FIRE_ARC : FIRE_ARC;
    if (!is_facing(m, in.face, arc)) return;
    const int ready = p.ready_weapon;
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
    if (m.floorz - w.g.sectors[sector].floor_height > STEP_HEIGHT) return false;
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

// Sideways, now left, now right; away from what bites.
OFA_FUNCTION void dance(WorldBase& w, const Player& p, Intent& in, const Mobj& enemy) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    const Angle ahead = angle_towards(w, m, enemy.x, enemy.y);
    const Fixed distance = distance_between(m, enemy);
    if (--s.strafe_tics <= 0) {
        s.strafe_tics = STRAFE_TICS;
        s.strafes_right ^= 1;
    }
    Angle sideways = ahead + (s.strafes_right ? ANGLE_270 : ANGLE_90);
    if (distance < CLOSE_RANGE * 3 / 2) sideways += (s.strafes_right ? 0u - ANGLE_45 : ANGLE_45);
    if (!is_step_safe(w, p, sideways, 40 * UNIT)) {
        s.strafes_right ^= 1;
        s.strafe_tics = STRAFE_TICS;
        return;
    }
    move_along(w, in, sideways, 10 * UNIT);
}

}  // namespace doom
