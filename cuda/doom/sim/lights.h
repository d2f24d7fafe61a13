// Sectors whose light flickers, and switches for light.
#pragma once

#include "neighbours.h"

namespace doom {

constexpr int STROBE_BRIGHT_TICS = 5, STROBE_FAST_DARK_TICS = 15, STROBE_SLOW_DARK_TICS = 35, GLOW_STEP = 8;

OFA_FUNCTION Mover& start_light(WorldBase& w, int sector, ThinkerKind kind) {
    Sector& s = w.g.sectors[sector];
    s.special = 0;
    Mover& l = new_mover(w.g, kind, sector);
    l.high = s.light;
    l.low = darkest_light_around(w, sector, s.light);
    return l;
}

OFA_FUNCTION void start_fire_flicker(WorldBase& w, int sector) {
    Mover& l = start_light(w, sector, THINKER_FLICKER);
    l.low += 16;
    l.count = 4;
}

OFA_FUNCTION void start_flash(WorldBase& w, int sector) {
    Mover& l = start_light(w, sector, THINKER_FLASH);
    l.bright_time = 64;
    l.dark_time = 7;
    l.count = (next_random(w) & l.bright_time) + 1;
}

OFA_FUNCTION void start_strobe(WorldBase& w, int sector, int dark_tics, bool in_step) {
    Mover& l = start_light(w, sector, THINKER_STROBE);
    l.dark_time = dark_tics;
    l.bright_time = STROBE_BRIGHT_TICS;
    if (l.low == l.high) l.low = 0;
    l.count = in_step ? 1 : (next_random(w) & 7) + 1;
}

OFA_FUNCTION void start_glow(WorldBase& w, int sector) { start_light(w, sector, THINKER_GLOW).direction = -1; }

OFA_FUNCTION void think_light(WorldBase& w, Mover& l, ThinkerKind kind) {
    int16_t& light = w.g.sectors[l.sector].light;
    if (kind == THINKER_GLOW) {
        light = int16_t(light + GLOW_STEP * l.direction);
        if (l.direction < 0 ? light <= l.low : light >= l.high) {
            light = int16_t(light - GLOW_STEP * l.direction);
            l.direction = -l.direction;
        }
        return;
    }
    if (--l.count) return;
    if (kind == THINKER_FLICKER) {
        const int amount = (next_random(w) & 3) * 16;
        light = int16_t(light - amount < l.low ? l.low : l.high - amount);
        l.count = 4;
    } else if (kind == THINKER_FLASH) {
        const bool was_bright = light == l.high;
        light = int16_t(was_bright ? l.low : l.high);
        l.count = (next_random(w) & (was_bright ? l.dark_time : l.bright_time)) + 1;
    } else {
        const bool was_dark = light == l.low;
        light = int16_t(was_dark ? l.high : l.low);
        l.count = was_dark ? l.bright_time : l.dark_time;
    }
}

OFA_FUNCTION void change_lights(WorldBase& w, int line, SpecialVariant variant, int level) {
    Game& g = w.g;
    const int tag = g.lines[line].tag;
    if (variant == LIGHT_STROBE) {
        for_tagged_idle_sectors(w, tag, [&](int s) { start_strobe(w, s, STROBE_SLOW_DARK_TICS, false); });
        return;
    }
    for (int i = next_tagged_sector(w, tag, -1); i != NONE; i = next_tagged_sector(w, tag, i)) {
        Sector& s = g.sectors[i];
        if (variant == LIGHT_MIN_NEIGHBOUR) {
            s.light = int16_t(darkest_light_around(w, i, s.light));
            continue;
        }
        // A brightest neighbour found for one sector also counts for the tagged ones after it.
        if (level == 0) {
            for_neighbours(w, i, [&](const Sector& n) {
                if (n.light > level) level = n.light;
            });
        }
        s.light = int16_t(level);
    }
}

}  // namespace doom
