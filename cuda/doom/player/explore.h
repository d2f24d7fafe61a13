// explore: visits sectors not yet seen, opens doors, rides lifts, presses switches, collects, and leaves in the end.
#pragma once

#include "play.h"

namespace doom {

constexpr int LONG_STAY_TICS = 35 * 60 * 4;  // after that the exit comes before what takes a plan to reach

OFA_FUNCTION bool choose_for_explore(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    if (go_for_item(w, p)) return true;
    if (is_time_to_leave(s) && go_for_exit(w, p, FARTHEST)) return true;
    if (go_somewhere_new(w, p, TRAP_COST, true)) return true;
    if (s.stay_tics > LONG_STAY_TICS && go_for_exit(w, p, FARTHEST)) return true;
    return go_for_key(w, p) || go_somewhere_new(w, p, FARTHEST, false) || go_for_exit(w, p, FARTHEST) ||
           go_for_trigger(w, p, 0);
}

}  // namespace doom
