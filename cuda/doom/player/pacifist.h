// pacifist: never fires, makes detours around monsters, and leaves by the first way it finds.
#pragma once

#include "play.h"

namespace doom {

OFA_FUNCTION bool choose_for_pacifist(WorldBase& w, const Player& p) {
    if (go_for_item(w, p)) return true;
    return go_for_exit(w, p, FARTHEST) || go_for_key(w, p) || go_somewhere_new(w, p, FARTHEST, false) ||
           go_for_trigger(w, p, 0);
}

}  // namespace doom
