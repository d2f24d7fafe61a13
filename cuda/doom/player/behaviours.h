// The scripted player: what gives a game its commands when no person does. A behaviour is a file; this is their table.
#pragma once

#include "berserk.h"
#include "camp.h"
#include "explore.h"
#include "hunt.h"
#include "manual.h"
#include "pacifist.h"
#include "speedrun.h"

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

// What a behaviour goes for next; false when it has no wish left.
OFA_FUNCTION bool choose(WorldBase& w, const Player& p) {
    switch (w.g.script.behaviour) {
        case BEHAVIOUR_HUNT: return choose_for_hunt(w, p);
        case BEHAVIOUR_SPEEDRUN: return choose_for_speedrun(w, p);
        case BEHAVIOUR_PACIFIST: return choose_for_pacifist(w, p);
        case BEHAVIOUR_BERSERK: return choose_for_berserk(w, p);
        case BEHAVIOUR_CAMP: return choose_for_camp(w, p);
        default: return choose_for_explore(w, p);
    }
}

// The viewed player's next command.
OFA_NOINLINE TicCommand player_think(Game& g, const WadBlob& wad) {
    Script& s = g.script;
    const Player& p = g.players[g.viewed];
    if (s.behaviour == BEHAVIOUR_MANUAL) return manual(g);
    TicCommand c = {};
    if (press_on(g, p, c)) return c;
    if (s.level != g.level || g.level_tics < s.level_tics) forget_level(g);
    s.level_tics = g.level_tics;
    // Looking around must not leave traces in the simulation: a recorded run has to play without us.
    const Clip clip = g.clip;
    WorldBase w(g, wad);
    c = command_for(w, p, play_level(w, p, [&] { return choose(w, p); }));
    g.clip = clip;
    return c;
}

}  // namespace doom
