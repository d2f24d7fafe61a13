// What tells the behaviours apart, as a table: how they fight and what they stoop for. Where they go is in their files.
#pragma once

#include "../state.h"

namespace doom {

struct Character {
    Fixed fire_range;         // enemies up to there are shot at, if need be on the run; 0 for never
    Fixed stand_range;        // for enemies up to there it stops
    uint8_t single_minded;    // but only if they are ahead
    uint8_t by_hand;          // fists and chainsaw only
    uint8_t settled;          // does not leave a place because a fight takes long
    uint8_t greed;            // detours for items, in quarters of the usual ones
    uint8_t fear;             // weight of monsters on the way
};

// By Behaviour.
OFA_TABLE Character CHARACTERS[BEHAVIOURS] = {
    // fires up to  stops up to  single-minded  by hand  settled  greed  fear
    {1200 * UNIT,   900 * UNIT,  0,             0,       0,       4,     1},   // explore
    {1400 * UNIT,   900 * UNIT,  0,             0,       0,       4,     0},   // hunt
    {1200 * UNIT,   900 * UNIT,  0,             0,       0,       4,     1},   // speedrun
    {0,             0,           0,             0,       0,       6,     8},   // pacifist
    {1000 * UNIT,   900 * UNIT,  0,             1,       0,       6,     0},   // berserk
    {1400 * UNIT,   1400 * UNIT, 0,             0,       1,       4,     2},   // camp
    {0,             0,           0,             0,       0,       0,     0},   // manual
};

OFA_FUNCTION const Character& character_of(const Game& g) { return CHARACTERS[g.script.behaviour]; }

}  // namespace doom
