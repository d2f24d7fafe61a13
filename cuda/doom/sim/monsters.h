// How monsters look for somebody, walk, and decide to attack.
#pragma once

#include "missiles.h"

namespace doom {

enum Direction { EAST, NORTH_EAST, NORTH, NORTH_WEST, WEST, SOUTH_WEST, SOUTH, SOUTH_EAST, NO_DIRECTION };

OFA_FUNCTION int opposite(int direction) { return direction == NO_DIRECTION ? NO_DIRECTION : (direction + 4) & 7; }

// Step of speed 1 in a direction. A diagonal is 47000, a little more than the root of a half.
OFA_FUNCTION Fixed step_x(int direction) {
    const Fixed diagonal = 47000;
    switch (direction) {
        case EAST: return UNIT;
        case NORTH_EAST:
        case SOUTH_EAST: return diagonal;
        case WEST: return -UNIT;
        case NORTH_WEST:
        case SOUTH_WEST: return -diagonal;
        default: return 0;
    }
}
OFA_FUNCTION Fixed step_y(int direction) { return direction == NO_DIRECTION ? 0 : step_x((direction + 6) & 7); }

OFA_FUNCTION bool has_shootable_target(const Game& g, const Mobj& m) {
    return m.target != NONE && (g.mobjs[m.target].flags & MF_SHOOTABLE);
}

OFA_FUNCTION Fixed distance_to_target(const Game& g, const Mobj& m) {
    const Mobj& t = g.mobjs[m.target];
    return approximate_distance(wrap_sub(t.x, m.x), wrap_sub(t.y, m.y));
}

OFA_FUNCTION bool in_melee_range(WorldBase& w, int index) {
    const Mobj& m = w.g.mobjs[index];
    if (m.target == NONE) return false;
    const Fixed reach = MELEE_RANGE - 20 * UNIT + type_of(w, w.g.mobjs[m.target]).radius;
    return distance_to_target(w.g, m) < reach && can_see(w, index, m.target);
}

// Whether the monster fires now: surer the nearer the target is.
OFA_FUNCTION bool wants_to_fire(WorldBase& w, int index) {
    Mobj& m = w.g.mobjs[index];
    if (!can_see(w, index, m.target)) return false;
    if (m.flags & MF_JUSTHIT) {
        m.flags &= ~uint32_t(MF_JUSTHIT);
        return true;
    }
    if (m.reactiontime) return false;
    Fixed reach = distance_to_target(w.g, m) - 64 * UNIT;
    if (!type_of(w, m).melee_state) reach -= 128 * UNIT;
    int distance = reach >> 16;
    if (m.type == THING_ARCH_VILE && distance > 14 * 64) return false;
    if (m.type == THING_REVENANT) {
        if (distance < 196) return false;
        distance >>= 1;
    }
    if (m.type == THING_CYBERDEMON || m.type == THING_SPIDER_MASTERMIND || m.type == THING_LOST_SOUL) distance >>= 1;
    const int limit = m.type == THING_CYBERDEMON ? 160 : 200;
    if (distance > limit) distance = limit;
    return next_random(w) >= distance;
}

// One step in the direction the monster faces. A flyer may change height instead, a walker may open a door.
template <class W>
OFA_FUNCTION bool walk(W& w, int index) {
    Game& g = w.g;
    Clip& c = g.clip;
    Mobj& m = g.mobjs[index];
    if (m.movedir == NO_DIRECTION) return false;
    const int speed = type_of(w, m).speed;
    const Fixed x = wrap_add(m.x, wrap_mul(speed, step_x(m.movedir)));
    const Fixed y = wrap_add(m.y, wrap_mul(speed, step_y(m.movedir)));
    if (try_move(w, index, x, y)) {
        m.flags &= ~uint32_t(MF_INFLOAT);
        if (!(m.flags & MF_FLOAT)) m.z = m.floorz;
        return true;
    }
    if ((m.flags & MF_FLOAT) && c.float_ok) {
        m.z += m.z < c.floor_z ? FLOAT_SPEED : -FLOAT_SPEED;
        m.flags |= MF_INFLOAT;
        return true;
    }
    if (!c.special_count) return false;
    m.movedir = NO_DIRECTION;
    bool opened = false;
    while (c.special_count-- > 0)
        if (use_special_line(w, c.special_lines[c.special_count], 0, index)) opened = true;
    return opened;
}

template <class W>
OFA_FUNCTION bool start_walking(W& w, int index, int direction) {
    Mobj& m = w.g.mobjs[index];
    m.movedir = direction;
    if (!walk(w, index)) return false;
    m.movecount = next_random(w) & 15;
    return true;
}

// A new direction towards the target: straight, then along one axis, then the old one, then any.
template <class W>
OFA_FUNCTION void choose_direction(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const Mobj& target = g.mobjs[m.target];
    const int old = m.movedir, back = opposite(old);
    const Fixed dx = wrap_sub(target.x, m.x), dy = wrap_sub(target.y, m.y);
    int first = dx > 10 * UNIT ? EAST : dx < -10 * UNIT ? WEST : NO_DIRECTION;
    int second = dy < -10 * UNIT ? SOUTH : dy > 10 * UNIT ? NORTH : NO_DIRECTION;
    if (first != NO_DIRECTION && second != NO_DIRECTION) {
        const int diagonal = dy < 0 ? (dx > 0 ? SOUTH_EAST : SOUTH_WEST) : (dx > 0 ? NORTH_EAST : NORTH_WEST);
        m.movedir = diagonal;
        if (diagonal != back && start_walking(w, index, diagonal)) return;
    }
    if (next_random(w) > 200 || magnitude(dy) > magnitude(dx)) {
        const int swapped = first;
        first = second;
        second = swapped;
    }
    if (first == back) first = NO_DIRECTION;
    if (second == back) second = NO_DIRECTION;
    if (first != NO_DIRECTION && start_walking(w, index, first)) return;
    if (second != NO_DIRECTION && start_walking(w, index, second)) return;
    if (old != NO_DIRECTION && start_walking(w, index, old)) return;
    const bool up = next_random(w) & 1;
    for (int i = 0; i < 8; ++i) {
        const int direction = up ? i : 7 - i;
        if (direction != back && start_walking(w, index, direction)) return;
    }
    if (back != NO_DIRECTION && start_walking(w, index, back)) return;
    m.movedir = NO_DIRECTION;
}

// Takes a living player in sight as target; looks at two players a call, only ahead unless `all_around` or very near.
OFA_FUNCTION bool look_for_players(WorldBase& w, int index, bool all_around) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const int stop = (m.lastlook - 1) & 3;
    int seen = 0;
    for (;; m.lastlook = (m.lastlook + 1) & 3) {
        if (!g.present[m.lastlook]) continue;
        if (seen++ == 2 || m.lastlook == stop) return false;
        const Player& p = g.players[m.lastlook];
        if (p.health <= 0 || !can_see(w, index, p.mobj)) continue;
        const Mobj& body = g.mobjs[p.mobj];
        if (!all_around) {
            const Angle angle = angle_to(w, m.x, m.y, body.x, body.y) - m.angle;
            if (angle > ANGLE_90 && angle < ANGLE_270 &&
                approximate_distance(wrap_sub(body.x, m.x), wrap_sub(body.y, m.y)) > MELEE_RANGE)
                continue;
        }
        m.target = p.mobj;
        return true;
    }
}

// The cry of a monster that wakes or dies. Some are one of several; the choice is drawn from the simulation's stream. The
// two largest are heard everywhere.
OFA_FUNCTION void cry(WorldBase& w, int index, int sound) {
    const bool at_sight = sound >= SOUND_POSIT1 && sound <= SOUND_BGSIT2;
    const bool at_death = sound >= SOUND_PODTH1 && sound <= SOUND_BGDTH2;
    if (at_sight || at_death) next_random(w);
    const int type = w.g.mobjs[index].type;
    if (type == THING_SPIDER_MASTERMIND || type == THING_CYBERDEMON) start_sound_everywhere(w, sound);
    else start_sound(w, index, sound);
}

// Idle: wakes to a noise or a player in sight. Returns the state this leads to.
OFA_FUNCTION int look(WorldBase& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const int heard = g.sectors[m.sector].sound_target;
    m.threshold = 0;
    bool awake = false;
    if (heard != NONE && (g.mobjs[heard].flags & MF_SHOOTABLE)) {
        m.target = heard;
        awake = !(m.flags & MF_AMBUSH) || can_see(w, index, heard);
    }
    if (!awake && !look_for_players(w, index, false)) return KEEP_STATE;
    cry(w, index, type_of(w, m).see_sound);
    return type_of(w, m).see_state;
}

// Turns an eighth of a circle towards the walking direction.
OFA_FUNCTION void turn_to_walk(Mobj& m) {
    if (m.movedir >= NO_DIRECTION) return;
    m.angle &= 7u << 29;
    const int32_t delta = int32_t(m.angle - (Angle(m.movedir) << 29));
    if (delta > 0) m.angle -= ANGLE_45;
    else if (delta < 0) m.angle += ANGLE_45;
}

// One step of the hunt. Returns the state this leads to.
template <class W>
OFA_NOINLINE int chase(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const ThingType& t = type_of(w, m);
    if (m.reactiontime) --m.reactiontime;
    if (m.threshold) {
        if (m.target == NONE || g.mobjs[m.target].health <= 0) m.threshold = 0;
        else --m.threshold;
    }
    turn_to_walk(m);
    if (!has_shootable_target(g, m)) {
        return look_for_players(w, index, true) ? KEEP_STATE : t.spawn_state;
    }
    if (m.flags & MF_JUSTATTACKED) {
        m.flags &= ~uint32_t(MF_JUSTATTACKED);
        if (!is_fast(w)) choose_direction(w, index);
        return KEEP_STATE;
    }
    if (t.melee_state && in_melee_range(w, index)) {
        start_sound(w, index, t.attack_sound);
        return t.melee_state;
    }
    if (t.missile_state && (is_fast(w) || !m.movecount) && wants_to_fire(w, index)) {
        m.flags |= MF_JUSTATTACKED;
        return t.missile_state;
    }
    if ((g.cooperative || g.deathmatch) && !m.threshold && !can_see(w, index, m.target) &&
        look_for_players(w, index, true))
        return KEEP_STATE;
    if (--m.movecount < 0 || !walk(w, index)) choose_direction(w, index);
    if (t.active_sound && next_random(w) < 3) start_sound(w, index, t.active_sound);
    return KEEP_STATE;
}

OFA_FUNCTION void face_target(WorldBase& w, int index) {
    Mobj& m = w.g.mobjs[index];
    if (m.target == NONE) return;
    const Mobj& target = w.g.mobjs[m.target];
    m.flags &= ~uint32_t(MF_AMBUSH);
    m.angle = angle_to(w, m.x, m.y, target.x, target.y);
    if (target.flags & MF_SHADOW) m.angle += Angle(random_difference(w)) << 21;
}

}  // namespace doom
