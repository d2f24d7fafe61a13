// camp: holds a place with few ways in, fires at what comes, and looks for another place farther on when nobody does.
#pragma once

#include "play.h"

namespace doom {

OFA_FUNCTION bool choose_for_camp(WorldBase& w, const Player& p) {
    Script& s = w.g.script;
    if (go_for_item(w, p)) return true;
    // Between two posts some new ground.
    if (s.posts > s.advances) {
        ++s.advances;
        if (is_time_to_leave(s) && go_for_exit(w, p, FARTHEST)) return true;
        if (go_somewhere_new(w, p, FARTHEST, true) || go_for_key(w, p) || go_for_exit(w, p, FARTHEST)) return true;
    }
    return go_to_post(w, p);
}

}  // namespace doom
