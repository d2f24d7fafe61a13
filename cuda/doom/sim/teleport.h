// Teleporters.
#pragma once

#include "move.h"
#include "neighbours.h"

namespace doom {

constexpr int TELEPORT_FREEZE_TICS = 18;

// Sends what crossed the line from its front to the teleport exit in the first tagged sector that has one.
template <class W>
OFA_NOINLINE bool teleport(W& w, int line, int side, int index) {
    Game& g = w.g;
    Mobj& m = g.mobjs[index];
    if ((m.flags & MF_MISSILE) || side == 1) return false;
    const int tag = g.lines[line].tag;
    for (int sector = next_tagged_sector(w, tag, -1); sector != NONE; sector = next_tagged_sector(w, tag, sector)) {
        for (int node = g.thinkers[THINKER_HEAD].next; node != THINKER_HEAD; node = g.thinkers[node].next) {
            if (g.thinkers[node].kind != THINKER_MOBJ) continue;
            const Mobj& exit = g.mobjs[node];
            if (exit.type != THING_TELEPORT_EXIT || exit.sector != sector) continue;
            const Fixed old_x = m.x, old_y = m.y, old_z = m.z;
            if (!teleport_move(w, index, exit.x, exit.y)) return false;
            m.z = m.floorz;
            if (m.player != NONE) g.players[m.player].view_z = m.z + g.players[m.player].view_height;
            start_sound(w, spawn_mobj(w, old_x, old_y, old_z, THING_TELEPORT_FOG), SOUND_TELEPT);
            const Fixed ahead_x = exit.x + 20 * cosine_of(w, exit.angle), ahead_y = exit.y + 20 * sine_of(w, exit.angle);
            start_sound(w, spawn_mobj(w, ahead_x, ahead_y, m.z, THING_TELEPORT_FOG), SOUND_TELEPT);
            if (m.player != NONE) m.reactiontime = TELEPORT_FREEZE_TICS;
            m.angle = exit.angle;
            m.momx = m.momy = m.momz = 0;
            return true;
        }
    }
    return false;
}

}  // namespace doom
