// The scripted player: what gives a game its commands when no person does. A behaviour is a file; this is their table.
#pragma once

#include "explore.h"
#include "manual.h"

namespace doom {

OFA_FUNCTION void doom_set_behaviour(Game& g, int behaviour) {
    if (behaviour < 0 || behaviour >= BEHAVIOURS || behaviour == g.script.behaviour) return;
    g.script.behaviour = uint8_t(behaviour);
    g.script.level = NONE;
    g.script.manual = {};
}

// A person's command, held until the next. Only what a demo can store: the turn in steps of 1/256 circle.
OFA_FUNCTION void doom_set_keys(Game& g, int forward, int side, int turn, int buttons) {
    TicCommand& c = g.script.manual;
    c.forward = int8_t(limit(forward, 127));
    c.side = int8_t(limit(side, 127));
    c.turn = int16_t(turn & ~255);
    c.buttons = uint8_t(buttons & ~BUTTON_SPECIAL);
}

OFA_FUNCTION void start_script(Game& g, int behaviour, uint32_t seed) {
    memset(&g.script, 0, sizeof g.script);
    g.script.random = seed;
    g.script.level = NONE;
    if (behaviour >= 0 && behaviour < BEHAVIOURS) g.script.behaviour = uint8_t(behaviour);
}

// The viewed player's next command.
OFA_NOINLINE TicCommand player_think(Game& g, const WadBlob& wad) {
    if (g.script.behaviour == BEHAVIOUR_MANUAL) return manual(g);
    // Looking around must not leave traces in the simulation: a recorded run has to play without us.
    const Clip clip = g.clip;
    WorldBase w(g, wad);
    const TicCommand c = explore(w, g.players[g.viewed]);
    g.clip = clip;
    return c;
}

}  // namespace doom
