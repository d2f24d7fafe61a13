// A post: a place with few ways in, found and held.
#pragma once

#include "progress.h"

namespace doom {

constexpr int POSTS_LOOKED_AT = 4, WATCH_TICS = 35 * 20, SWAY_TICS = 35 * 8;
constexpr int FAR_VIEW = 512, NEAR_VIEW = 160;

// How open a place is, in eighths of a circle that can be seen along; the middle of the farthest view into `face`.
OFA_FUNCTION int openness_of(WorldBase& w, int x, int y, Angle& face) {
    int open = 0;
    bool far = false;
    for (int i = 0; i < 8; ++i) {
        const Angle angle = Angle(i) * ANGLE_45;
        const auto sees = [&](int reach) {
            return !is_wall_between(w, x * UNIT, y * UNIT, x * UNIT + reach * cosine_of(w, angle),
                                    y * UNIT + reach * sine_of(w, angle));
        };
        if (!sees(NEAR_VIEW)) continue;
        ++open;
        if (far || !sees(FAR_VIEW)) continue;
        far = true;
        face = angle;
    }
    return far ? open : 9;
}

// The best of some places that can be reached, drawn by lot.
OFA_FUNCTION bool go_to_post(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    const int n = n_nav_nodes(w);
    int best = NONE, least = 9, looked = 0;
    for (int tries = 0; tries < 64 && looked < POSTS_LOOKED_AT; ++tries) {
        const int node = script_random(s) % n;
        const NavNode& place = at(w.wad, w.level->nav_nodes)[node];
        if (!can_reach(s, node) || s.distance[node] > FARTHEST_PLACE || (place.flags & NAV_NARROW)) continue;
        if (hurts(w.g, w.subsectors[node].sector)) continue;
        ++looked;
        Angle face = 0;
        const int open = openness_of(w, place.x, place.y, face);
        if (open >= least) continue;
        least = open;
        best = node;
        s.post_angle = face;
    }
    s.watch_tics = 0;
    return best != NONE && pursue(w, p, place_wish(w, GOAL_POST, best, best));
}

OFA_FUNCTION bool is_at_post(const Script& s, const Mobj& m) {
    if (s.goal_kind != GOAL_POST || s.path_length > 0) return false;
    return s.watch_tics > 0 || distance_from(m, s.goal_x * UNIT, s.goal_y * UNIT) < 24 * UNIT;
}

// Looks slowly from side to side; leaves the post when nobody has come for a while.
OFA_FUNCTION void keep_watch(Script& s, const Mobj& m, Intent& in) {
    const int phase = s.watch_tics % SWAY_TICS, quarter = SWAY_TICS / 4;
    const int out = phase < quarter ? phase : phase < 3 * quarter ? 2 * quarter - phase : phase - SWAY_TICS;
    in.face = s.post_angle + Angle(out) * (ANGLE_45 / Angle(quarter));
    in.busy = 1;
    s.goal_tics = 0;
    drop_anchor(s, m);
    excuse_standing(s);
    if (s.enemy != NONE) s.watch_tics = 1;
    if (++s.watch_tics > WATCH_TICS) {
        ++s.posts;
        drop_goal(s);
    }
}

}  // namespace doom
