// Events at the death of the last boss of a level, and the icon of sin.
#pragma once

#include "attacks.h"
#include "specials.h"

namespace doom {

OFA_FUNCTION bool another_lives(const Game& g, int index) {
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind == THINKER_MOBJ && node != index && g.mobjs[node].type == g.mobjs[index].type &&
            g.mobjs[node].health > 0)
            return true;
    }
    return false;
}

// The specials of boss deaths are started by a line that does not exist: only its tag is looked at.
OFA_FUNCTION void start_floors_with_tag(WorldBase& w, int tag, int type) {
    for_tagged_idle_sectors(w, tag, [&](int sector) { start_floor(w, 0, sector, type); });
}

template <class W>
OFA_FUNCTION void boss_death(W& w, int index) {
    Game& g = w.g;
    const int type = g.mobjs[index].type;
    if (g.commercial) {
        if (g.map != 7 || (type != THING_MANCUBUS && type != THING_ARACHNOTRON)) return;
    } else {
        switch (g.episode) {
            case 1: if (g.map != 8 || type != THING_BARON) return; break;
            case 2: if (g.map != 8 || type != THING_CYBERDEMON) return; break;
            case 3: if (g.map != 8 || type != THING_SPIDER_MASTERMIND) return; break;
            case 4:
                if (g.map != 6 && g.map != 8) return;
                if (type != (g.map == 6 ? THING_CYBERDEMON : THING_SPIDER_MASTERMIND)) return;
                break;
            default: if (g.map != 8) return;
        }
    }
    bool alive = false;
    for (int i = 0; i < MAX_PLAYERS; ++i) alive |= g.present[i] && g.players[i].health > 0;
    if (!alive || another_lives(g, index)) return;
    if (g.commercial) {
        if (type == THING_MANCUBUS) start_floors_with_tag(w, 666, FLOOR_LOWER_TO_LOWEST);
        else start_floors_with_tag(w, 667, FLOOR_RAISE_TO_TEXTURE);
        return;
    }
    if (g.episode == 1 || (g.episode == 4 && g.map == 8)) {
        start_floors_with_tag(w, 666, FLOOR_LOWER_TO_LOWEST);
        return;
    }
    if (g.episode == 4) {
        start_doors(w, 666, DOOR_BLAZE_OPEN);
        return;
    }
    leave_level(g, false);
}

template <class W>
OFA_FUNCTION void keen_die(W& w, int index) {
    w.g.mobjs[index].flags &= ~uint32_t(MF_SOLID);
    if (!another_lives(w.g, index)) start_doors(w, 666, DOOR_OPEN);
}

// --- icon of sin ---------------------------------------------------------------------------------------------------

OFA_FUNCTION void find_brain_targets(Game& g) {
    g.brain_target_count = g.brain_target_next = 0;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
        if (g.thinkers[node].kind == THINKER_MOBJ && g.mobjs[node].type == THING_BRAIN_TARGET &&
            g.brain_target_count < MAX_BRAIN_TARGETS)
            g.brain_targets[g.brain_target_count++] = node;
    }
}

template <class W>
OFA_FUNCTION void brain_explosion(W& w, Fixed x, Fixed y) {
    const Fixed z = 128 + next_random(w) * 2 * UNIT;
    const int index = spawn_mobj(w, x, y, z, THING_ROCKET);
    Mobj& m = w.g.mobjs[index];
    m.momz = next_random(w) * 512;
    set_state(w, index, STATE_BRAINEXPLODE1);
    shorten_tics(w, m, 7);
}

template <class W>
OFA_FUNCTION void brain_scream(W& w, int index) {
    start_sound_everywhere(w, SOUND_BOSDTH);
    const Mobj& m = w.g.mobjs[index];
    for (Fixed x = m.x - 196 * UNIT; x < m.x + 320 * UNIT; x += 8 * UNIT) brain_explosion(w, x, m.y - 320 * UNIT);
}

template <class W>
OFA_FUNCTION void brain_explode(W& w, int index) {
    const Fixed y = w.g.mobjs[index].y;
    const Fixed x = wrap_add(w.g.mobjs[index].x, random_difference(w) * 2048);
    brain_explosion(w, x, y);
}

template <class W>
OFA_FUNCTION void brain_spit(W& w, int index) {
    Game& g = w.g;
    g.brain_easy ^= 1;
    if (g.skill <= 1 && !g.brain_easy) return;
    if (g.brain_target_count == 0) return;
    const int target = g.brain_targets[g.brain_target_next];
    g.brain_target_next = (g.brain_target_next + 1) % g.brain_target_count;
    const int cube = spawn_missile(w, index, target, THING_SPAWN_CUBE);
    Mobj& c = g.mobjs[cube];
    c.target = target;
    start_sound_everywhere(w, SOUND_BOSPIT);
    const int tics = w.states[c.state].tics;
    if (c.momy != 0 && tics > 0) c.reactiontime = wrap_sub(g.mobjs[target].y, g.mobjs[index].y) / c.momy / tics;
}

OFA_FUNCTION int monster_of_cube(int r) {
    return r < 50 ? THING_IMP : r < 90 ? THING_DEMON : r < 120 ? THING_SPECTRE : r < 130 ? THING_PAIN_ELEMENTAL
         : r < 160 ? THING_CACODEMON : r < 162 ? THING_ARCH_VILE : r < 172 ? THING_REVENANT : r < 192 ? THING_ARACHNOTRON
         : r < 222 ? THING_MANCUBUS : r < 246 ? THING_HELL_KNIGHT : THING_BARON;
}

// A spawn cube in flight; where it lands a monster appears.
template <class W>
OFA_FUNCTION void fly_cube(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (--m.reactiontime) return;
    if (m.target == NONE) return;
    const Mobj& target = g.mobjs[m.target];
    start_sound(w, spawn_mobj(w, target.x, target.y, target.z, THING_SPAWN_FIRE), SOUND_TELEPT);
    const int type = monster_of_cube(next_random(w));
    const int fresh = spawn_mobj(w, target.x, target.y, target.z, type);
    if (look_for_players(w, fresh, true)) set_state(w, fresh, w.types[type].see_state);
    teleport_move(w, fresh, g.mobjs[fresh].x, g.mobjs[fresh].y);
    remove_mobj(w, index);
}

}  // namespace doom
