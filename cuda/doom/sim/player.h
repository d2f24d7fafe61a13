// One tic of a player: command, view height, death, powers.
#pragma once

#include "specials.h"
#include "weapons.h"

namespace doom {

constexpr Fixed MAX_BOB = 16 * UNIT, USE_RANGE = 64 * UNIT;
constexpr Angle DEATH_TURN = ANGLE_90 / 18;

OFA_FUNCTION void thrust(WorldBase& w, Mobj& m, Angle angle, Fixed move) {
    m.momx = wrap_add(m.momx, fixed_mul(move, cosine_of(w, angle)));
    m.momy = wrap_add(m.momy, fixed_mul(move, sine_of(w, angle)));
}

template <class W>
OFA_FUNCTION void move_player(W& w, Player& p) {
    Mobj& m = w.g.mobjs[p.mobj];
    const TicCommand& c = p.command;
    m.angle += Angle(uint16_t(c.turn)) << 16;
    w.g.clip.on_ground = m.z <= m.floorz;
    if (w.g.clip.on_ground) {
        if (c.forward) thrust(w, m, m.angle, c.forward * 2048);
        if (c.side) thrust(w, m, m.angle - ANGLE_90, c.side * 2048);
    }
    if ((c.forward || c.side) && m.state == STATE_PLAY) set_state(w, p.mobj, STATE_PLAY_RUN1);
}

OFA_FUNCTION void set_view_height(WorldBase& w, Player& p) {
    const Mobj& m = w.g.mobjs[p.mobj];
    p.bob = wrap_add(fixed_mul(m.momx, m.momx), fixed_mul(m.momy, m.momy)) >> 2;
    if (p.bob > MAX_BOB) p.bob = MAX_BOB;
    if (!w.g.clip.on_ground) {
        p.view_z = m.z + p.view_height;
        return;
    }
    const Fixed bob = fixed_mul(p.bob / 2, fine_sine(w, (FINE_ANGLES / 20 * w.g.level_tics) & FINE_MASK));
    if (p.mode == PLAYER_ALIVE) {
        p.view_height += p.delta_view_height;
        if (p.view_height > VIEW_HEIGHT) {
            p.view_height = VIEW_HEIGHT;
            p.delta_view_height = 0;
        }
        if (p.view_height < VIEW_HEIGHT / 2) {
            p.view_height = VIEW_HEIGHT / 2;
            if (p.delta_view_height <= 0) p.delta_view_height = 1;
        }
        if (p.delta_view_height) {
            p.delta_view_height += UNIT / 4;
            if (!p.delta_view_height) p.delta_view_height = 1;
        }
    }
    p.view_z = m.z + p.view_height + bob;
    if (p.view_z > m.ceilingz - 4 * UNIT) p.view_z = m.ceilingz - 4 * UNIT;
}

template <class W>
OFA_FUNCTION void use_lines(W& w, int index) {
    const Mobj& m = w.g.mobjs[index];
    const Fixed x2 = wrap_add(m.x, wrap_mul(USE_RANGE >> 16, cosine_of(w, m.angle)));
    const Fixed y2 = wrap_add(m.y, wrap_mul(USE_RANGE >> 16, sine_of(w, m.angle)));
    walk_path(w, m.x, m.y, x2, y2, PATH_LINES, [&](const Intercept& in) {
        if (!w.g.lines[in.line].special) {
            find_opening(w, in.line);
            const bool open = w.g.clip.open_range > 0;
            if (!open) start_sound(w, index, SOUND_NOWAY);
            return open;
        }
        use_special_line(w, in.line, side_of_line(w, m.x, m.y, w.lines[in.line]), index);
        return false;
    });
}

template <class W>
OFA_FUNCTION void think_dead_player(W& w, Player& p) {
    Game& g = w.g;
    Mobj& m = g.mobjs[p.mobj];
    tick_weapon(w, p);
    if (p.view_height > 6 * UNIT) p.view_height -= UNIT;
    if (p.view_height < 6 * UNIT) p.view_height = 6 * UNIT;
    p.delta_view_height = 0;
    g.clip.on_ground = m.z <= m.floorz;
    set_view_height(w, p);
    if (p.attacker != NONE && p.attacker != p.mobj) {
        const Mobj& killer = g.mobjs[p.attacker];
        const Angle angle = angle_to(w, m.x, m.y, killer.x, killer.y);
        const Angle delta = angle - m.angle;
        if (delta < DEATH_TURN || delta > 0u - DEATH_TURN) {
            m.angle = angle;
            if (p.damage_count) --p.damage_count;
        } else {
            m.angle += delta < ANGLE_180 ? DEATH_TURN : 0u - DEATH_TURN;
        }
    } else if (p.damage_count) {
        --p.damage_count;
    }
    if (p.command.buttons & BUTTON_USE) p.mode = PLAYER_REBORN;
}

OFA_FUNCTION void change_weapon(WorldBase& w, Player& p) {
    int weapon = (p.command.buttons >> BUTTON_WEAPON_SHIFT) & 7;
    if (weapon == WEAPON_FIST && p.weapon_owned[WEAPON_CHAINSAW] &&
        !(p.ready_weapon == WEAPON_CHAINSAW && p.powers[POWER_STRENGTH]))
        weapon = WEAPON_CHAINSAW;
    if (w.g.commercial && weapon == WEAPON_SHOTGUN && p.weapon_owned[WEAPON_SUPER_SHOTGUN] &&
        p.ready_weapon != WEAPON_SUPER_SHOTGUN)
        weapon = WEAPON_SUPER_SHOTGUN;
    if (p.weapon_owned[weapon] && weapon != p.ready_weapon) p.pending_weapon = int8_t(weapon);
}

OFA_FUNCTION bool blinks_on(int tics) { return tics > 4 * 32 || (tics & 8); }

OFA_FUNCTION void tick_powers(WorldBase& w, Player& p) {
    if (p.powers[POWER_STRENGTH]) ++p.powers[POWER_STRENGTH];
    if (p.powers[POWER_INVULNERABLE]) --p.powers[POWER_INVULNERABLE];
    if (p.powers[POWER_INVISIBLE] && --p.powers[POWER_INVISIBLE] == 0) w.g.mobjs[p.mobj].flags &= ~uint32_t(MF_SHADOW);
    if (p.powers[POWER_LIGHT]) --p.powers[POWER_LIGHT];
    if (p.powers[POWER_SUIT]) --p.powers[POWER_SUIT];
    if (p.damage_count) --p.damage_count;
    if (p.bonus_count) --p.bonus_count;
    p.fixed_colormap = 0;
    if (p.powers[POWER_INVULNERABLE]) p.fixed_colormap = blinks_on(p.powers[POWER_INVULNERABLE]) ? 32 : 0;
    else if (p.powers[POWER_LIGHT]) p.fixed_colormap = blinks_on(p.powers[POWER_LIGHT]) ? 1 : 0;
}

template <class W>
OFA_NOINLINE void think_player(W& w, Player& p) {
    Game& g = w.g;
    Mobj& m = g.mobjs[p.mobj];
    if (p.noclip) m.flags |= MF_NOCLIP;
    else m.flags &= ~uint32_t(MF_NOCLIP);
    TicCommand& c = p.command;
    if (m.flags & MF_JUSTATTACKED) {       // the chainsaw pulls
        c.turn = 0;
        c.forward = 100;
        c.side = 0;
        m.flags &= ~uint32_t(MF_JUSTATTACKED);
    }
    if (p.mode == PLAYER_DEAD) {
        think_dead_player(w, p);
        return;
    }
    if (m.reactiontime) --m.reactiontime;
    else move_player(w, p);
    set_view_height(w, p);
    if (g.sectors[m.sector].special) feel_floor(w, p);
    if (c.buttons & BUTTON_SPECIAL) c.buttons = 0;
    if (c.buttons & BUTTON_CHANGE) change_weapon(w, p);
    if (!(c.buttons & BUTTON_USE)) {
        p.use_down = 0;
    } else if (!p.use_down) {
        use_lines(w, p.mobj);
        p.use_down = 1;
    }
    tick_weapon(w, p);
    tick_powers(w, p);
}

}  // namespace doom
