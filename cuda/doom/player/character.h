// What tells the behaviours apart, as a table: how they fight and what they stoop for. Where they go is in their files.
#pragma once

#include "knowledge.h"

namespace doom {

enum FireStyle : uint8_t {
    FIRE_NEVER,
    FIRE_ON_THE_RUN,          // looks at the enemy and shoots while the legs go on
    FIRE_STANDING             // stops for a fight
};

struct Character {
    FireStyle fire;
    uint8_t by_hand;          // fists and chainsaw only
    uint8_t greed;            // detours for items, in quarters of the usual ones
    uint8_t fear;             // weight of monsters on the way
    Fixed fight_range;        // enemies farther away are left alone
};

}  // namespace doom
