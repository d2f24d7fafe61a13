// speedrun: the shortest way to the exit, keys and switches on it first; shoots on the run.
#pragma once

#include "play.h"

namespace doom {

OFA_FUNCTION bool choose_for_speedrun(WorldBase& w, const Player& p) {
    if (go_for_item(w, p)) return true;
    return go_for_exit(w, p, FARTHEST) || go_for_key(w, p) || go_for_trigger(w, p, 0) ||
           go_somewhere_new(w, p, FARTHEST, false);
}

}  // namespace doom
