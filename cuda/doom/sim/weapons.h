// What weapons do when they are raised, ready and fired.
#pragma once

#include "damage.h"
#include "missiles.h"
#include "noise.h"
#include "weapon_sprites.h"

namespace doom {

template <class W>
OFA_FUNCTION int fire_weapon(W& w, Player& p) {
    if (!check_ammo(w, p)) return w.weapons[p.ready_weapon].down_state;
    set_state(w, p.mobj, STATE_PLAY_ATK1);
    alert_by_noise(w, p.mobj, p.mobj);
    return w.weapons[p.ready_weapon].attack_state;
}

template <class W>
OFA_FUNCTION int weapon_ready(W& w, Player& p) {
    Mobj& body = w.g.mobjs[p.mobj];
    WeaponSprite& sprite = p.sprites[HAND];
    if (body.state == STATE_PLAY_ATK1 || body.state == STATE_PLAY_ATK2) set_state(w, p.mobj, STATE_PLAY);
    if (p.ready_weapon == WEAPON_CHAINSAW && sprite.state == STATE_SAW) start_sound(w, p.mobj, SOUND_SAWIDL);
    if (p.pending_weapon != WEAPON_NO_CHANGE || p.health == 0) return w.weapons[p.ready_weapon].down_state;
    if (p.command.buttons & BUTTON_FIRE) {
        const bool single = p.ready_weapon == WEAPON_ROCKETS || p.ready_weapon == WEAPON_BFG;
        if (!p.attack_down || !single) {
            p.attack_down = 1;
            return fire_weapon(w, p);
        }
    } else {
        p.attack_down = 0;
    }
    const int angle = (128 * w.g.level_tics) & FINE_MASK;
    sprite.sx = UNIT + fixed_mul(p.bob, fine_cosine(w, angle));
    sprite.sy = WEAPON_TOP + fixed_mul(p.bob, fine_sine(w, angle & (FINE_ANGLES / 2 - 1)));
    return KEEP_STATE;
}

template <class W>
OFA_FUNCTION int fire_again(W& w, Player& p) {
    if ((p.command.buttons & BUTTON_FIRE) && p.pending_weapon == WEAPON_NO_CHANGE && p.health) {
        ++p.refire;
        return fire_weapon(w, p);
    }
    p.refire = 0;
    return check_ammo(w, p) ? KEEP_STATE : w.weapons[p.ready_weapon].down_state;
}

OFA_FUNCTION int raise_weapon(WorldBase& w, Player& p) {
    WeaponSprite& sprite = p.sprites[HAND];
    sprite.sy -= WEAPON_SPEED;
    if (sprite.sy > WEAPON_TOP) return KEEP_STATE;
    sprite.sy = WEAPON_TOP;
    return w.weapons[p.ready_weapon].ready_state;
}

OFA_FUNCTION void use_ammo(WorldBase& w, Player& p, int amount) {
    const int ammo = w.weapons[p.ready_weapon].ammo;
    if (ammo >= 0 && ammo < AMMO_TYPES) p.ammo[ammo] = int16_t(p.ammo[ammo] - amount);
}

// Slope towards a target straight ahead or a little to either side.
OFA_FUNCTION Fixed bullet_slope(WorldBase& w, int shooter) {
    const Angle angle = w.g.mobjs[shooter].angle;
    Fixed slope = aim(w, shooter, angle, 16 * 64 * UNIT);
    if (w.g.clip.line_target == NONE) slope = aim(w, shooter, angle + (1 << 26), 16 * 64 * UNIT);
    if (w.g.clip.line_target == NONE) slope = aim(w, shooter, angle - (1 << 26), 16 * 64 * UNIT);
    return slope;
}

template <class W>
OFA_FUNCTION void fire_bullet(W& w, int shooter, Fixed slope, bool accurate) {
    const int damage = 5 * (next_random(w) % 3 + 1);
    Angle angle = w.g.mobjs[shooter].angle;
    if (!accurate) angle += Angle(random_difference(w)) << 18;
    shoot(w, shooter, angle, MISSILE_RANGE, slope, damage);
}

template <class W>
OFA_FUNCTION void begin_gun_shot(W& w, Player& p, int ammo, int flash) {
    set_state(w, p.mobj, STATE_PLAY_ATK2);
    use_ammo(w, p, ammo);
    set_flash(w, p, w.weapons[p.ready_weapon].flash_state + flash);
}

template <class W>
OFA_FUNCTION void fire_pistol(W& w, Player& p) {
    start_sound(w, p.mobj, SOUND_PISTOL);
    begin_gun_shot(w, p, 1, 0);
    const Fixed slope = bullet_slope(w, p.mobj);
    fire_bullet(w, p.mobj, slope, p.refire == 0);
}

template <class W>
OFA_FUNCTION void fire_shotgun(W& w, Player& p) {
    start_sound(w, p.mobj, SOUND_SHOTGN);
    begin_gun_shot(w, p, 1, 0);
    const Fixed slope = bullet_slope(w, p.mobj);
    for (int i = 0; i < 7; ++i) fire_bullet(w, p.mobj, slope, false);
}

template <class W>
OFA_FUNCTION void fire_super_shotgun(W& w, Player& p) {
    start_sound(w, p.mobj, SOUND_DSHTGN);
    begin_gun_shot(w, p, 2, 0);
    const Fixed slope = bullet_slope(w, p.mobj);
    for (int i = 0; i < 20; ++i) {
        const int damage = 5 * (next_random(w) % 3 + 1);
        const Angle angle = w.g.mobjs[p.mobj].angle + (Angle(random_difference(w)) << 19);
        shoot(w, p.mobj, angle, MISSILE_RANGE, wrap_add(slope, random_difference(w) * 32), damage);
    }
}

template <class W>
OFA_FUNCTION void fire_chaingun(W& w, Player& p) {
    start_sound(w, p.mobj, SOUND_PISTOL);
    if (p.ammo[AMMO_BULLETS] == 0) return;
    begin_gun_shot(w, p, 1, p.sprites[HAND].state - w.weapons[WEAPON_CHAINGUN].attack_state);
    const Fixed slope = bullet_slope(w, p.mobj);
    fire_bullet(w, p.mobj, slope, p.refire == 0);
}

template <class W>
OFA_FUNCTION void punch(W& w, Player& p) {
    Mobj& body = w.g.mobjs[p.mobj];
    int damage = (next_random(w) % 10 + 1) << 1;
    if (p.powers[POWER_STRENGTH]) damage *= 10;
    const Angle angle = body.angle + (Angle(random_difference(w)) << 18);
    const Fixed slope = aim(w, p.mobj, angle, MELEE_RANGE);
    shoot(w, p.mobj, angle, MELEE_RANGE, slope, damage);
    if (w.g.clip.line_target == NONE) return;
    start_sound(w, p.mobj, SOUND_PUNCH);
    const Mobj& hit = w.g.mobjs[w.g.clip.line_target];
    body.angle = angle_to(w, body.x, body.y, hit.x, hit.y);
}

template <class W>
OFA_FUNCTION void saw(W& w, Player& p) {
    Mobj& body = w.g.mobjs[p.mobj];
    const int damage = 2 * (next_random(w) % 10 + 1);
    Angle angle = body.angle + (Angle(random_difference(w)) << 18);
    const Fixed range = MELEE_RANGE + 1;  // one more than a punch, so that puffs are drawn
    const Fixed slope = aim(w, p.mobj, angle, range);
    shoot(w, p.mobj, angle, range, slope, damage);
    start_sound(w, p.mobj, w.g.clip.line_target == NONE ? SOUND_SAWFUL : SOUND_SAWHIT);
    if (w.g.clip.line_target == NONE) return;
    const Mobj& hit = w.g.mobjs[w.g.clip.line_target];
    angle = angle_to(w, body.x, body.y, hit.x, hit.y);
    const int32_t turn = int32_t(angle - body.angle);
    const int32_t step = int32_t(ANGLE_90 / 20);
    if (angle - body.angle > ANGLE_180) body.angle = turn < -step ? angle + ANGLE_90 / 21 : body.angle - step;
    else body.angle = turn > step ? angle - ANGLE_90 / 21 : body.angle + step;
    body.flags |= MF_JUSTATTACKED;
}

// Runs a weapon's action; returns the state it leads to, or KEEP_STATE.
template <class W>
OFA_FUNCTION int weapon_action(W& w, Player& p, int action) {
    switch (action) {
        case ACTION_WEAPON_READY: return weapon_ready(w, p);
        case ACTION_LOWER: return lower_weapon(w, p);
        case ACTION_RAISE: return raise_weapon(w, p);
        case ACTION_OPEN_SHOTGUN2: start_sound(w, p.mobj, SOUND_DBOPN); break;
        case ACTION_LOAD_SHOTGUN2: start_sound(w, p.mobj, SOUND_DBLOAD); break;
        case ACTION_BFGSOUND: start_sound(w, p.mobj, SOUND_BFG); break;
        case ACTION_CLOSE_SHOTGUN2:
            start_sound(w, p.mobj, SOUND_DBCLS);
            return fire_again(w, p);
        case ACTION_RE_FIRE: return fire_again(w, p);
        case ACTION_CHECK_RELOAD: return check_ammo(w, p) ? KEEP_STATE : w.weapons[p.ready_weapon].down_state;
        case ACTION_PUNCH: punch(w, p); break;
        case ACTION_SAW: saw(w, p); break;
        case ACTION_FIRE_PISTOL: fire_pistol(w, p); break;
        case ACTION_FIRE_SHOTGUN: fire_shotgun(w, p); break;
        case ACTION_FIRE_SHOTGUN2: fire_super_shotgun(w, p); break;
        case ACTION_FIRE_CGUN: fire_chaingun(w, p); break;
        case ACTION_GUN_FLASH:
            set_state(w, p.mobj, STATE_PLAY_ATK2);
            set_flash(w, p, w.weapons[p.ready_weapon].flash_state);
            break;
        case ACTION_FIRE_MISSILE:
            use_ammo(w, p, 1);
            spawn_player_missile(w, p.mobj, THING_ROCKET);
            break;
        case ACTION_FIRE_PLASMA:
            use_ammo(w, p, 1);
            set_flash(w, p, w.weapons[p.ready_weapon].flash_state + (next_random(w) & 1));
            spawn_player_missile(w, p.mobj, THING_PLASMA);
            break;
        case ACTION_FIRE_BFG:
            use_ammo(w, p, AMMO_OF_BFG);
            spawn_player_missile(w, p.mobj, THING_BFG_SHOT);
            break;
        default: light_action(p, action);
    }
    return KEEP_STATE;
}

template <class W>
OFA_FUNCTION void set_weapon_state(W& w, Player& p, int state) {
    WeaponSprite& sprite = p.sprites[HAND];
    do {
        if (state == STATE_NULL) {
            sprite.state = NONE;
            return;
        }
        show_weapon_state(w, sprite, state);
        const int entered = state;
        const int led_to = weapon_action(w, p, w.states[state].action);
        if (led_to != KEEP_STATE) {
            state = led_to;
            sprite.tics = 0;
            continue;
        }
        if (sprite.state == NONE) return;
        if (sprite.state != entered) {    // dead by the own shot: the weapon sinks already
            state = w.states[sprite.state].next;
            continue;
        }
        state = w.states[state].next;
    } while (sprite.tics == 0);
}

// Once a level begins and once a life begins. The place the weapon swung to stays from the level before.
template <class W>
OFA_FUNCTION void setup_weapon(W& w, Player& p) {
    for (WeaponSprite& sprite : p.sprites) sprite.state = NONE;
    p.pending_weapon = p.ready_weapon;
    set_weapon_state(w, p, bring_up_weapon(w, p));
}

template <class W>
OFA_FUNCTION void tick_weapon(W& w, Player& p) {
    for (int i = 0; i < 2; ++i) {
        WeaponSprite& sprite = p.sprites[i];
        if (sprite.state == NONE || sprite.tics == -1 || --sprite.tics != 0) continue;
        const int next = w.states[sprite.state].next;
        if (i == HAND) set_weapon_state(w, p, next);
        else set_flash(w, p, next);
    }
    p.sprites[FLASH].sx = p.sprites[HAND].sx;
    p.sprites[FLASH].sy = p.sprites[HAND].sy;
}

}  // namespace doom
