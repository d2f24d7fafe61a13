// The Doom simulation behind C functions, for tests and for scripts/doom_diff.py.
#include "doom/doom.h"

using namespace doom;

namespace {

struct Hash {
    uint64_t value = 0xcbf29ce484222325ull;
    void add(int32_t field) {
        for (int i = 0; i < 4; ++i) value = (value ^ ((uint32_t(field) >> (8 * i)) & 255)) * 0x100000001b3ull;
    }
};

template <class F>
void for_mobjs(const Game& g, F visit) {
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next)
        if (g.thinkers[node].kind == THINKER_MOBJ) visit(g.mobjs[node]);
}

constexpr int MOBJ_FIELDS = 22, HASHED_FIRST = 8, SECTOR_FIELDS = 5;

void mobj_fields(const Mobj& m, int32_t* out) {
    const int32_t fields[MOBJ_FIELDS] = {
        m.type, m.x, m.y, m.z, int32_t(m.angle), m.health, m.state, m.tics,
        m.momx, m.momy, m.momz, int32_t(m.flags), m.movedir, m.movecount, m.reactiontime, m.threshold, m.lastlook,
        m.floorz, m.ceilingz, m.radius, m.height, m.sector};
    memcpy(out, fields, sizeof fields);
}

void sector_fields(const Sector& s, int32_t* out) {
    const int32_t fields[SECTOR_FIELDS] = {s.floor_height, s.ceiling_height, s.light, s.special, s.floor_flat};
    memcpy(out, fields, sizeof fields);
}

}  // namespace

struct StatusProbe {
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

extern "C" {

uint64_t game_bytes() { return doom_game_bytes(); }
uint64_t status_bytes() { return sizeof(StatusProbe); }

void start(Game* g, const WadBlob* wad, const NewGame* n, const uint8_t* present) {
    doom_start(*g, *wad, *n);
    if (!present) return;
    // A demo may have any of the four players: begin again with those.
    memcpy(g->present, present, MAX_PLAYERS);
    for (Player& p : g->players) p.mobj = NONE;
    begin_game(*g, *wad, n->episode, n->map);
}

void tic(Game* g, const WadBlob* wad, const TicCommand* commands) { doom_tic(*g, *wad, commands); }

// Lets the scripted player play `tics` tics; commands [tics] receives what it did.
void play(Game* g, const WadBlob* wad, int tics, TicCommand* commands) {
    for (int i = 0; i < tics; ++i) {
        TicCommand all[MAX_PLAYERS] = {};
        all[g->viewed] = player_think(*g, *wad);
        if (commands) commands[i] = all[g->viewed];
        doom_tic(*g, *wad, all);
    }
}

void status(const Game* g, StatusProbe* s) { doom_status(*g, *s); }
void set_behaviour(Game* g, int behaviour) { doom_set_behaviour(*g, behaviour); }
void set_keys(Game* g, int forward, int side, int turn, int buttons) { doom_set_keys(*g, forward, side, turn, buttons); }

uint64_t mobj_hash(const Game* g, int second) {
    Hash h;
    for_mobjs(*g, [&](const Mobj& m) {
        int32_t f[MOBJ_FIELDS];
        mobj_fields(m, f);
        for (int i = second ? HASHED_FIRST : 0; i < (second ? MOBJ_FIELDS : HASHED_FIRST); ++i) h.add(f[i]);
    });
    return h.value;
}

uint64_t sector_hash(const Game* g) {
    Hash h;
    for (int i = 0; i < g->n_sectors; ++i) {
        int32_t f[SECTOR_FIELDS];
        sector_fields(g->sectors[i], f);
        for (int32_t field : f) h.add(field);
    }
    return h.value;
}

int count_thinkers(const Game* g, int only_mobjs) {
    int n = 0;
    for (int node = g->thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g->thinkers[node].next)
        n += g->thinkers[node].kind != THINKER_REMOVED && (!only_mobjs || g->thinkers[node].kind == THINKER_MOBJ);
    return n;
}

int mobjs(const Game* g, int32_t* table) {
    int n = 0;
    for_mobjs(*g, [&](const Mobj& m) { mobj_fields(m, table + MOBJ_FIELDS * n++); });
    return n;
}

void sectors(const Game* g, int32_t* table) {
    for (int i = 0; i < g->n_sectors; ++i) sector_fields(g->sectors[i], table + SECTOR_FIELDS * i);
}

int n_sectors(const Game* g) { return g->n_sectors; }
int sector_seen(const Game* g, int sector) { return g->sectors[sector].seen; }
int exhausted(const Game* g) { return g->exhausted; }

// Figures of a trace row; the order is SIMULATION_COLUMNS of sim_harness.py.
void row(const Game* g, int64_t* out) {
    const Player& p = g->players[g->viewed];
    const Mobj& m = g->mobjs[p.mobj];
    const int64_t fields[] = {
        g->level_tics, g->mode, g->episode, g->map, g->paused, g->simulation_random, g->cosmetic_random,
        m.x, m.y, m.z, m.momx, m.momy, m.momz, p.view_z, m.angle, m.sector, p.health, p.armor, p.armor_type,
        p.ammo[0], p.ammo[1], p.ammo[2], p.ammo[3], p.ready_weapon, p.pending_weapon, p.kill_count, p.item_count,
        p.secret_count, p.mode, count_thinkers(g, 0), count_thinkers(g, 1), g->status_bar.face, p.extra_light,
        p.fixed_colormap, p.damage_count, p.bonus_count};
    memcpy(out, fields, sizeof fields);
    int64_t* next = out + sizeof fields / sizeof fields[0];
    for (const WeaponSprite& s : p.sprites) {
        const bool shown = s.state != NONE;
        *next++ = s.state;
        *next++ = shown ? s.tics : 0;
        *next++ = shown ? s.sx : 0;
        *next++ = shown ? s.sy : 0;
    }
    *next++ = p.command.forward;
    *next++ = p.command.side;
    *next++ = p.command.turn;
    *next++ = p.command.buttons;
}
}
