// What every rule of the simulation works on: the game, and the arrays of its level in the packed WAD.
//
// World's parameter is how deep state changes may still nest. Entering a state runs its action at once, the action may
// hurt a monster, which enters a state, whose action runs at once... The original recurses; here each step inwards
// is another type (inner()), so that the call graph has no cycle and a stack has a known size. Depth 2 runs
// everything; depth 1, reached from inside an action, runs what a monster does when it is woken or hurt; depth 0 runs only
// actions that change no other state. The game's tables never nest deeper.
#pragma once

#include "../../platform/platform.h"
#include "../blob.h"
#include "../names.h"
#include "../state.h"

namespace doom {

struct WorldBase {
    Game& g;
    const WadBlob& wad;
    const Level* level;
    const MapVertex* vertices;
    const MapSector* sectors;
    const MapSide* sides;
    const MapLine* lines;
    const MapSeg* segs;
    const MapSubsector* subsectors;
    const MapNode* nodes;
    const int32_t* sector_lines;
    const uint8_t* reject;
    const uint32_t* block_first;
    const int32_t* block_lines;
    const State* states;
    const ThingType* types;
    const WeaponType* weapons;
    const int32_t* sine;
    const int32_t* tangent;
    const uint32_t* tan_to_angle;
    const uint8_t* random;

    OFA_FUNCTION WorldBase(Game& game, const WadBlob& blob) : g(game), wad(blob) {
        level = at(wad, wad.levels) + g.level;
        vertices = at(wad, level->vertices);
        sectors = at(wad, level->sectors);
        sides = at(wad, level->sides);
        lines = at(wad, level->lines);
        segs = at(wad, level->segs);
        subsectors = at(wad, level->subsectors);
        nodes = at(wad, level->nodes);
        sector_lines = at(wad, level->sector_lines);
        reject = at(wad, level->reject);
        block_first = at(wad, level->block_first);
        block_lines = at(wad, level->block_lines);
        states = at(wad, wad.states);
        types = at(wad, wad.thing_types);
        weapons = at(wad, wad.weapons);
        sine = at(wad, wad.fine_sine);
        tangent = at(wad, wad.fine_tangent);
        tan_to_angle = at(wad, wad.tan_to_angle);
        random = at(wad, wad.random);
    }
};

constexpr int FULL_DEPTH = 2;

template <int DEPTH>
struct World : WorldBase {
    static constexpr int depth = DEPTH;
    using WorldBase::WorldBase;
    OFA_FUNCTION explicit World(const WorldBase& base) : WorldBase(base) {}
};

// The same world for what happens inside an action.
template <int DEPTH>
OFA_FUNCTION World<(DEPTH > 0 ? DEPTH - 1 : 0)> inner(const World<DEPTH>& w) {
    return World<(DEPTH > 0 ? DEPTH - 1 : 0)>(static_cast<const WorldBase&>(w));
}

// --- random numbers ------------------------------------------------------------------------------------------------

// Next number 0-255 of the stream that decides the game.
OFA_FUNCTION int next_random(WorldBase& w) { return w.random[++w.g.simulation_random]; }

// Next number of the stream for what only looks or sounds.
OFA_FUNCTION int next_cosmetic_random(WorldBase& w) { return w.random[++w.g.cosmetic_random]; }

// Difference of two numbers; the one drawn first is the minuend.
OFA_FUNCTION int random_difference(WorldBase& w) {
    const int first = next_random(w);
    return first - next_random(w);
}

// --- short names for what is looked up all the time ----------------------------------------------------------------

OFA_FUNCTION const ThingType& type_of(const WorldBase& w, const Mobj& m) { return w.types[m.type]; }

// Nightmare and the "fast" option halve the demon's frames and speed three missiles up.
OFA_FUNCTION bool is_fast(const WorldBase& w) { return w.g.fast_monsters || w.g.skill == 4; }

OFA_FUNCTION int state_tics(const WorldBase& w, int state) {
    const int tics = w.states[state].tics;
    return is_fast(w) && state >= STATE_SARG_RUN1 && state <= STATE_SARG_PAIN2 ? tics >> 1 : tics;
}

OFA_FUNCTION int type_speed(const WorldBase& w, int type) {
    if (is_fast(w) && (type == THING_BARON_SHOT || type == THING_CACODEMON_SHOT || type == THING_IMP_SHOT)) return 20 << 16;
    return w.types[type].speed;
}

OFA_FUNCTION uint16_t state_frame(const State& s) { return uint16_t(s.frame | (s.bright ? 0x8000 : 0)); }

}  // namespace doom
