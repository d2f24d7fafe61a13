// The game's clock: new games, level changes, rebirth, and one tic.
#pragma once

#include "intermission.h"
#include "status_face.h"

namespace doom {

OFA_FUNCTION void choose_sky(Game& g, const WadBlob& wad) {
    const int level = find_level(wad, g.episode, g.map);
    if (level == NONE) return;
    for (int i = 0; i < 4; ++i)
        if (wad.sky_texture[i] == at(wad, wad.levels)[level].sky) g.sky = uint8_t(i + 1);
}

// Everybody is born anew, and nothing is left of a game before this one: its demo must play without that one.
OFA_FUNCTION void begin_game(Game& g, const WadBlob& wad, int episode, int map) {
    g.tic = 0;
    g.episode = uint8_t(episode);
    g.map = uint8_t(map);
    g.simulation_random = g.cosmetic_random = 0;
    g.paused = g.secret_exit = g.brain_easy = 0;
    g.action = NEXT_NONE;
    g.fuzz_position = 0;
    memset(&g.clip, 0, sizeof g.clip);
    memset(&g.intermission, 0, sizeof g.intermission);
    memset(&g.status_bar, 0, sizeof g.status_bar);
    g.status_bar.rampage_tics = g.status_bar.last_pain_health = -1;
    memset(g.players, 0, sizeof g.players);
    for (Player& p : g.players) {
        p.mobj = p.attacker = NONE;
        p.mode = PLAYER_REBORN;
    }
    choose_sky(g, wad);
    load_level(g, wad);
}

OFA_FUNCTION void leave_intermission(Game& g, const WadBlob& wad) {
    const bool last_of_episode = !g.commercial && g.mode == MODE_FINALE;
    const bool last_of_game = g.commercial && g.map == 30;
    if (last_of_episode || last_of_game) {
        const bool more = last_of_episode && find_level(wad, g.episode + 1, 1) != NONE;
        begin_game(g, wad, more ? g.episode + 1 : 1, 1);
        return;
    }
    g.map = uint8_t(g.intermission.next_map);
    if (find_level(wad, g.episode, g.map) == NONE) {
        const Level& first = at(wad, wad.levels)[0];
        begin_game(g, wad, first.episode, first.map);
        return;
    }
    if (!g.commercial) choose_sky(g, wad);
    load_level(g, wad);
}

// Whether a player can be born at a start; a corpse lies there from the 32nd on only.
template <class W>
OFA_FUNCTION bool start_is_free(W& w, int number, const SpawnPoint& start) {
    Game& g = w.g;
    const Player& p = g.players[number];
    const Fixed x = start.x * UNIT, y = start.y * UNIT;
    if (p.mobj == NONE) {
        for (int i = 0; i < number; ++i)
            if (g.mobjs[g.players[i].mobj].x == x && g.mobjs[g.players[i].mobj].y == y) return false;
        return true;
    }
    if (!check_position(w, p.mobj, x, y)) return false;
    if (g.corpse_count >= MAX_CORPSES) remove_mobj(w, g.corpses[g.corpse_count % MAX_CORPSES]);
    g.corpses[g.corpse_count % MAX_CORPSES] = p.mobj;
    ++g.corpse_count;
    const Angle angle = ANGLE_45 * Angle(start.angle / 45);
    const Fixed floor = g.sectors[w.subsectors[subsector_at(w, x, y)].sector].floor_height;
    const int fog = spawn_mobj(w, x + 20 * cosine_of(w, angle), y + 20 * sine_of(w, angle), floor, THING_TELEPORT_FOG);
    if (g.players[g.viewed].view_z != 1) start_sound(w, fog, SOUND_TELEPT);   // 1: before the level's first tic
    return true;
}

// Alone: the level starts over. Together: born at a start that is free, the own one first.
OFA_FUNCTION void rebear_player(Game& g, const WadBlob& wad, int number) {
    if (!g.cooperative && !g.deathmatch) {
        g.action = NEXT_LOAD_LEVEL;
        return;
    }
    World<FULL_DEPTH> w(g, wad);
    g.mobjs[g.players[number].mobj].player = NONE;
    if (start_is_free(w, number, g.starts[number])) {
        spawn_player(w, g.starts[number]);
        return;
    }
    for (int i = 0; i < MAX_PLAYERS; ++i) {
        if (!start_is_free(w, number, g.starts[i])) continue;
        SpawnPoint start = g.starts[i];
        start.type = int16_t(number + 1);
        spawn_player(w, start);
        return;
    }
    spawn_player(w, g.starts[number]);
}

OFA_FUNCTION void do_pending_action(Game& g, const WadBlob& wad) {
    for (int i = 0; i < MAX_PLAYERS; ++i)
        if (g.present[i] && g.players[i].mode == PLAYER_REBORN) rebear_player(g, wad, i);
    for (int i = 0; g.action != NEXT_NONE && i < 4; ++i) {
        const uint8_t action = g.action;
        g.action = NEXT_NONE;
        if (action == NEXT_LOAD_LEVEL) {
            load_level(g, wad);
        } else if (action == NEXT_COMPLETED) {
            WorldBase w(g, wad);
            complete_level(w);
        } else {
            leave_intermission(g, wad);
        }
    }
}

template <class W>
OFA_FUNCTION void run_thinkers(W& w) {
    Game& g = w.g;
    int node = g.thinkers[THINKER_HEAD].next;
    while (node != THINKER_HEAD) {
        const ThinkerKind kind = g.thinkers[node].kind;
        if (kind == THINKER_REMOVED) {
            const int next = g.thinkers[node].next;
            unlink_thinker(g, node);
            node = next;
            continue;
        }
        Mover* mover = node >= MAX_MOBJS ? &g.movers[node - MAX_MOBJS] : nullptr;
        switch (kind) {
            case THINKER_MOBJ: think_mobj(w, node); break;
            case THINKER_DOOR: think_door(w, *mover); break;
            case THINKER_FLOOR: think_floor(w, *mover); break;
            case THINKER_CEILING: think_ceiling(w, *mover); break;
            case THINKER_PLAT: think_plat(w, *mover); break;
            default: think_light(w, *mover, kind);
        }
        node = g.thinkers[node].next;
    }
}

OFA_NOINLINE void tick_level(Game& g, const WadBlob& wad) {
    World<FULL_DEPTH> w(g, wad);
    if (!g.paused) {
        for (int i = 0; i < MAX_PLAYERS; ++i)
            if (g.present[i]) think_player(w, g.players[i]);
        run_thinkers(w);
        for (int i = 0; i < g.n_scrollers; ++i) {
            Side& side = g.sides[w.lines[g.scrollers[i]].side[0]];
            side.x_offset = wrap_add(side.x_offset, UNIT);
        }
        tick_buttons(w);
        ++g.level_tics;
    }
    tick_status_bar(w);
}

// Special commands: bit 0 toggles pause. They are no ordinary buttons.
OFA_FUNCTION void take_special_command(Game& g, TicCommand& c) {
    if (!(c.buttons & BUTTON_SPECIAL)) return;
    if ((c.buttons & 3) == 1) g.paused ^= 1;
}

}  // namespace doom
