// What tells the behaviours apart, as a table: how they fight and what they stoop for. Where they go is in their files.
#pragma once

#include "knowledge.h"

namespace doom {

struct Character {
    Fixed fire_range;         // enemies up to there are shot at, if need be on the run; 0 for never
    Fixed stand_range;        // for enemies up to there it stops
    uint8_t by_hand;          // fists and chainsaw only
    uint8_t greed;            // detours for items, in quarters of the usual ones
    uint8_t fear;             // weight of monsters on the way
};

}  // namespace doom
