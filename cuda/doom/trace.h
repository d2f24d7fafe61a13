// What a trace says of a game after a tic: the figures by which two engines are compared (docs/doom.md).
#pragma once

#include "doom.h"

namespace doom {

// 64-bit FNV-1a over fields of four bytes, and over bytes.
struct Hash {
    static constexpr uint64_t PRIME = 0x100000001b3ull;
    uint64_t value = 0xcbf29ce484222325ull;

    OFA_INLINE void add_byte(uint8_t byte) { value = (value ^ byte) * PRIME; }
    OFA_INLINE void add(int32_t field) {
        for (int i = 0; i < 4; ++i) add_byte(uint8_t(uint32_t(field) >> (8 * i)));
    }
};

// --- objects and sectors as rows -----------------------------------------------------------------------------------

constexpr int MOBJ_FIELDS = 22, MOBJ_FIELDS_1 = 8, SECTOR_FIELDS = 5;

// visit(object) in thinker order, without those marked for removal.
template <class F>
OFA_FUNCTION void for_mobjs(const Game& g, F visit) {
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next)
        if (g.thinkers[node].kind == THINKER_MOBJ) visit(g.mobjs[node]);
}

// The first MOBJ_FIELDS_1 make up mobj_hash, the others mobj_hash2.
OFA_FUNCTION void mobj_fields(const Mobj& m, int32_t* out) {
    const int32_t fields[MOBJ_FIELDS] = {
        m.type, m.x, m.y, m.z, int32_t(m.angle), m.health, m.state, m.tics,
        m.momx, m.momy, m.momz, int32_t(m.flags), m.movedir, m.movecount, m.reactiontime, m.threshold, m.lastlook,
        m.floorz, m.ceilingz, m.radius, m.height, m.sector};
    memcpy(out, fields, sizeof fields);
}

OFA_FUNCTION void sector_fields(const Sector& s, int32_t* out) {
    const int32_t fields[SECTOR_FIELDS] = {s.floor_height, s.ceiling_height, s.light, s.special, s.floor_flat};
    memcpy(out, fields, sizeof fields);
}

struct StateHashes {
    uint64_t mobjs, mobjs2, sectors;
};

OFA_FUNCTION StateHashes hash_state(const Game& g) {
    Hash first, second, sectors;
    for_mobjs(g, [&](const Mobj& m) {
        int32_t fields[MOBJ_FIELDS];
        mobj_fields(m, fields);
        for (int i = 0; i < MOBJ_FIELDS_1; ++i) first.add(fields[i]);
        for (int i = MOBJ_FIELDS_1; i < MOBJ_FIELDS; ++i) second.add(fields[i]);
    });
    for (int i = 0; i < g.n_sectors; ++i) {
        int32_t fields[SECTOR_FIELDS];
        sector_fields(g.sectors[i], fields);
        for (int32_t field : fields) sectors.add(field);
    }
    return {first.value, second.value, sectors.value};
}

OFA_FUNCTION int count_thinkers(const Game& g) {
    int n = 0;
    for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next)
        n += g.thinkers[node].kind != THINKER_REMOVED;
    return n;
}

OFA_FUNCTION int count_mobjs(const Game& g) {
    int n = 0;
    for_mobjs(g, [&](const Mobj&) { ++n; });
    return n;
}

// --- rows of a trace -----------------------------------------------------------------------------------------------

// One tic. Fields are the columns of a trace, by name and type; the dtype in ofa_tui/doom/trace.py is this struct.
// "heard" columns come from a game whose sounds draw cosmetic numbers, `_ns` columns from its silent twin.
struct TraceRow {
    uint64_t mobj_hash, mobj_hash2, sector_hash, fb_view, fb_sbar, fb_sbar_ns, fb_full;
    int32_t tic, leveltime, x, y, z, momx, momy, momz, viewz;
    uint32_t angle;
    int32_t psp[2][4];
    int32_t pl[MAX_PLAYERS][8];
    int16_t sector, health, armor, kills, items, secrets, nthinkers, nmobjs, damagecount, bonuscount;
    int16_t ammo[AMMO_TYPES], cmd[4];
    int8_t gamestate, episode, map, paused, armortype, readyweapon, pendingweapon, playerstate, palette, face, face_ns;
    int8_t extralight, fixedcolormap;
    uint8_t prnd, rnd, rnd_ns, fb_tanoob;
    uint8_t _pad[3];
};

// One level load, right after the level was set up.
struct TraceLoad {
    uint64_t mobj_hash, mobj_hash2, sector_hash;
    int32_t tic, episode, map, skill, prnd, rnd, nthinkers, nmobjs, totalkills, totalitems, totalsecret, _pad;
};

OFA_FUNCTION void trace_weapon_sprite(const WeaponSprite& s, int32_t* out) {
    const bool shown = s.state != NONE;
    out[0] = s.state;
    out[1] = shown ? s.tics : 0;
    out[2] = shown ? s.sx : 0;
    out[3] = shown ? s.sy : 0;
}

OFA_FUNCTION void trace_player(const Game& g, const Player& p, int32_t* out) {
    const Mobj& m = g.mobjs[p.mobj];
    const int32_t fields[8] = {m.x, m.y, m.z, int32_t(m.angle), p.health, p.armor, p.ready_weapon, p.mode};
    memcpy(out, fields, sizeof fields);
}

// Everything of a row but hashes and what is seen and heard.
OFA_NOINLINE void trace_simulation(const Game& g, TraceRow& row) {
    const Player& p = g.players[g.viewed];
    const Mobj& m = g.mobjs[p.mobj];
    row.tic = int32_t(g.tic) - 1;
    row.leveltime = g.level_tics;
    row.gamestate = int8_t(g.mode);
    row.episode = int8_t(g.episode);
    row.map = int8_t(g.map);
    row.paused = int8_t(g.paused);
    row.prnd = g.simulation_random;
    row.rnd_ns = g.cosmetic_random;
    row.x = m.x;
    row.y = m.y;
    row.z = m.z;
    row.momx = m.momx;
    row.momy = m.momy;
    row.momz = m.momz;
    row.viewz = p.view_z;
    row.angle = m.angle;
    row.sector = int16_t(m.sector);
    row.health = int16_t(p.health);
    row.armor = int16_t(p.armor);
    row.armortype = int8_t(p.armor_type);
    for (int i = 0; i < AMMO_TYPES; ++i) row.ammo[i] = p.ammo[i];
    row.readyweapon = p.ready_weapon;
    row.pendingweapon = p.pending_weapon;
    row.kills = p.kill_count;
    row.items = p.item_count;
    row.secrets = p.secret_count;
    row.playerstate = int8_t(p.mode);
    row.nthinkers = int16_t(count_thinkers(g));
    row.nmobjs = int16_t(count_mobjs(g));
    row.face_ns = int8_t(g.status_bar.face);
    row.extralight = int8_t(p.extra_light);
    row.fixedcolormap = int8_t(p.fixed_colormap);
    row.damagecount = int16_t(p.damage_count);
    row.bonuscount = int16_t(p.bonus_count);
    for (int i = 0; i < 2; ++i) trace_weapon_sprite(p.sprites[i], row.psp[i]);
    const int16_t command[4] = {p.command.forward, p.command.side, p.command.turn, p.command.buttons};
    memcpy(row.cmd, command, sizeof command);
    memset(row.pl, 0, sizeof row.pl);
    for (int i = 0; i < MAX_PLAYERS; ++i)
        if (g.present[i]) trace_player(g, g.players[i], row.pl[i]);
}

OFA_FUNCTION TraceLoad trace_load(const Game& silent, const Game& heard) {
    const StateHashes hashes = hash_state(silent);
    return {hashes.mobjs, hashes.mobjs2, hashes.sectors, int32_t(silent.tic), silent.episode, silent.map, silent.skill,
            silent.simulation_random, heard.cosmetic_random, count_thinkers(silent), count_mobjs(silent),
            silent.total_kills, silent.total_items, silent.total_secrets, 0};
}

}  // namespace doom
