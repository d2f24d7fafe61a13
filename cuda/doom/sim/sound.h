// Sounds. Nothing is heard, but where the original starts a sound that can be heard it draws a number of the cosmetic
// stream for its pitch, and that stream moves the face. Game::sounds says whether a game does so too.
#pragma once

#include "geometry.h"

namespace doom {

constexpr Fixed HEARING_RANGE = 1200 * UNIT, FULL_VOLUME_RANGE = 200 * UNIT;
constexpr int FULL_VOLUME = 64, FADING_UNITS = 1000;
constexpr int MAP_HEARD_EVERYWHERE = 8;

OFA_FUNCTION bool is_heard(const WorldBase& w, Fixed x, Fixed y) {
    if (w.g.map == MAP_HEARD_EVERYWHERE) return true;
    const int listener = w.g.players[w.g.viewed].mobj;
    if (listener == NONE) return false;
    const Mobj& m = w.g.mobjs[listener];
    const Fixed distance = approximate_distance(wrap_sub(m.x, x), wrap_sub(m.y, y));
    if (distance < FULL_VOLUME_RANGE) return true;
    return distance <= HEARING_RANGE && FULL_VOLUME * ((HEARING_RANGE - distance) >> 16) / FADING_UNITS > 0;
}

// A sound without a place.
OFA_FUNCTION void start_sound_everywhere(WorldBase& w, int sound) {
    if (w.g.sounds && sound != SOUND_NONE && sound != SOUND_ITEMUP && sound != SOUND_TINK) next_cosmetic_random(w);
}

OFA_FUNCTION void start_sound_at(WorldBase& w, Fixed x, Fixed y, int sound) {
    if (w.g.sounds && is_heard(w, x, y)) start_sound_everywhere(w, sound);
}

// A sound that an object makes; the viewed player's own are always heard.
OFA_FUNCTION void start_sound(WorldBase& w, int index, int sound) {
    if (!w.g.sounds) return;
    const Mobj& m = w.g.mobjs[index];
    if (index == w.g.players[w.g.viewed].mobj || is_heard(w, m.x, m.y)) start_sound_everywhere(w, sound);
}

// A sound from the middle of a sector.
OFA_FUNCTION void start_sector_sound(WorldBase& w, int sector, int sound) {
    start_sound_at(w, w.sectors[sector].sound_x, w.sectors[sector].sound_y, sound);
}

// What moves slowly is heard every eighth tic.
OFA_FUNCTION void start_moving_sound(WorldBase& w, int sector) {
    if (!(w.g.level_tics & 7)) start_sector_sound(w, sector, SOUND_STNMOV);
}

}  // namespace doom
