// The face on the status bar, and the message line.
#pragma once

#include "fixed.h"

namespace doom {

constexpr int FACE_STRIDE = 8, FACE_TURN = 3, FACE_OUCH = 5, FACE_GRIN = 6, FACE_RAMPAGE = 7, FACE_GOD = 40, FACE_DEAD = 41;
constexpr int GRIN_TICS = 70, TURN_TICS = 35, STRAIGHT_TICS = 17, RAMPAGE_DELAY = 70, MUCH_PAIN = 20;
constexpr int MESSAGE_TICS = 4 * 35;

// First face of the row for the player's health.
OFA_FUNCTION int face_row(StatusBar& s, const Player& p) {
    const int health = p.health > 100 ? 100 : p.health;
    if (health != s.last_pain_health) {
        s.last_calc_pain = FACE_STRIDE * (((100 - health) * 5) / 101);
        s.last_pain_health = health;
    }
    return s.last_calc_pain;
}

OFA_FUNCTION void show_face(StatusBar& s, int priority, int tics, int face) {
    s.priority = priority;
    s.face_count = tics;
    s.face = face;
}

OFA_FUNCTION int face_towards_attacker(const WorldBase& w, const Player& p) {
    const Mobj &m = w.g.mobjs[p.mobj], &attacker = w.g.mobjs[p.attacker];
    const Angle angle = angle_to(w, m.x, m.y, attacker.x, attacker.y);
    const bool left_of_view = angle > m.angle;
    const Angle difference = left_of_view ? angle - m.angle : m.angle - angle;
    const bool right = left_of_view ? difference > ANGLE_180 : difference <= ANGLE_180;
    return difference < ANGLE_45 ? FACE_RAMPAGE : right ? FACE_TURN : FACE_TURN + 1;
}

OFA_FUNCTION void update_face(WorldBase& w, StatusBar& s, Player& p) {
    const bool ouch = p.health - s.old_health > MUCH_PAIN;   // the original's sign: only after healing
    if (s.priority < 10 && p.health == 0) show_face(s, 9, 1, FACE_DEAD);
    if (s.priority < 9 && p.bonus_count) {
        bool new_weapon = false;
        for (int i = 0; i < WEAPON_TYPES; ++i) {
            new_weapon |= s.old_weapons[i] != p.weapon_owned[i];
            s.old_weapons[i] = p.weapon_owned[i];
        }
        if (new_weapon) show_face(s, 8, GRIN_TICS, face_row(s, p) + FACE_GRIN);
    }
    if (s.priority < 8 && p.damage_count && p.attacker != NONE && p.attacker != p.mobj)
        show_face(s, 7, TURN_TICS, face_row(s, p) + (ouch ? FACE_OUCH : face_towards_attacker(w, p)));
    if (s.priority < 7 && p.damage_count)
        show_face(s, ouch ? 7 : 6, TURN_TICS, face_row(s, p) + (ouch ? FACE_OUCH : FACE_RAMPAGE));
    if (s.priority < 6) {
        if (!p.attack_down) {
            s.rampage_tics = -1;
        } else if (s.rampage_tics == -1) {
            s.rampage_tics = RAMPAGE_DELAY;
        } else if (--s.rampage_tics == 0) {
            show_face(s, 5, 1, face_row(s, p) + FACE_RAMPAGE);
            s.rampage_tics = 1;
        }
    }
    if (s.priority < 5 && (p.god || p.powers[POWER_INVULNERABLE])) show_face(s, 4, 1, FACE_GOD);
    if (s.face_count == 0) show_face(s, 0, STRAIGHT_TICS, face_row(s, p) + s.random % 3);
    --s.face_count;
}

OFA_FUNCTION void tick_status_bar(WorldBase& w) {
    StatusBar& s = w.g.status_bar;
    Player& p = w.g.players[w.g.viewed];
    s.random = next_cosmetic_random(w);
    update_face(w, s, p);
    s.old_health = p.health;
    if (p.message_tics) --p.message_tics;
    if (p.message) {
        p.shown_message = p.message;
        p.message = 0;
        p.message_tics = MESSAGE_TICS;
    }
}

}  // namespace doom
