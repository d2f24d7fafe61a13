// Whom to shoot and with what.
#pragma once

#include "route.h"
#include "steer.h"

namespace doom {

constexpr Fixed SIGHT_RANGE = 1000 * UNIT, CLOSE_RANGE = 160 * UNIT;
constexpr int FIGHT_TICS = 350, PEACE_TICS = 140, LOOK_EVERY = 4;
constexpr int32_t FIRE_ARC = int32_t(ANGLE_45 / 12);

OFA_FUNCTION bool is_enemy(const Mobj& m) {
    return (m.flags & MF_SHOOTABLE) && m.health > 0 && ((m.flags & MF_COUNTKILL) || m.type == THING_LOST_SOUL);
}

OFA_FUNCTION Fixed distance_between(const Mobj& a, const Mobj& b) {
    return approximate_distance(wrap_sub(a.x, b.x), wrap_sub(a.y, b.y));
}

// Nearest enemy in sight, -1 for none.
OFA_FUNCTION int find_enemy(WorldBase& w, int self) {
    Game& g = w.g;
    int best = NONE;
    Fixed nearest = SIGHT_RANGE;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind != THINKER_MOBJ || !is_enemy(g.mobjs[node])) continue;
        const Fixed distance = distance_between(g.mobjs[self], g.mobjs[node]);
        if (distance < 0 || distance >= nearest || !can_see(w, self, node)) continue;
        nearest = distance;
        best = node;
    }
    return best;
}

OFA_FUNCTION bool can_fire(const WorldBase& w, const Player& p, int weapon) {
    const int ammo = w.weapons[weapon].ammo;
    if (!p.weapon_owned[weapon]) return false;
    return ammo < 0 || ammo >= AMMO_TYPES || p.ammo[ammo] >= w.weapons[weapon].ammo_per_shot;
}

// Weapon for a distance: nothing that explodes near by, bullets and shells before cells and rockets.
OFA_FUNCTION int weapon_for(const WorldBase& w, const Player& p, Fixed distance) {
    const bool near_by = distance < CLOSE_RANGE * 2;
    if (near_by && can_fire(w, p, WEAPON_SUPER_SHOTGUN)) return WEAPON_SUPER_SHOTGUN;
    if (near_by && can_fire(w, p, WEAPON_SHOTGUN)) return WEAPON_SHOTGUN;
    if (can_fire(w, p, WEAPON_CHAINGUN)) return WEAPON_CHAINGUN;
    if (can_fire(w, p, WEAPON_SHOTGUN)) return WEAPON_SHOTGUN;
    if (can_fire(w, p, WEAPON_SUPER_SHOTGUN)) return WEAPON_SUPER_SHOTGUN;
    if (can_fire(w, p, WEAPON_PLASMA)) return WEAPON_PLASMA;
    if (can_fire(w, p, WEAPON_PISTOL)) return WEAPON_PISTOL;
    if (!near_by && can_fire(w, p, WEAPON_ROCKETS)) return WEAPON_ROCKETS;
    if (p.weapon_owned[WEAPON_CHAINSAW]) return WEAPON_CHAINSAW;
    return WEAPON_FIST;
}

// Asks for a weapon with the number a key would give. Not while another change is on.
OFA_FUNCTION void choose_weapon(const Game& g, const Player& p, TicCommand& c, int weapon) {
    if (weapon == p.ready_weapon || p.pending_weapon != WEAPON_NO_CHANGE || g.level_tics % 8) return;
    int key = weapon;                      // two weapons share the key of another
    if (weapon == WEAPON_SUPER_SHOTGUN) key = WEAPON_SHOTGUN;
    if (weapon == WEAPON_CHAINSAW) key = WEAPON_FIST;
    c.buttons = uint8_t(c.buttons | BUTTON_CHANGE | key << BUTTON_WEAPON_SHIFT);
}

// Keeps Script::enemy: whom the player fights now. A fight that goes on for too long is given up for a while.
OFA_FUNCTION void watch_for_enemies(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    if (s.peace_tics > 0) {
        --s.peace_tics;
        s.enemy = NONE;
        return;
    }
    if (w.g.level_tics % LOOK_EVERY == 0) s.enemy = find_enemy(w, p.mobj);
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

// Faces and shoots the enemy; true when that is worth standing for.
OFA_FUNCTION bool fight(WorldBase& w, const Player& p, TicCommand& c) {
    Game& g = w.g;
    if (g.script.enemy == NONE) return false;
    const Mobj &m = g.mobjs[p.mobj], &enemy = g.mobjs[g.script.enemy];
    const Fixed distance = distance_between(m, enemy);
    const int weapon = weapon_for(w, p, distance);
    choose_weapon(g, p, c, weapon);
    const bool by_hand = weapon == WEAPON_FIST || weapon == WEAPON_CHAINSAW;
    if (by_hand && distance > CLOSE_RANGE) return false;
    const int32_t left = turn_towards(c, m.angle, angle_to(w, m.x, m.y, enemy.x, enemy.y));
    if (left > -FIRE_ARC && left < FIRE_ARC) c.buttons |= BUTTON_FIRE;
    if (by_hand) {
        run_to(w, c, m, enemy.x, enemy.y);
        return true;
    }
    // Sideways, now left, now right; away from what bites.
    const Angle sideways = m.angle + ((g.level_tics / 24) & 1 ? ANGLE_90 : ANGLE_270);
    Fixed vx = fixed_mul(7 * UNIT, cosine_of(w, sideways)), vy = fixed_mul(7 * UNIT, sine_of(w, sideways));
    if (distance < CLOSE_RANGE) {
        vx -= fixed_mul(6 * UNIT, cosine_of(w, m.angle));
        vy -= fixed_mul(6 * UNIT, sine_of(w, m.angle));
    }
    move_with_velocity(w, c, m, vx, vy);
    return true;
}

}  // namespace doom
