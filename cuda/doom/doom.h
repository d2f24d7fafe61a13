// What the rest of the kernel may ask of the Doom engine. Everything is a function of a Game and a packed WAD.
//
// A tic of a game, in order:
//     commands[viewed] = player_think(game, wad)   the scripted player, or bytes of a demo
//     doom_tic(game, wad, commands)                simulation, one thread
//     doom_draw(block, game, wad, frame)           picture, all threads of the block (render/draw.h)
//     doom_status(game, status)                    the figures beside the picture
//
//     uint64_t doom_game_bytes()
//     void doom_start(Game&, const WadBlob&, const NewGame&)
//     TicCommand player_think(Game&, const WadBlob&)
//     void doom_tic(Game&, const WadBlob&, const TicCommand* commands)   one per player slot, MAX_PLAYERS of them
//     void doom_status(const Game&, Status&)                              Status: DoomStatus of the shared structs
//     void doom_set_behaviour(Game&, int behaviour)
//     void doom_set_keys(Game&, int forward, int side, int turn, int buttons)
#pragma once

#include "state.h"

namespace doom {

struct NewGame {
    uint8_t episode, map;       // Doom II maps: episode 1
    uint8_t skill;              // 0-4
    uint8_t players;            // 1-4; more than one plays by cooperative rules
    uint8_t viewed;
    uint8_t behaviour;          // of player `viewed`
    uint8_t respawn, fast, no_monsters, deathmatch;
    uint32_t seed;              // of the scripted player
};

}  // namespace doom
