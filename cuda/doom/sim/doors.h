// Doors: ceilings that rise to four units below their lowest neighbour and mostly come down again.
#pragma once

#include "../messages.h"
#include "neighbours.h"
#include "planes.h"

namespace doom {

constexpr Fixed DOOR_SPEED = 2 * UNIT, DOOR_GAP = 4 * UNIT;
constexpr int DOOR_WAIT = 150;
enum DoorDirection { DOOR_DOWN = -1, DOOR_WAITS = 0, DOOR_UP = 1, DOOR_NOT_YET = 2 };

OFA_FUNCTION bool is_blazing(int type) {
    return type == DOOR_BLAZE_NORMAL || type == DOOR_BLAZE_OPEN || type == DOOR_BLAZE_CLOSE;
}

OFA_FUNCTION Mover& start_door(WorldBase& w, int sector, int type) {
    Mover& d = new_sector_mover(w.g, THINKER_DOOR, sector);
    d.type = type;
    d.wait = DOOR_WAIT;
    d.speed = is_blazing(type) ? DOOR_SPEED * 4 : DOOR_SPEED;
    const bool closes = type == DOOR_CLOSE || type == DOOR_BLAZE_CLOSE || type == DOOR_CLOSE_30_OPEN;
    d.direction = closes ? DOOR_DOWN : DOOR_UP;
    d.high = type == DOOR_CLOSE_30_OPEN ? w.g.sectors[sector].ceiling_height
                                        : wrap_sub(lowest_ceiling_around(w, sector), DOOR_GAP);
    return d;
}

OFA_FUNCTION bool start_doors(WorldBase& w, int tag, int type) {
    return for_tagged_idle_sectors(w, tag, [&](int sector) {
        const Mover& d = start_door(w, sector, type);
        const bool moves = d.direction == DOOR_DOWN || d.high != w.g.sectors[sector].ceiling_height;
        if (moves) start_sector_sound(w, sector, SOUND_DOROPN);
    });
}

template <class W>
OFA_FUNCTION void think_door(W& w, Mover& d) {
    Game& g = w.g;
    const Fixed floor = g.sectors[d.sector].floor_height;
    PlaneResult result;
    switch (d.direction) {
        case DOOR_WAITS:
            if (--d.count) return;
            if (d.type == DOOR_NORMAL || d.type == DOOR_BLAZE_NORMAL) d.direction = DOOR_DOWN;
            else if (d.type == DOOR_CLOSE_30_OPEN) d.direction = DOOR_UP;
            else return;
            start_sector_sound(w, d.sector, SOUND_DORCLS);
            return;
        case DOOR_NOT_YET:
            if (--d.count) return;
            if (d.type == DOOR_RAISE_IN_5_MINUTES) {
                d.direction = DOOR_UP;
                d.type = DOOR_NORMAL;
                start_sector_sound(w, d.sector, SOUND_DOROPN);
            }
            return;
        case DOOR_DOWN:
            result = move_ceiling(w, d.sector, d.speed, floor, 0, DOOR_DOWN);
            if (result == PLANE_ARRIVED) {
                if (d.type == DOOR_CLOSE_30_OPEN) {
                    d.direction = DOOR_WAITS;
                    d.count = 35 * 30;
                } else if (d.type == DOOR_NORMAL || d.type == DOOR_CLOSE || is_blazing(d.type)) {
                    if (is_blazing(d.type)) start_sector_sound(w, d.sector, SOUND_BDCLS);
                    remove_mover(g, d);
                }
            } else if (result == PLANE_BLOCKED && d.type != DOOR_CLOSE && d.type != DOOR_BLAZE_CLOSE) {
                d.direction = DOOR_UP;
                start_sector_sound(w, d.sector, SOUND_DOROPN);
            }
            return;
        default:
            result = move_ceiling(w, d.sector, d.speed, d.high, 0, DOOR_UP);
            if (result != PLANE_ARRIVED) return;
            if (d.type == DOOR_NORMAL || d.type == DOOR_BLAZE_NORMAL) {
                d.direction = DOOR_WAITS;
                d.count = d.wait;
            } else if (d.type == DOOR_OPEN || d.type == DOOR_BLAZE_OPEN || d.type == DOOR_CLOSE_30_OPEN) {
                remove_mover(g, d);
            }
    }
}

// key: 1 blue, 2 yellow, 3 red, as card or skull.
OFA_FUNCTION bool has_key(const Player& p, int key) { return key == 0 || p.cards[key - 1] || p.cards[key + 2]; }

// Somebody uses a door's own line: opens it, or turns a moving one round.
OFA_FUNCTION void use_door(WorldBase& w, int line, const LineSpecial& special, int user) {
    Game& g = w.g;
    const int player = g.mobjs[user].player;
    if (special.key) {
        if (player == NONE) return;
        if (!has_key(g.players[player], special.key)) {
            g.players[player].message = int16_t(MESSAGE_NEED_KEY_DOOR + special.key - 1);
            start_sound_everywhere(w, SOUND_OOF);
            return;
        }
    }
    const int sector = w.lines[line].sector[1];
    if (sector < 0) return;
    const bool reusable = special.repeats;
    if (g.sectors[sector].mover != NONE && reusable) {
        Mover& d = g.movers[g.sectors[sector].mover];
        const ThinkerKind kind = g.thinkers[MAX_MOBJS + g.sectors[sector].mover].kind;
        if (d.direction == DOOR_DOWN && kind != THINKER_PLAT) {
            d.direction = DOOR_UP;
        } else if (player != NONE) {
            if (kind == THINKER_PLAT) d.wait = -1;
            else d.direction = DOOR_DOWN;
        }
        return;
    }
    if (!special.repeats) g.lines[line].special = 0;
    start_sector_sound(w, sector, SOUND_DOROPN);
    start_door(w, sector, special.variant);
}

// Sector types: a door that closes after 30 seconds, and one that opens after five minutes.
OFA_FUNCTION void start_timed_door(WorldBase& w, int sector, SectorKind kind) {
    w.g.sectors[sector].special = 0;
    Mover& d = new_sector_mover(w.g, THINKER_DOOR, sector);
    d.speed = DOOR_SPEED;
    if (kind == SECTOR_DOOR_CLOSE_30) {
        d.type = DOOR_NORMAL;
        d.direction = DOOR_WAITS;
        d.count = 30 * 35;
    } else {
        d.type = DOOR_RAISE_IN_5_MINUTES;
        d.direction = DOOR_NOT_YET;
        d.high = wrap_sub(lowest_ceiling_around(w, sector), DOOR_GAP);
        d.wait = DOOR_WAIT;
        d.count = 5 * 60 * 35;
    }
}

}  // namespace doom
