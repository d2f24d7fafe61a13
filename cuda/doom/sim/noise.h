// A noise spreads from sector to sector through openings; it passes one sound-blocking line, not two.
#pragma once

#include "geometry.h"

namespace doom {

OFA_FUNCTION void alert_by_noise(WorldBase& w, int target, int emitter) {
    Game& g = w.g;
    ++g.valid_count;
    int32_t* queue = g.sector_queue;      // sectors still to be left, each with the number of blocking lines crossed
    int n = 0;
    auto reach = [&](int sector, int blocks) {
        Sector& s = g.sectors[sector];
        if (s.valid == g.valid_count && s.sound_traversed <= blocks + 1) return;
        s.valid = g.valid_count;
        s.sound_traversed = int16_t(blocks + 1);
        s.sound_target = target;
        if (n < MAX_SECTOR_QUEUE) queue[n++] = sector * 2 + blocks;
    };
    reach(g.mobjs[emitter].sector, 0);
    while (n > 0) {
        const int sector = queue[--n] >> 1, blocks = queue[n] & 1;
        const MapSector& s = w.sectors[sector];
        for (uint32_t i = 0; i < s.n_lines; ++i) {
            const int line = w.sector_lines[s.first_line + i];
            if (!(g.lines[line].flags & LINE_TWO_SIDED)) continue;
            find_opening(w, line);
            if (g.clip.open_range <= 0) continue;
            const MapLine& l = w.lines[line];
            const int other = w.sides[l.side[0]].sector == sector ? l.sector[1] : l.sector[0];
            if (!(g.lines[line].flags & LINE_SOUND_BLOCK)) reach(other, blocks);
            else if (!blocks) reach(other, 1);
        }
    }
}

}  // namespace doom
