// Setting up a level: sectors, lines, things, players.
#pragma once

#include "actions.h"
#include "player.h"

namespace doom {

// What a player has after a death or at the start of a game.
OFA_FUNCTION void reset_player(Player& p) {
    const int16_t kills = p.kill_count, items = p.item_count, secrets = p.secret_count;
    const TicCommand command = p.command;
    int16_t frags[MAX_PLAYERS];
    memcpy(frags, p.frags, sizeof frags);
    memset(&p, 0, sizeof p);
    memcpy(p.frags, frags, sizeof frags);
    p.kill_count = kills;
    p.item_count = items;
    p.secret_count = secrets;
    p.command = command;
    p.use_down = p.attack_down = 1;        // a key held down does nothing until it was let go
    p.mode = PLAYER_ALIVE;
    p.health = HEALTH_MAX;
    p.ready_weapon = p.pending_weapon = WEAPON_PISTOL;
    p.weapon_owned[WEAPON_FIST] = p.weapon_owned[WEAPON_PISTOL] = 1;
    p.ammo[AMMO_BULLETS] = 50;
    for (int i = 0; i < AMMO_TYPES; ++i) p.max_ammo[i] = int16_t(ammo_limit(i));
    p.mobj = p.attacker = NONE;
    p.sprites[HAND].state = p.sprites[FLASH].state = NONE;
}

OFA_FUNCTION void start_status_bar(Game& g, const Player& p) {
    StatusBar& s = g.status_bar;
    s.face = 0;
    s.old_health = -1;
    for (int i = 0; i < WEAPON_TYPES; ++i) s.old_weapons[i] = s.first_weapons[i] = p.weapon_owned[i];
}

template <class W>
OFA_FUNCTION void spawn_player(W& w, const SpawnPoint& start) {
    Game& g = w.g;
    const int number = start.type - 1;
    if (!g.present[number]) return;
    Player& p = g.players[number];
    if (p.mode == PLAYER_REBORN) reset_player(p);
    const int index = spawn_mobj(w, start.x * UNIT, start.y * UNIT, ON_FLOOR, THING_PLAYER);
    Mobj& m = g.mobjs[index];
    if (number > 0) m.flags |= uint32_t(number) << MF_TRANSLATION_SHIFT;
    m.angle = ANGLE_45 * Angle(start.angle / 45);
    m.player = number;
    m.health = p.health;
    p.mobj = index;
    p.mode = PLAYER_ALIVE;
    p.refire = 0;
    p.message = MESSAGE_NONE;
    p.damage_count = p.bonus_count = 0;
    p.extra_light = p.fixed_colormap = 0;
    p.view_height = VIEW_HEIGHT;
    setup_weapon(w, p);
    if (g.deathmatch)
        for (uint8_t& card : p.cards) card = 1;
    if (number == g.viewed) start_status_bar(g, p);
}

OFA_FUNCTION bool is_doom2_monster(int number) {
    switch (number) {
        case 68: case 64: case 88: case 89: case 69: case 67: case 71: case 65: case 66: case 84: return true;
        default: return false;
    }
}

OFA_FUNCTION void spawn_thing(WorldBase& w, const MapThing& t) {
    Game& g = w.g;
    const bool many = g.cooperative || g.deathmatch;
    if (!many && (t.options & 16)) return;
    const int skill_bit = g.skill == 0 ? 1 : g.skill == 4 ? 4 : 1 << (g.skill - 1);
    if (!(t.options & skill_bit) || t.type < 0) return;
    const ThingType& type = w.types[t.type];
    if (g.deathmatch && (type.flags & MF_NOTDMATCH)) return;
    if (g.no_monsters && (t.type == THING_LOST_SOUL || (type.flags & MF_COUNTKILL))) return;
    const Fixed z = type.flags & MF_SPAWNCEILING ? ON_CEILING : ON_FLOOR;
    Mobj& m = g.mobjs[spawn_mobj(w, t.x * UNIT, t.y * UNIT, z, t.type)];
    m.spawn = {t.x, t.y, t.angle, t.number, t.options};
    if (m.tics > 0) m.tics = 1 + next_random(w) % m.tics;
    if (m.flags & MF_COUNTKILL) ++g.total_kills;
    if (m.flags & MF_COUNTITEM) ++g.total_items;
    m.angle = ANGLE_45 * Angle(t.angle / 45);
    if (t.options & 8) m.flags |= MF_AMBUSH;
}

template <class W>
OFA_FUNCTION void spawn_things(W& w) {
    Game& g = w.g;
    const MapThing* things = at(w.wad, w.level->things);
    for (uint32_t i = 0; i < w.level->things.count; ++i) {
        const MapThing& t = things[i];
        if (!g.commercial && is_doom2_monster(t.number)) return;  // the original stops there
        if (t.number == 11) continue;
        if (t.number >= 1 && t.number <= MAX_PLAYERS) {
            SpawnPoint& start = g.starts[t.number - 1];
            start = {t.x, t.y, t.angle, t.number, t.options};
            if (!g.deathmatch) spawn_player(w, start);
            continue;
        }
        spawn_thing(w, t);
    }
}

// A map may lack starts. Who has none begins where another player does, else where the map's first thing is.
template <class W>
OFA_FUNCTION void spawn_players_without_start(W& w) {
    Game& g = w.g;
    const MapThing none = {};
    const MapThing& first = w.level->things.count ? *at(w.wad, w.level->things) : none;
    SpawnPoint place = {first.x, first.y, first.angle, 0, 0};
    for (int i = MAX_PLAYERS; i-- > 0;)
        if (g.players[i].mobj != NONE) place = g.starts[i];
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!g.present[i] || g.players[i].mobj != NONE) continue;
        place.type = int16_t(i + 1);
        g.starts[i] = place;
        spawn_player(w, place);
    }
}

OFA_FUNCTION void start_sector_special(WorldBase& w, int sector) {
    const int number = w.g.sectors[sector].special;
    if (number <= 0 || number >= SECTOR_SPECIALS) return;
    const SectorSpecial s = at(w.wad, w.wad.sector_specials)[number];
    if (s.secret) ++w.g.total_secrets;
    switch (s.kind) {
        case SECTOR_FLICKER: start_flash(w, sector); break;
        case SECTOR_STROBE:
            start_strobe(w, sector, s.dark_tics, s.synchronous);
            if (s.damage) w.g.sectors[sector].special = int16_t(number);
            break;
        case SECTOR_GLOW: start_glow(w, sector); break;
        case SECTOR_FIRE_FLICKER: start_fire_flicker(w, sector); break;
        case SECTOR_DOOR_CLOSE_30:
        case SECTOR_DOOR_RAISE_5_MINUTES: start_timed_door(w, sector, s.kind); break;
        default: break;
    }
}

// Sectors, lines and sides as the map has them.
OFA_FUNCTION void copy_map(WorldBase& w) {
    Game& g = w.g;
    g.n_sectors = int(w.level->sectors.count);
    g.n_lines = int(w.level->lines.count);
    g.n_sides = int(w.level->sides.count);
    g.n_blocks = w.level->block_columns * w.level->block_rows;
    if (g.n_blocks > MAX_BLOCKS) g.n_blocks = MAX_BLOCKS;
    for (int i = 0; i < g.n_sectors; ++i) {
        const MapSector& m = w.sectors[i];
        Sector& s = g.sectors[i];
        memset(&s, 0, sizeof s);
        s.floor_height = m.floor_height;
        s.ceiling_height = m.ceiling_height;
        s.floor_flat = m.floor_flat;
        s.ceiling_flat = m.ceiling_flat;
        s.light = m.light;
        s.special = m.special;
        s.tag = m.tag;
        s.sound_target = s.objects = s.mover = NONE;
    }
    g.n_scrollers = 0;
    for (int i = 0; i < g.n_lines; ++i) {
        const MapLine& m = w.lines[i];
        g.lines[i] = {m.flags, m.special, m.tag, 0};
    }
    for (int i = 0; i < g.n_sides; ++i) {
        const MapSide& m = w.sides[i];
        g.sides[i] = {m.x_offset, m.y_offset, m.top, m.bottom, m.middle};
    }
    for (int i = 0; i < g.n_blocks; ++i) g.block_objects[i] = NONE;
}

OFA_FUNCTION int find_level(const WadBlob& wad, int episode, int map) {
    const Level* levels = at(wad, wad.levels);
    for (uint32_t i = 0; i < wad.levels.count; ++i)
        if (levels[i].episode == episode && levels[i].map == map) return int(i);
    return NONE;
}

// Sets up level g.episode, g.map. Players keep what they have unless they are dead.
OFA_NOINLINE void load_level(Game& g, const WadBlob& wad) {
    g.level = find_level(wad, g.episode, g.map);
    if (g.level == NONE) g.level = 0;
    ++g.loads;
    World<FULL_DEPTH> w(g, wad);
    g.mode = MODE_LEVEL;
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        Player& p = g.players[i];
        if (g.present[i] && p.mode == PLAYER_DEAD) p.mode = PLAYER_REBORN;
        p.kill_count = p.item_count = p.secret_count = 0;
        memset(p.frags, 0, sizeof p.frags);
    }
    g.players[g.viewed].view_z = 1;
    g.total_kills = g.total_items = g.total_secrets = 0;
    clear_thinkers(g);
    g.level_tics = 0;
    g.corpse_count = 0;
    memset(g.buttons, 0, sizeof g.buttons);
    for (Player& p : g.players) p.mobj = NONE;
    copy_map(w);
    spawn_things(w);
    spawn_players_without_start(w);
    for (int i = 0; i < g.n_sectors; ++i) start_sector_special(w, i);
    for (int i = 0; i < g.n_lines; ++i)
        if (line_special(w, i).kind == KIND_SCROLL && g.n_scrollers < MAX_SCROLLERS) g.scrollers[g.n_scrollers++] = i;
}

}  // namespace doom
