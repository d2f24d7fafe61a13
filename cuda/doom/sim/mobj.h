// Map objects: states, creation, removal, momentum and gravity.
#pragma once

#include "move.h"
#include "slide.h"
#include "sound.h"

namespace doom {

constexpr Fixed GRAVITY = UNIT, MAX_MOVE = 30 * UNIT, STOP_SPEED = 0x1000, FRICTION = 0xE800, FLOAT_SPEED = 4 * UNIT;
constexpr Fixed VIEW_HEIGHT = 41 * UNIT;
constexpr Fixed ON_FLOOR = FIXED_MIN, ON_CEILING = FIXED_MAX;

OFA_FUNCTION void remove_mobj(WorldBase& w, int index) {
    unlink_position(w, index);
    w.g.thinkers[index].kind = THINKER_REMOVED;
}

OFA_FUNCTION bool is_removed(const Game& g, int index) { return g.thinkers[index].kind != THINKER_MOBJ; }

OFA_FUNCTION void show_state(WorldBase& w, Mobj& m, int state) {
    const State& s = w.states[state];
    m.state = int16_t(state);
    m.tics = state_tics(w, state);
    m.sprite = s.sprite;
    m.frame = state_frame(s);
}

constexpr int KEEP_STATE = -2;

// Enters a state and runs its action; states of no length lead on at once. Where an action enters another state of the
// same object that is the last thing it does: it returns that state, or KEEP_STATE. False when the object is gone.
template <class W>
OFA_NOINLINE bool set_state(W& w, int index, int state) {
    Mobj& m = w.g.mobjs[index];
    do {
        if (state == STATE_NULL) {
            m.state = STATE_NULL;
            remove_mobj(w, index);
            return false;
        }
        show_state(w, m, state);
        const State& s = w.states[state];
        const int led_to = s.action ? run_action(w, index, s.action) : KEEP_STATE;
        if (led_to != KEEP_STATE) {
            state = led_to;
            m.tics = 0;
        } else {
            state = s.next;
        }
    } while (m.tics == 0);
    return true;
}

// A new object in its first state, whose action does not run. `z` may be ON_FLOOR or ON_CEILING.
OFA_FUNCTION int spawn_mobj(WorldBase& w, Fixed x, Fixed y, Fixed z, int type) {
    Game& g = w.g;
    const ThingType& t = w.types[type];
    const int index = new_mobj(g);
    Mobj& m = g.mobjs[index];
    m.type = int16_t(type);
    m.x = x;
    m.y = y;
    m.radius = t.radius;
    m.height = t.height;
    m.flags = t.flags;
    m.health = t.health;
    if (g.skill != 4) m.reactiontime = t.reaction_time;
    m.target = m.tracer = m.player = NONE;
    m.sector_next = m.sector_prev = m.block_next = m.block_prev = NONE;
    m.lastlook = next_random(w) % MAX_PLAYERS;
    show_state(w, m, t.spawn_state);
    link_position(w, index);
    m.floorz = g.sectors[m.sector].floor_height;
    m.ceilingz = g.sectors[m.sector].ceiling_height;
    m.z = z == ON_FLOOR ? m.floorz : z == ON_CEILING ? wrap_sub(m.ceilingz, m.height) : z;
    return index;
}

// Shortens the state the object is in by 0-3 tics, so that equal objects do not move in step.
OFA_FUNCTION void shorten_tics(WorldBase& w, Mobj& m, int mask = 3) {
    m.tics -= next_random(w) & mask;
    if (m.tics < 1) m.tics = 1;
}

template <class W>
OFA_FUNCTION void explode_missile(W& w, int index) {
    Mobj& m = w.g.mobjs[index];
    m.momx = m.momy = m.momz = 0;
    set_state(w, index, type_of(w, m).death_state);
    shorten_tics(w, m);
    m.flags &= ~uint32_t(MF_MISSILE);
    start_sound(w, index, type_of(w, m).death_sound);
}

OFA_FUNCTION Fixed clamp(Fixed v, Fixed low, Fixed high) { return v < low ? low : v > high ? high : v; }

OFA_FUNCTION bool is_slow(Fixed v) { return v > -STOP_SPEED && v < STOP_SPEED; }

template <class W>
OFA_FUNCTION void move_horizontally(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.momx == 0 && m.momy == 0) {
        if (m.flags & MF_SKULLFLY) {
            m.flags &= ~uint32_t(MF_SKULLFLY);
            m.momx = m.momy = m.momz = 0;
            set_state(w, index, type_of(w, m).spawn_state);
        }
        return;
    }
    m.momx = clamp(m.momx, -MAX_MOVE, MAX_MOVE);
    m.momy = clamp(m.momy, -MAX_MOVE, MAX_MOVE);
    Fixed left_x = m.momx, left_y = m.momy;
    do {
        Fixed to_x, to_y;
        if (left_x > MAX_MOVE / 2 || left_y > MAX_MOVE / 2) {
            to_x = m.x + left_x / 2;
            to_y = m.y + left_y / 2;
            left_x >>= 1;
            left_y >>= 1;
        } else {
            to_x = m.x + left_x;
            to_y = m.y + left_y;
            left_x = left_y = 0;
        }
        if (!try_move(w, index, to_x, to_y)) {
            if (m.player != NONE) {
                slide_move(w, index);
            } else if (m.flags & MF_MISSILE) {
                const int line = g.clip.ceiling_line;
                if (line != NONE && w.lines[line].sector[1] >= 0 &&
                    g.sectors[w.lines[line].sector[1]].ceiling_flat == w.wad.sky_flat) {
                    remove_mobj(w, index);
                    return;
                }
                explode_missile(w, index);
            } else {
                m.momx = m.momy = 0;
            }
        }
    } while (left_x || left_y);

    if (m.flags & (MF_MISSILE | MF_SKULLFLY)) return;
    if (m.z > m.floorz) return;
    const bool sliding = m.momx > UNIT / 4 || m.momx < -UNIT / 4 || m.momy > UNIT / 4 || m.momy < -UNIT / 4;
    if ((m.flags & MF_CORPSE) && sliding && m.floorz != g.sectors[m.sector].floor_height) return;
    const TicCommand* command = m.player == NONE ? nullptr : &g.players[m.player].command;
    if (is_slow(m.momx) && is_slow(m.momy) && (!command || (command->forward == 0 && command->side == 0))) {
        if (command) {
            const int body = g.players[m.player].mobj;
            const int state = g.mobjs[body].state;
            if (state >= STATE_PLAY_RUN1 && state < STATE_PLAY_RUN1 + 4) set_state(w, body, STATE_PLAY);
        }
        m.momx = m.momy = 0;
    } else {
        m.momx = fixed_mul(m.momx, FRICTION);
        m.momy = fixed_mul(m.momy, FRICTION);
    }
}

template <class W>
OFA_FUNCTION void move_vertically(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.player != NONE && m.z < m.floorz) {
        Player& p = g.players[m.player];
        p.view_height -= m.floorz - m.z;
        p.delta_view_height = (VIEW_HEIGHT - p.view_height) >> 3;
    }
    m.z = wrap_add(m.z, m.momz);
    if ((m.flags & MF_FLOAT) && m.target != NONE && !(m.flags & (MF_SKULLFLY | MF_INFLOAT))) {
        const Mobj& target = g.mobjs[m.target];
        const Fixed distance = approximate_distance(wrap_sub(m.x, target.x), wrap_sub(m.y, target.y));
        const Fixed delta = wrap_sub(wrap_add(target.z, m.height >> 1), m.z);
        if (delta < 0 && distance < wrap_sub(0, wrap_mul(delta, 3))) m.z -= FLOAT_SPEED;
        else if (delta > 0 && distance < wrap_mul(delta, 3)) m.z += FLOAT_SPEED;
    }
    if (m.z <= m.floorz) {
        if ((m.flags & MF_SKULLFLY) && w.wad.rules == RULES_ULTIMATE) m.momz = -m.momz;
        if (m.momz < 0) {
            if (m.player != NONE && m.momz < -GRAVITY * 8) {
                g.players[m.player].delta_view_height = m.momz >> 3;
                start_sound(w, index, SOUND_OOF);
            }
            m.momz = 0;
        }
        m.z = m.floorz;
        if ((m.flags & MF_MISSILE) && !(m.flags & MF_NOCLIP)) {
            explode_missile(w, index);
            return;
        }
    } else if (!(m.flags & MF_NOGRAVITY)) {
        m.momz = m.momz == 0 ? -GRAVITY * 2 : m.momz - GRAVITY;
    }
    if (wrap_add(m.z, m.height) > m.ceilingz) {
        if (m.momz > 0) m.momz = 0;
        m.z = wrap_sub(m.ceilingz, m.height);
        if (m.flags & MF_SKULLFLY) m.momz = -m.momz;
        if ((m.flags & MF_MISSILE) && !(m.flags & MF_NOCLIP)) explode_missile(w, index);
    }
}

// A monster killed long ago comes back where it was placed, on the hardest skill.
template <class W>
OFA_FUNCTION void respawn_monster(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const Fixed x = m.spawn.x * UNIT, y = m.spawn.y * UNIT;
    if (!check_position(w, index, x, y)) return;
    start_sound(w, spawn_mobj(w, m.x, m.y, g.sectors[m.sector].floor_height, THING_TELEPORT_FOG), SOUND_TELEPT);
    const int sector = w.subsectors[subsector_at(w, x, y)].sector;
    start_sound(w, spawn_mobj(w, x, y, g.sectors[sector].floor_height, THING_TELEPORT_FOG), SOUND_TELEPT);
    const int fresh = spawn_mobj(w, x, y, type_of(w, m).flags & MF_SPAWNCEILING ? ON_CEILING : ON_FLOOR, m.type);
    Mobj& n = g.mobjs[fresh];
    n.spawn = m.spawn;
    n.angle = ANGLE_45 * Angle(m.spawn.angle / 45);
    if (m.spawn.options & 8) n.flags |= MF_AMBUSH;
    n.reactiontime = 18;
    remove_mobj(w, index);
}

template <class W>
OFA_FUNCTION void think_mobj(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.momx || m.momy || (m.flags & MF_SKULLFLY)) {
        move_horizontally(w, index);
        if (is_removed(g, index)) return;
    }
    if (m.z != m.floorz || m.momz) {
        move_vertically(w, index);
        if (is_removed(g, index)) return;
    }
    if (m.tics != -1) {
        if (--m.tics == 0) set_state(w, index, w.states[m.state].next);
        return;
    }
    if (!(m.flags & MF_COUNTKILL) || !g.respawn_monsters) return;
    if (++m.movecount < 12 * 35 || (g.level_tics & 31) || next_random(w) > 4) return;
    respawn_monster(w, index);
}

}  // namespace doom
