// Whether the player gets anywhere, whatever its plan says, and what it does when it does not.
#pragma once

#include "goals.h"

namespace doom {

constexpr Fixed ANCHOR_RADIUS = 96 * UNIT, STUCK_DISTANCE = 12 * UNIT;
constexpr int SAMPLE_TICS = 21;
constexpr int STALL_TICS = 35 * 3;       // pushing, circling or toggling around one place for so long is a stall
constexpr int PINNED_TICS = 35 * 12;     // and so is being there for so long, waits included
constexpr int SHOWN_STALL_TICS = 35;     // turning around in a corner is no stall
constexpr int ANCHORS_TO_FREEDOM = 8;    // so many places further on the stall before is history
constexpr int WANDER_TICS = 35 * 4;
constexpr int RANDOM_PLACES = 5;
constexpr int RELAX_TICS = 35 * 60 * 2;  // what failed is tried again when nothing new has happened for so long
constexpr int ENDLESS_TICS = 35 * 60 * 8;  // after so long in the level it also searches at random

OFA_FUNCTION void forget_progress(Script& s) {
    s.stall_tics = s.pinned_tics = s.anchors = s.breakouts = s.score = 0;
    s.sample_tics = s.moving_tics = 0;
    s.dodge_tics = s.wander_tics = s.random_places = 0;
    s.waiting = 0;
}

OFA_FUNCTION void drop_anchor(Script& s, const Mobj& m) {
    s.anchor_x = m.x;
    s.anchor_y = m.y;
    s.stall_tics = s.pinned_tics = 0;
}

// Tics for which the player has wanted to move and got nowhere; 0 while it moves, waits or fights.
OFA_FUNCTION uint32_t current_stall(const Game& g) {
    const Script& s = g.script;
    const bool playing = g.mode == MODE_LEVEL && g.players[g.viewed].mode == PLAYER_ALIVE;
    if (!playing || s.behaviour == BEHAVIOUR_MANUAL || s.waiting || s.stall_tics < SHOWN_STALL_TICS) return 0;
    return uint32_t(s.stall_tics);
}

OFA_FUNCTION Angle any_angle(Script& s) { return Angle(script_random(s)) << 17; }

// Walks in a direction for a while, pressing use.
OFA_FUNCTION void dodge(Script& s, Angle angle, int tics) {
    s.dodge_angle = angle;
    s.dodge_tics = tics;
}

// Each stall at about the same place is answered more strongly than the one before.
OFA_FUNCTION void break_out(const WorldBase& w, const Mobj& m) {
    Script& s = w.g.script;
    const Angle aside = script_random(s) & 1 ? ANGLE_90 : ANGLE_270;
    switch (s.breakouts++) {
        case 0:
            fail_next_edge(w);
            dodge(s, m.angle + aside, 12);
            break;
        case 1:
            fail_next_edge(w);
            fail_next_edge(w);
            abandon_goal(w);
            dodge(s, m.angle + ANGLE_180 + aside / 2, 30);
            break;
        case 2:
            abandon_goal(w);
            s.wander_tics = WANDER_TICS;
            break;
        default:
            forget_failures(s);
            drop_goal(s);
            s.wander_tics = 2 * WANDER_TICS;
            s.breakouts = 0;
            break;
    }
}

// Nothing has helped for a long time: all is tried again, and from a random place when the level takes too long.
OFA_FUNCTION void search_anew(Script& s) {
    forget_failures(s);
    drop_goal(s);
    s.breakouts = 0;
    s.random_places = s.stay_tics > ENDLESS_TICS ? RANDOM_PLACES : 0;
    if (s.random_places > 0) s.wander_tics = 2 * WANDER_TICS;
}

// Once a tic. A new sector, a kill, something picked up or a key is progress; so is getting away from the anchor.
OFA_FUNCTION void note_progress(const WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    const Mobj& m = w.g.mobjs[p.mobj];
    int score = s.sectors_seen + p.kill_count + p.item_count;
    for (int i = 0; i < CARD_TYPES; ++i) score += p.cards[i];
    ++s.stay_tics;
    ++s.idle_tics;
    const bool news = score > s.score;
    s.score = score;
    if (news) {
        s.idle_tics = s.anchors = s.breakouts = 0;
        drop_anchor(s, m);
        return;
    }
    if (s.idle_tics % RELAX_TICS == 0) search_anew(s);
    if (distance_from(m, s.anchor_x, s.anchor_y) > ANCHOR_RADIUS) {
        drop_anchor(s, m);
        if (++s.anchors >= ANCHORS_TO_FREEDOM) s.breakouts = 0;
        return;
    }
    if (s.dodge_tics > 0 || s.wander_tics > 0) return;
    ++s.pinned_tics;
    if (!s.waiting) ++s.stall_tics;
    if (s.stall_tics < STALL_TICS && s.pinned_tics < PINNED_TICS) return;
    s.anchors = 0;
    break_out(w, m);
    drop_anchor(s, m);
}

OFA_FUNCTION void excuse_standing(Script& s) {
    s.sample_tics = SAMPLE_TICS;
    s.moving_tics = 0;
}

// Breaks out of a push against a wall at once: another direction for a moment, then another approach.
OFA_FUNCTION void watch_pushing(WorldBase& w, const Mobj& m, bool moving) {
    Script& s = w.g.script;
    s.moving_tics += moving && w.g.sectors[m.sector].mover == NONE;
    if (++s.sample_tics < SAMPLE_TICS) return;
    if (s.moving_tics > SAMPLE_TICS * 3 / 4 && distance_from(m, s.sample_x, s.sample_y) < STUCK_DISTANCE) {
        dodge(s, any_angle(s), 10 + script_random(s) % 20);
        if (s.path_length > 0) fail_next_edge(w);
        else give_goal_up(w);
    }
    s.sample_x = m.x;
    s.sample_y = m.y;
    s.sample_tics = s.moving_tics = 0;
}

}  // namespace doom
