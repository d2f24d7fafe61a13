// The scripted player: what gives a game its commands when no person does. A behaviour is a file; this is their table.
#pragma once

#include "../sim/world.h"

namespace doom {

OFA_FUNCTION void start_script(Game& g, int behaviour, uint32_t seed) {
    memset(&g.script, 0, sizeof g.script);
    g.script.behaviour = uint8_t(behaviour);
    g.script.random = seed;
}
OFA_FUNCTION TicCommand player_think(Game&, const WadBlob&) { return {}; }
OFA_FUNCTION void doom_set_behaviour(Game&, int) { }
OFA_FUNCTION void doom_set_keys(Game&, int,int,int,int) { }

}  // namespace doom
