// The actions of states, by number.
#pragma once

#include "bosses.h"
#include "pickups.h"
#include "weapons.h"

namespace doom {

// Actions that change no state but the object's own fields.
OFA_FUNCTION bool run_simple_action(WorldBase& w, int index, int action) {
    Mobj& m = w.g.mobjs[index];
    switch (action) {
        case ACTION_FACE_TARGET:
            face_target(w, index);
            return true;
        case ACTION_FAT_RAISE:
            face_target(w, index);
            start_sound(w, index, SOUND_MANATK);
            return true;
        case ACTION_SKEL_WHOOSH:
            if (m.target == NONE) return true;
            face_target(w, index);
            start_sound(w, index, SOUND_SKESWG);
            return true;
        case ACTION_FALL: m.flags &= ~uint32_t(MF_SOLID); return true;
        case ACTION_SCREAM: cry(w, index, type_of(w, m).death_sound); return true;
        case ACTION_PAIN: start_sound(w, index, type_of(w, m).pain_sound); return true;
        case ACTION_PLAYER_SCREAM: start_sound(w, index, SOUND_PLDETH); return true;
        case ACTION_XSCREAM: start_sound(w, index, SOUND_SLOP); return true;
        case ACTION_VILE_START: start_sound(w, index, SOUND_VILATK); return true;
        case ACTION_BRAIN_PAIN: start_sound_everywhere(w, SOUND_BOSPN); return true;
        case ACTION_BRAIN_AWAKE:
            find_brain_targets(w.g);
            start_sound_everywhere(w, SOUND_BOSSIT);
            return true;
        default: return false;
    }
}

// A step that is heard.
template <class W>
OFA_FUNCTION int stamp(W& w, int index, int sound) {
    start_sound(w, index, sound);
    return chase(w, index);
}

// Actions that are the first of a state a monster is woken or hurt into.
template <class W>
OFA_FUNCTION bool run_chase_action(W& w, int index, int action, int& led_to) {
    switch (action) {
        case ACTION_LOOK: led_to = look(w, index); return true;
        case ACTION_CHASE: led_to = chase(w, index); return true;
        case ACTION_HOOF: led_to = stamp(w, index, SOUND_HOOF); return true;
        case ACTION_METAL: led_to = stamp(w, index, SOUND_METAL); return true;
        case ACTION_BABY_METAL: led_to = stamp(w, index, SOUND_BSPWLK); return true;
        case ACTION_VILE_CHASE: led_to = vile_chase(w, index); return true;
        case ACTION_CPOS_REFIRE: led_to = stop_firing_without_target(w, index, 40); return true;
        case ACTION_SPID_REFIRE: led_to = stop_firing_without_target(w, index, 10); return true;
        case ACTION_BRAIN_SCREAM: brain_scream(w, index); return true;
        default: return false;
    }
}

template <class W>
OFA_FUNCTION void run_attack_action(W& w, int index, int action) {
    Mobj& m = w.g.mobjs[index];
    const bool has_target = m.target != NONE;
    switch (action) {
        case ACTION_EXPLODE: radius_attack(w, index, m.target, 128); return;
        case ACTION_BFGSPRAY: bfg_spray(w, index); return;
        case ACTION_POS_ATTACK: monster_gun(w, index, 1, SOUND_PISTOL); return;
        case ACTION_CPOS_ATTACK: monster_gun(w, index, 1, SOUND_SHOTGN); return;
        case ACTION_SPOS_ATTACK: monster_gun(w, index, 3, SOUND_SHOTGN); return;
        case ACTION_TRACER: steer_tracer(w, index); return;
        case ACTION_SKEL_MISSILE: fire_tracer(w, index); return;
        case ACTION_FAT_ATTACK1: mancubus_attack(w, index, 1); return;
        case ACTION_FAT_ATTACK2: mancubus_attack(w, index, 2); return;
        case ACTION_FAT_ATTACK3: mancubus_attack(w, index, 3); return;
        case ACTION_SKULL_ATTACK: charge(w, index); return;
        case ACTION_VILE_TARGET: start_vile_fire(w, index); return;
        case ACTION_VILE_ATTACK: vile_attack(w, index); return;
        case ACTION_START_FIRE:
            start_sound(w, index, SOUND_FLAMST);
            place_fire(w, index);
            return;
        case ACTION_FIRE_CRACKLE:
            start_sound(w, index, SOUND_FLAME);
            place_fire(w, index);
            return;
        case ACTION_FIRE: place_fire(w, index); return;
        case ACTION_PAIN_ATTACK:
            if (!has_target) return;
            face_target(w, index);
            spit_lost_soul(w, index, m.angle);
            return;
        case ACTION_PAIN_DIE:
            m.flags &= ~uint32_t(MF_SOLID);
            spit_lost_soul(w, index, m.angle + ANGLE_90);
            spit_lost_soul(w, index, m.angle + ANGLE_180);
            spit_lost_soul(w, index, m.angle + ANGLE_270);
            return;
        case ACTION_BOSS_DEATH: boss_death(w, index); return;
        case ACTION_KEEN_DIE: keen_die(w, index); return;
        case ACTION_BRAIN_EXPLODE: brain_explode(w, index); return;
        case ACTION_BRAIN_DIE: leave_level(w.g, false); return;
        case ACTION_BRAIN_SPIT: brain_spit(w, index); return;
        case ACTION_SPAWN_SOUND:
            start_sound(w, index, SOUND_BOSCUB);
            fly_cube(w, index);
            return;
        case ACTION_SPAWN_FLY: fly_cube(w, index); return;
        default: break;
    }
    if (!has_target) return;
    switch (action) {
        case ACTION_TROOP_ATTACK:
            face_target(w, index);
            if (!monster_melee(w, index, 8, 3, SOUND_CLAW)) spawn_missile(w, index, m.target, THING_IMP_SHOT);
            return;
        case ACTION_SARG_ATTACK:
            face_target(w, index);
            monster_melee(w, index, 10, 4, SOUND_NONE);
            return;
        case ACTION_HEAD_ATTACK:
            face_target(w, index);
            if (!monster_melee(w, index, 6, 10, SOUND_NONE)) spawn_missile(w, index, m.target, THING_CACODEMON_SHOT);
            return;
        case ACTION_BRUIS_ATTACK:
            if (!monster_melee(w, index, 8, 10, SOUND_CLAW)) spawn_missile(w, index, m.target, THING_BARON_SHOT);
            return;
        case ACTION_SKEL_FIST:
            face_target(w, index);
            monster_melee(w, index, 10, 6, SOUND_SKEPCH);
            return;
        case ACTION_CYBER_ATTACK:
            face_target(w, index);
            spawn_missile(w, index, m.target, THING_ROCKET);
            return;
        case ACTION_BSPI_ATTACK:
            face_target(w, index);
            spawn_missile(w, index, m.target, THING_ARACHNOTRON_SHOT);
            return;
        default: return;
    }
}

// Returns the state the action leads to, or KEEP_STATE.
template <class W>
OFA_NOINLINE int run_action(W& w, int index, int action) {
    int led_to = KEEP_STATE;
    if (run_simple_action(w, index, action)) return led_to;
    if constexpr (W::depth > 0) {
        auto in = inner(w);
        if (run_chase_action(in, index, action, led_to)) return led_to;
        if constexpr (W::depth == FULL_DEPTH) run_attack_action(in, index, action);
    }
    return led_to;
}

}  // namespace doom
