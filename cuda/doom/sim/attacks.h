// The monsters' attacks.
#pragma once

#include "damage.h"
#include "monsters.h"

namespace doom {

constexpr Angle TRACER_TURN = 0xC000000, MANCUBUS_SPREAD = ANGLE_90 / 8;
constexpr Fixed LOST_SOUL_SPEED = 20 * UNIT;

// A bullet with the usual spread: 3 to 15 points.
template <class W>
OFA_FUNCTION void monster_bullet(W& w, int index, Angle ahead, Fixed slope) {
    const Angle angle = ahead + (Angle(random_difference(w)) << 20);
    const int damage = (next_random(w) % 5 + 1) * 3;
    shoot(w, index, angle, MISSILE_RANGE, slope, damage);
}

template <class W>
OFA_FUNCTION void monster_gun(W& w, int index, int bullets, int sound) {
    const Mobj& m = w.g.mobjs[index];
    if (m.target == NONE) return;
    start_sound(w, index, sound);
    face_target(w, index);
    const Angle ahead = m.angle;
    const Fixed slope = aim(w, index, ahead, MISSILE_RANGE);
    for (int i = 0; i < bullets; ++i) monster_bullet(w, index, ahead, slope);
}

// Claws or teeth for (1 .. sides) * factor points when near; true if they were used.
template <class W>
OFA_FUNCTION bool monster_melee(W& w, int index, int sides, int factor, int sound) {
    if (!in_melee_range(w, index)) return false;
    start_sound(w, index, sound);
    const int damage = (next_random(w) % sides + 1) * factor;
    damage_mobj(w, w.g.mobjs[index].target, index, index, damage);
    return true;
}

OFA_FUNCTION int stop_firing_without_target(WorldBase& w, int index, int stubborn) {
    Mobj& m = w.g.mobjs[index];
    face_target(w, index);
    if (next_random(w) < stubborn) return KEEP_STATE;
    const bool fires_on = m.target != NONE && w.g.mobjs[m.target].health > 0 && can_see(w, index, m.target);
    return fires_on ? KEEP_STATE : type_of(w, m).see_state;
}

// --- revenant ------------------------------------------------------------------------------------------------------

template <class W>
OFA_FUNCTION void fire_tracer(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.target == NONE) return;
    face_target(w, index);
    m.z += 16 * UNIT;
    const int missile = spawn_missile(w, index, m.target, THING_TRACER);
    m.z -= 16 * UNIT;
    Mobj& t = g.mobjs[missile];
    t.x = wrap_add(t.x, t.momx);
    t.y = wrap_add(t.y, t.momy);
    t.tracer = m.target;
}

template <class W>
OFA_FUNCTION void steer_tracer(W& w, int index) {
    Game& g = w.g;
    if (g.tic & 3) return;
    Mobj& m = g.mobjs[index];
    spawn_puff(w, m.x, m.y, m.z);
    const int smoke = spawn_mobj(w, wrap_sub(m.x, m.momx), wrap_sub(m.y, m.momy), m.z, THING_SMOKE);
    g.mobjs[smoke].momz = UNIT;
    shorten_tics(w, g.mobjs[smoke]);
    if (m.tracer == NONE || g.mobjs[m.tracer].health <= 0) return;
    const Mobj& target = g.mobjs[m.tracer];
    const Angle exact = angle_to(w, m.x, m.y, target.x, target.y);
    if (exact != m.angle) {
        if (exact - m.angle > ANGLE_180) {
            m.angle -= TRACER_TURN;
            if (exact - m.angle < ANGLE_180) m.angle = exact;
        } else {
            m.angle += TRACER_TURN;
            if (exact - m.angle > ANGLE_180) m.angle = exact;
        }
    }
    const int speed = type_speed(w, m.type);
    m.momx = fixed_mul(speed, cosine_of(w, m.angle));
    m.momy = fixed_mul(speed, sine_of(w, m.angle));
    const Fixed slope = climb(m, target, wrap_sub(wrap_add(target.z, 40 * UNIT), m.z), speed);
    m.momz += slope < m.momz ? -UNIT / 8 : UNIT / 8;
}

// --- mancubus ------------------------------------------------------------------------------------------------------

template <class W>
OFA_FUNCTION void turn_missile(W& w, int index, Angle turn) {
    Mobj& m = w.g.mobjs[index];
    m.angle += turn;
    const int speed = type_speed(w, m.type);
    m.momx = fixed_mul(speed, cosine_of(w, m.angle));
    m.momy = fixed_mul(speed, sine_of(w, m.angle));
}

template <class W>
OFA_FUNCTION void mancubus_attack(W& w, int index, int which) {
    Mobj& m = w.g.mobjs[index];
    if (m.target == NONE) return;
    face_target(w, index);
    if (which == 3) {
        turn_missile(w, spawn_missile(w, index, m.target, THING_MANCUBUS_SHOT), 0u - MANCUBUS_SPREAD / 2);
        turn_missile(w, spawn_missile(w, index, m.target, THING_MANCUBUS_SHOT), MANCUBUS_SPREAD / 2);
        return;
    }
    m.angle += which == 1 ? MANCUBUS_SPREAD : 0u - MANCUBUS_SPREAD;
    spawn_missile(w, index, m.target, THING_MANCUBUS_SHOT);
    turn_missile(w, spawn_missile(w, index, m.target, THING_MANCUBUS_SHOT),
                 which == 1 ? MANCUBUS_SPREAD : 0u - MANCUBUS_SPREAD * 2);
}

// --- lost soul, pain elemental -------------------------------------------------------------------------------------

template <class W>
OFA_FUNCTION void charge(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.target == NONE) return;
    const Mobj& target = g.mobjs[m.target];
    m.flags |= MF_SKULLFLY;
    start_sound(w, index, type_of(w, m).attack_sound);
    face_target(w, index);
    m.momx = fixed_mul(LOST_SOUL_SPEED, cosine_of(w, m.angle));
    m.momy = fixed_mul(LOST_SOUL_SPEED, sine_of(w, m.angle));
    m.momz = climb(m, target, wrap_sub(wrap_add(target.z, target.height >> 1), m.z), LOST_SOUL_SPEED);
}

template <class W>
OFA_FUNCTION void spit_lost_soul(W& w, int index, Angle angle) {
    Game& g = w.g;
    const Mobj& m = g.mobjs[index];
    int souls = 0;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next)
        souls += g.thinkers[node].kind == THINKER_MOBJ && g.mobjs[node].type == THING_LOST_SOUL;
    if (souls > 20) return;
    const Fixed ahead = 4 * UNIT + 3 * (type_of(w, m).radius + w.types[THING_LOST_SOUL].radius) / 2;
    const Fixed x = wrap_add(m.x, fixed_mul(ahead, cosine_of(w, angle)));
    const Fixed y = wrap_add(m.y, fixed_mul(ahead, sine_of(w, angle)));
    const int soul = spawn_mobj(w, x, y, m.z + 8 * UNIT, THING_LOST_SOUL);
    Mobj& s = g.mobjs[soul];
    if (!try_move(w, soul, s.x, s.y)) {
        damage_mobj(w, soul, index, index, 10000);
        return;
    }
    s.target = m.target;
    charge(w, soul);
}

// --- arch-vile -----------------------------------------------------------------------------------------------------

template <class W>
OFA_FUNCTION void place_fire(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.tracer == NONE || m.target == NONE || !can_see(w, m.target, m.tracer)) return;
    const Mobj& victim = g.mobjs[m.tracer];
    unlink_position(w, index);
    m.x = wrap_add(victim.x, fixed_mul(24 * UNIT, cosine_of(w, victim.angle)));
    m.y = wrap_add(victim.y, fixed_mul(24 * UNIT, sine_of(w, victim.angle)));
    m.z = victim.z;
    link_position(w, index);
}

template <class W>
OFA_FUNCTION void start_vile_fire(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.target == NONE) return;
    face_target(w, index);
    const Mobj& victim = g.mobjs[m.target];
    const int fire = spawn_mobj(w, victim.x, victim.x, victim.z, THING_ARCH_VILE_FIRE);  // x twice, as in the original
    m.tracer = fire;
    g.mobjs[fire].target = index;
    g.mobjs[fire].tracer = m.target;
    place_fire(w, fire);
}

template <class W>
OFA_FUNCTION void vile_attack(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if (m.target == NONE) return;
    face_target(w, index);
    if (!can_see(w, index, m.target)) return;
    start_sound(w, index, SOUND_BAREXP);
    Mobj& victim = g.mobjs[m.target];
    damage_mobj(w, m.target, index, index, 20);
    victim.momz = 1000 * UNIT / type_of(w, victim).mass;
    if (m.tracer == NONE) return;
    Mobj& fire = g.mobjs[m.tracer];
    fire.x = wrap_sub(victim.x, fixed_mul(24 * UNIT, cosine_of(w, m.angle)));
    fire.y = wrap_sub(victim.y, fixed_mul(24 * UNIT, sine_of(w, m.angle)));
    radius_attack(w, m.tracer, index, 70);
}

// Corpse the arch-vile's next step would touch and that has room to stand up, or -1.
template <class W>
OFA_FUNCTION int find_corpse(W& w, int index) {
    Game& g = w.g;
    const Mobj& m = g.mobjs[index];
    if (m.movedir == NO_DIRECTION) return NONE;
    const int speed = type_of(w, m).speed;
    const Fixed x = wrap_add(m.x, wrap_mul(speed, step_x(m.movedir)));
    const Fixed y = wrap_add(m.y, wrap_mul(speed, step_y(m.movedir)));
    int found = NONE;
    const Fixed box[4] = {y, y, x, x};
    for_blocks_around(w, box, 2 * LARGEST_RADIUS, [&](int bx, int by) {
        return for_things_in_block(w, bx, by, [&](int thing) {
            Mobj& corpse = g.mobjs[thing];
            if (!(corpse.flags & MF_CORPSE) || corpse.tics != -1 || !type_of(w, corpse).raise_state) return true;
            const Fixed reach = type_of(w, corpse).radius + w.types[THING_ARCH_VILE].radius;
            if (magnitude(wrap_sub(corpse.x, x)) > reach || magnitude(wrap_sub(corpse.y, y)) > reach) return true;
            corpse.momx = corpse.momy = 0;
            corpse.height <<= 2;
            const bool fits = check_position(w, thing, corpse.x, corpse.y);
            corpse.height >>= 2;
            if (!fits) return true;
            found = thing;
            return false;
        });
    });
    return found;
}

template <class W>
OFA_FUNCTION int vile_chase(W& w, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    const int found = find_corpse(w, index);
    if (found == NONE) return chase(w, index);
    const int target = m.target;
    m.target = found;
    face_target(w, index);
    m.target = target;
    Mobj& corpse = g.mobjs[found];
    const ThingType& t = type_of(w, corpse);
    start_sound(w, found, SOUND_SLOP);
    set_state(w, found, t.raise_state);
    corpse.height <<= 2;
    corpse.flags = t.flags;
    corpse.health = t.health;
    corpse.target = NONE;
    return STATE_VILE_HEAL1;
}

// --- the BFG's second act ------------------------------------------------------------------------------------------

// 40 rays from the one who fired, spread over a quarter circle around the ball's direction.
template <class W>
OFA_FUNCTION void bfg_spray(W& w, int index) {
    Game& g = w.g;
    const Mobj& ball = g.mobjs[index];
    const int shooter = ball.target;
    if (shooter == NONE) return;
    for (int ray = 0; ray < 40; ++ray) {
        aim(w, shooter, ball.angle - ANGLE_90 / 2 + ANGLE_90 / 40 * Angle(ray), 16 * 64 * UNIT);
        const int hit = g.clip.line_target;
        if (hit == NONE) continue;
        const Mobj& m = g.mobjs[hit];
        spawn_mobj(w, m.x, m.y, wrap_add(m.z, m.height >> 2), THING_BFG_SPRAY);
        int damage = 0;
        for (int i = 0; i < 15; ++i) damage += (next_random(w) & 7) + 1;
        damage_mobj(w, hit, shooter, shooter, damage);
    }
}

}  // namespace doom
