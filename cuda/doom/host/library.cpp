// Doom without the kernel around it, as a library for demos, traces, tests and measurements (ofa_tui/doom/library.py).
#include "../snapshot.h"
#include "traced_game.h"

using namespace doom;

namespace {

// Figures of a running game, as the kernel publishes them.
struct StatusFigures {
    uint64_t tic;
    uint32_t seed, leveltime;
    uint8_t episode, map, skill, gamestate, behaviour, playerstate, weapon;
    int16_t health, armor, ammo[4], ammo_max[4], kills, items, secrets, total_kills, total_items, total_secrets, turn;
    int32_t x, y, z, sector;
    uint32_t angle, sectors_seen, sectors_total, stuck_tics;
    int8_t forward, side;
    uint8_t buttons, keys;
    uint16_t weapons_owned;
};

}  // namespace

extern "C" {

// Sizes of the structs that cross the border, in the order of STRUCTS in library.py.
uint64_t doom_struct_bytes(int which) {
    const uint64_t bytes[] = {sizeof(TicCommand), sizeof(NewGame), sizeof(StatusFigures), sizeof(TraceRow),
                              sizeof(TraceLoad), sizeof(Game), sizeof(TracedGame)};
    return bytes[which];
}

// --- a game --------------------------------------------------------------------------------------------------------

void game_start(Game* g, const WadBlob* wad, const NewGame* settings) { doom_start(*g, *wad, *settings); }
// What follows the last level.
void game_begin_again(Game* g, const WadBlob* wad, int episode, int map) { begin_game(*g, *wad, episode, map); }
void game_tic(Game* g, const WadBlob* wad, const TicCommand* commands) { doom_tic(*g, *wad, commands); }

// commands [tics][MAX_PLAYERS]
void game_run(Game* g, const WadBlob* wad, const TicCommand* commands, int tics) {
    for (int i = 0; i < tics; ++i) doom_tic(*g, *wad, commands + i * MAX_PLAYERS);
}

// The scripted player plays; commands [tics] receives what it did.
void game_play(Game* g, const WadBlob* wad, int tics, TicCommand* commands) {
    for (int i = 0; i < tics; ++i) {
        TicCommand all[MAX_PLAYERS] = {};
        commands[i] = all[g->viewed] = player_think(*g, *wad);
        doom_tic(*g, *wad, all);
    }
}

void game_status(const Game* g, StatusFigures* status) { doom_status(*g, *status); }
void game_set_behaviour(Game* g, int behaviour) { doom_set_behaviour(*g, behaviour); }
void game_set_keys(Game* g, int forward, int side, int turn, int buttons) {
    doom_set_keys(*g, forward, side, turn, buttons);
}
void game_copy(Game* to, const Game* from) {
    ofa::Block block(0, nullptr, 0);
    copy_game(block, *to, *from);
}
int game_exhausted(const Game* g) { return g->exhausted; }

// --- what a trace says of it ---------------------------------------------------------------------------------------

// The row of the game as it is, without pictures.
void game_trace(const Game* g, TraceRow* row) {
    trace_simulation(*g, *row);
    const StateHashes hashes = hash_state(*g);
    row->mobj_hash = hashes.mobjs;
    row->mobj_hash2 = hashes.mobjs2;
    row->sector_hash = hashes.sectors;
}

// Rows of MOBJ_FIELDS; returns how many. Without a table they are only counted.
int game_mobjs(const Game* g, int32_t* table) {
    int n = 0;
    for_mobjs(*g, [&](const Mobj& m) {
        if (table) mobj_fields(m, table + MOBJ_FIELDS * n);
        ++n;
    });
    return n;
}

int game_sectors(const Game* g, int32_t* table) {
    for (int i = 0; table && i < g->n_sectors; ++i) sector_fields(g->sectors[i], table + SECTOR_FIELDS * i);
    return g->n_sectors;
}

// --- a game that is drawn and traced -------------------------------------------------------------------------------

// The memory must be zero before its first start. Returns an error number where a thread cannot be started.
int traced_start(TracedGame* t, const WadBlob* wad, const NewGame* settings, int lanes, int traced) {
    start_twins(*t, *wad, *settings, traced != 0);
    t->lanes = lanes;
    return lanes > 1 ? t->pool.start(lanes) : 0;
}

void traced_stop(TracedGame* t) {
    if (t->lanes > 1) t->pool.stop();
    t->lanes = 1;
}

const Game* traced_game(const TracedGame* t) { return &t->silent; }
const uint8_t* traced_picture(const TracedGame* t) { return t->picture; }
const uint8_t* traced_frame(const TracedGame* t) { return t->frame; }

// Plays and draws tics and keeps nothing of them: what a run does, as fast as it goes. commands [tics, MAX_PLAYERS]
void drawn_run(TracedGame* t, const WadBlob* wad, const TicCommand* commands, int tics) {
    ofa::Block block(0, nullptr, 0);
    for (int i = 0; i < tics; ++i) {
        doom_tic(t->silent, *wad, commands + i * MAX_PLAYERS);
        doom_draw(block, t->silent, *wad, t->drawing, t->frame);
    }
}

// Plays and draws tics. commands [tics, MAX_PLAYERS] are taken, or, with `scripted`, the viewed player's are written.
// rows [tics]; loads has room for one per tic and one more. Returns the level loads there were.
int traced_play(TracedGame* t, const WadBlob* wad, TicCommand* commands, int tics, int scripted, TraceRow* rows,
                TraceLoad* loads) {
    int n_loads = 0;
    for (int i = 0; i < tics; ++i, commands += MAX_PLAYERS) {
        if (scripted) commands[t->silent.viewed] = player_think(t->silent, *wad);
        if (begin_traced_tic(*t, *wad)) loads[n_loads++] = trace_load(t->silent, t->heard);
        Lanes machine{*t};
        run_traced_tic(machine, *t, *wad, commands, rows[i]);
    }
    return n_loads;
}
}
