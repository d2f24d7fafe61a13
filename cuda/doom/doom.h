// What the rest of the kernel may ask of the Doom engine. Everything is a function of a Game and a packed WAD.
//
// A tic of a game, in order:
//     commands[viewed] = player_think(game, wad)   the scripted player, or bytes of a demo
//     doom_tic(game, wad, commands)                simulation, one thread
//     doom_draw(block, game, wad, scratch, frame)  picture, all threads of the block (render/draw.h)
//     doom_status(game, status)                    the figures beside the picture
//
// doom_tic is doom_begin_tic (what is pending: births, level loads) and doom_run_tic, for those who look between the two.
//
//     uint64_t doom_game_bytes()
//     void doom_start(Game&, const WadBlob&, const NewGame&)
//     TicCommand player_think(Game&, const WadBlob&)
//     void doom_tic(Game&, const WadBlob&, const TicCommand* commands)   one per player slot, MAX_PLAYERS of them
//     void doom_status(const Game&, Status&)                              Status: DoomStatus of the shared structs
//     void doom_set_behaviour(Game&, int behaviour)
//     void doom_set_keys(Game&, int forward, int side, int turn, int buttons)
#pragma once

#include "player/behaviours.h"
#include "sim/game.h"

namespace doom {

struct NewGame {
    uint8_t episode, map;       // Doom II maps: episode 1
    uint8_t skill;              // 0-4
    uint8_t players;            // 1-4, the first ones; more than one plays by cooperative rules
    uint8_t viewed;
    uint8_t behaviour;          // of player `viewed`
    uint8_t respawn, fast, no_monsters, deathmatch;
    uint8_t present;            // of a demo: bit i for player i, in place of `players`
    uint8_t sounds;             // Game::sounds
    uint8_t stays_at_end;       // Game::stays_at_end
    uint8_t _pad[3];
    uint32_t seed;              // of the scripted player
};

OFA_FUNCTION uint64_t doom_game_bytes() { return sizeof(Game); }

// A new game. The scripted player starts afresh too.
OFA_NOINLINE void doom_start(Game& g, const WadBlob& wad, const NewGame& n) {
    memset(&g, 0, sizeof g);
    g.commercial = wad.rules == RULES_DOOM2;
    g.skill = n.skill;
    g.deathmatch = n.deathmatch;
    g.no_monsters = n.no_monsters;
    g.respawn_monsters = n.respawn || n.skill == 4;
    g.fast_monsters = n.fast;
    g.viewed = n.viewed;
    g.seed = n.seed;
    g.sounds = n.sounds;
    g.stays_at_end = n.stays_at_end;
    int players = 0;
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        g.present[i] = n.present ? n.present >> i & 1 : i < n.players;
        players += g.present[i];
    }
    g.cooperative = players > 1;
    begin_game(g, wad, n.episode, n.map);
    start_script(g, n.behaviour, n.seed);
}

OFA_FUNCTION void doom_begin_tic(Game& g, const WadBlob& wad) { do_pending_action(g, wad); }

OFA_NOINLINE void doom_run_tic(Game& g, const WadBlob& wad, const TicCommand* commands) {
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!g.present[i]) continue;
        g.players[i].command = commands[i];
        take_special_command(g, g.players[i].command);
    }
    if (g.mode == MODE_LEVEL) {
        tick_level(g, wad);
    } else if (g.mode == MODE_INTERMISSION) {
        WorldBase w(g, wad);
        tick_intermission(w);
    } else {
        tick_finale(g);
    }
    ++g.tic;
}

// One tic; `commands` has one entry for each player slot.
OFA_FUNCTION void doom_tic(Game& g, const WadBlob& wad, const TicCommand* commands) {
    doom_begin_tic(g, wad);
    doom_run_tic(g, wad, commands);
}

template <class Status>
OFA_FUNCTION void doom_status(const Game& g, Status& s) {
    const Player& p = g.players[g.viewed];
    const Mobj& m = g.mobjs[p.mobj];
    s.tic = g.tic;
    s.seed = g.seed;
    s.leveltime = uint32_t(g.level_tics);
    s.episode = g.episode;
    s.map = g.map;
    s.skill = g.skill;
    s.gamestate = g.mode;
    s.behaviour = g.script.behaviour;
    s.playerstate = p.mode;
    s.weapon = uint8_t(p.ready_weapon);
    s.health = int16_t(p.health);
    s.armor = int16_t(p.armor);
    for (int i = 0; i < AMMO_TYPES; ++i) {
        s.ammo[i] = p.ammo[i];
        s.ammo_max[i] = p.max_ammo[i];
    }
    s.kills = p.kill_count;
    s.items = p.item_count;
    s.secrets = p.secret_count;
    s.total_kills = int16_t(g.total_kills);
    s.total_items = int16_t(g.total_items);
    s.total_secrets = int16_t(g.total_secrets);
    s.x = m.x;
    s.y = m.y;
    s.z = m.z;
    s.angle = m.angle;
    s.sector = m.sector;
    s.sectors_seen = uint32_t(g.script.sectors_seen);
    s.sectors_total = uint32_t(g.n_sectors);
    s.stuck_tics = current_stall(g);
    s.forward = p.command.forward;
    s.side = p.command.side;
    s.turn = p.command.turn;
    s.buttons = p.command.buttons;
    s.keys = 0;
    for (int i = 0; i < CARD_TYPES; ++i) s.keys = uint8_t(s.keys | p.cards[i] << i);
    s.weapons_owned = 0;
    for (int i = 0; i < WEAPON_TYPES; ++i) s.weapons_owned = uint16_t(s.weapons_owned | p.weapon_owned[i] << i);
}

}  // namespace doom
