// explore: visits sectors not yet seen, opens doors, rides lifts, presses switches, collects, and leaves in the end.
#pragma once

#include "play.h"

namespace doom {

OFA_TABLE Character EXPLORE = {1200 * UNIT, 900 * UNIT, 0, 4, 1};

constexpr int LONG_STAY_TICS = 35 * 60 * 4;  // after that the exit comes before what takes a plan to reach
constexpr int TOO_LONG_TICS = 35 * 60 * 6;   // and after that before everything
constexpr int IDLE_TICS = 35 * 90;           // so does it when nothing new has happened for so long

OFA_FUNCTION bool choose_for_explore(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    if (go_for_item(w, p, EXPLORE.greed)) return true;
    const bool leaving = s.stay_tics > TOO_LONG_TICS || s.idle_tics > IDLE_TICS;
    if (leaving && go_for_exit(w, p, FARTHEST)) return true;
    if (go_somewhere_new(w, p, TRAP_COST, true)) return true;
    if (s.stay_tics > LONG_STAY_TICS && go_for_exit(w, p, FARTHEST)) return true;
    return go_for_key(w, p) || go_somewhere_new(w, p, FARTHEST, false) || go_for_exit(w, p, FARTHEST) ||
           go_for_trigger(w, p, 0);
}

}  // namespace doom
