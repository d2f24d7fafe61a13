// berserk: fists and chainsaw only, and straight at who is near; the pack and the saw are worth a way.
#pragma once

#include "play.h"

namespace doom {

OFA_FUNCTION bool choose_for_berserk(WorldBase& w, const Player& p) {
    if (go_for_item(w, p)) return true;
    if (is_time_to_leave(w.g.script) && go_for_exit(w, p, FARTHEST)) return true;
    return go_for_enemy(w, p, TRAP_COST) || go_for_exit(w, p, FARTHEST) || go_for_key(w, p) ||
           go_somewhere_new(w, p, FARTHEST, false) || go_for_trigger(w, p, 0);
}

}  // namespace doom
