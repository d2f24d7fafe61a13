// The list of everything that moves, in order of creation, and the pools its nodes belong to.
//
// Removing marks a node; it leaves the list when its turn comes. A slot is reused as late as possible, because
// objects may still name one that is gone and the original then reads what is left of it.
#pragma once

#include "fixed.h"

namespace doom {

OFA_FUNCTION void clear_thinkers(Game& g) {
    for (int i = 0; i < MAX_THINKERS; ++i) g.thinkers[i].kind = THINKER_FREE;
    g.thinkers[THINKER_HEAD].next = g.thinkers[THINKER_HEAD].prev = THINKER_HEAD;
    g.mobj_hint = g.mover_hint = 0;
}

OFA_FUNCTION void append_thinker(Game& g, int node, ThinkerKind kind) {
    Thinker& t = g.thinkers[node];
    const int last = g.thinkers[THINKER_HEAD].prev;
    t.kind = kind;
    t.next = THINKER_HEAD;
    t.prev = last;
    g.thinkers[last].next = node;
    g.thinkers[THINKER_HEAD].prev = node;
}

OFA_FUNCTION void unlink_thinker(Game& g, int node) {
    Thinker& t = g.thinkers[node];
    g.thinkers[t.next].prev = t.prev;
    g.thinkers[t.prev].next = t.next;
    t.kind = THINKER_FREE;
}

// A free slot in nodes [first, first + size), searched round from `hint`; -1 if there is none: then g.exhausted tells.
OFA_FUNCTION int free_slot(Game& g, int first, int size, int32_t& hint) {
    for (int n = 0; n < size; ++n) {
        const int slot = hint;
        hint = hint + 1 == size ? 0 : hint + 1;
        if (g.thinkers[first + slot].kind == THINKER_FREE) return slot;
    }
    g.exhausted = 1;
    return NONE;
}

// A new, zeroed mover at the end of the list. A full pool gives up its last one.
OFA_FUNCTION Mover& new_mover(Game& g, ThinkerKind kind, int sector) {
    int slot = free_slot(g, MAX_MOBJS, MAX_MOVERS, g.mover_hint);
    if (slot == NONE) {
        slot = MAX_MOVERS - 1;
        int32_t& moves = g.sectors[g.movers[slot].sector].mover;
        if (moves == slot) moves = NONE;
        unlink_thinker(g, MAX_MOBJS + slot);
    }
    Mover& m = g.movers[slot];
    memset(&m, 0, sizeof(Mover));
    m.sector = sector;
    append_thinker(g, MAX_MOBJS + slot, kind);
    return m;
}

OFA_FUNCTION int mover_index(const Game& g, const Mover& m) { return int(&m - g.movers); }

// Takes a door, floor, ceiling or plat off its sector.
OFA_FUNCTION void remove_mover(Game& g, Mover& m) {
    g.sectors[m.sector].mover = NONE;
    g.thinkers[MAX_MOBJS + mover_index(g, m)].kind = THINKER_REMOVED;
}

OFA_FUNCTION Mover& new_sector_mover(Game& g, ThinkerKind kind, int sector) {
    Mover& m = new_mover(g, kind, sector);
    g.sectors[sector].mover = mover_index(g, m);
    return m;
}

}  // namespace doom
