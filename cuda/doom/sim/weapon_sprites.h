// The weapon in the player's hand as a little state machine of its own: raise, ready, fire, lower.
//
// Where a weapon's action enters another state of the weapon it is always the last thing the action does, so an action
// returns that state (KEEP_STATE when there is none) and one loop runs them.
#pragma once

#include "mobj.h"

namespace doom {

constexpr int HAND = 0, FLASH = 1;
constexpr Fixed WEAPON_TOP = 32 * UNIT, WEAPON_BOTTOM = 128 * UNIT, WEAPON_SPEED = 6 * UNIT;
constexpr int AMMO_OF_BFG = 40;

OFA_FUNCTION void show_weapon_state(WorldBase& w, WeaponSprite& sprite, int state) {
    const State& s = w.states[state];
    sprite.state = state;
    sprite.tics = state_tics(w, state);
    sprite.sprite = s.sprite;
    sprite.frame = state_frame(s);
}

OFA_FUNCTION void light_action(Player& p, int action) {
    if (action == ACTION_LIGHT0) p.extra_light = 0;
    else if (action == ACTION_LIGHT1) p.extra_light = 1;
    else if (action == ACTION_LIGHT2) p.extra_light = 2;
}

// The flash of a gun only has states that change the light.
OFA_FUNCTION void set_flash(WorldBase& w, Player& p, int state) {
    WeaponSprite& sprite = p.sprites[FLASH];
    do {
        if (state == STATE_NULL) {
            sprite.state = NONE;
            return;
        }
        show_weapon_state(w, sprite, state);
        light_action(p, w.states[state].action);
        state = w.states[state].next;
    } while (sprite.tics == 0);
}

// State in which the weapon that is wanted comes up from below the screen.
OFA_FUNCTION int bring_up_weapon(WorldBase& w, Player& p) {
    if (p.pending_weapon == WEAPON_NO_CHANGE) p.pending_weapon = p.ready_weapon;
    if (p.pending_weapon == WEAPON_CHAINSAW) start_sound(w, p.mobj, SOUND_SAWUP);
    const int state = w.weapons[p.pending_weapon].up_state;
    p.pending_weapon = WEAPON_NO_CHANGE;
    p.sprites[HAND].sy = WEAPON_BOTTOM;
    return state;
}

OFA_FUNCTION int lower_weapon(WorldBase& w, Player& p) {
    WeaponSprite& sprite = p.sprites[HAND];
    sprite.sy += WEAPON_SPEED;
    if (sprite.sy < WEAPON_BOTTOM) return KEEP_STATE;
    if (p.mode == PLAYER_DEAD) {
        sprite.sy = WEAPON_BOTTOM;
        return KEEP_STATE;
    }
    if (p.health == 0) return STATE_NULL;
    p.ready_weapon = p.pending_weapon;
    return bring_up_weapon(w, p);
}

// A player who dies lets the weapon sink. Its first state only lowers it.
OFA_FUNCTION void drop_weapon(WorldBase& w, Player& p) {
    show_weapon_state(w, p.sprites[HAND], w.weapons[p.ready_weapon].down_state);
    if (w.states[p.sprites[HAND].state].action == ACTION_LOWER) lower_weapon(w, p);
}

OFA_FUNCTION bool has_ammo_for(const Player& p, int ammo, int at_least) { return p.ammo[ammo] >= at_least; }

OFA_FUNCTION int best_other_weapon(const WorldBase& w, const Player& p) {
    const bool doom2 = w.g.commercial;
    if (p.weapon_owned[WEAPON_PLASMA] && p.ammo[AMMO_CELLS]) return WEAPON_PLASMA;
    if (p.weapon_owned[WEAPON_SUPER_SHOTGUN] && p.ammo[AMMO_SHELLS] > 2 && doom2) return WEAPON_SUPER_SHOTGUN;
    if (p.weapon_owned[WEAPON_CHAINGUN] && p.ammo[AMMO_BULLETS]) return WEAPON_CHAINGUN;
    if (p.weapon_owned[WEAPON_SHOTGUN] && p.ammo[AMMO_SHELLS]) return WEAPON_SHOTGUN;
    if (p.ammo[AMMO_BULLETS]) return WEAPON_PISTOL;
    if (p.weapon_owned[WEAPON_CHAINSAW]) return WEAPON_CHAINSAW;
    if (p.weapon_owned[WEAPON_ROCKETS] && p.ammo[AMMO_ROCKETS]) return WEAPON_ROCKETS;
    if (p.weapon_owned[WEAPON_BFG] && p.ammo[AMMO_CELLS] > AMMO_OF_BFG) return WEAPON_BFG;
    return WEAPON_FIST;
}

// True when the weapon in hand can fire; else another is chosen and the caller lowers this one.
OFA_FUNCTION bool check_ammo(WorldBase& w, Player& p) {
    const int weapon = p.ready_weapon;
    const int ammo = w.weapons[weapon].ammo;
    const int needed = weapon == WEAPON_BFG ? AMMO_OF_BFG : weapon == WEAPON_SUPER_SHOTGUN ? 2 : 1;
    if (ammo < 0 || ammo >= AMMO_TYPES || has_ammo_for(p, ammo, needed)) return true;
    p.pending_weapon = int8_t(best_other_weapon(w, p));
    return false;
}

}  // namespace doom
