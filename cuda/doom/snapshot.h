// A copy of a whole game, without what nobody can read: what is left out of it is zero or of another level.
#pragma once

#include "sim/fixed.h"

namespace doom {

// All threads. No barrier follows.
template <class Block, class T>
OFA_INLINE void copy_words(Block& block, T* to, const T* from, int64_t bytes) {
    static_assert(sizeof(T) % sizeof(uint32_t) == 0);
    uint32_t* words = reinterpret_cast<uint32_t*>(to);
    const uint32_t* source = reinterpret_cast<const uint32_t*>(from);
    block.for_each(bytes / int64_t(sizeof(uint32_t)), [&](int64_t i) { words[i] = source[i]; });
}

template <class Block, class T>
OFA_INLINE void copy_first(Block& block, T* to, const T* from, int64_t n) {
    copy_words(block, to, from, n * int64_t(sizeof(T)));
}

// Makes `to` a game that goes on as `from` does. Of the arrays at the end of the state only what the level has is copied,
// and of the objects those up to the last slot ever used (a free one may still be named by another's target).
template <class Block>
OFA_FUNCTION void copy_game(Block& block, Game& to, const Game& from) {
    const int n_mobjs = block.max(MAX_MOBJS, 0, [&](int64_t i) { return from.mobjs[i].radius != 0 ? int(i) + 1 : 0; });
    copy_words(block, &to, &from, offsetof(Game, block_objects));
    copy_first(block, to.block_objects, from.block_objects, from.n_blocks);
    copy_first(block, to.sectors, from.sectors, from.n_sectors);
    copy_first(block, to.lines, from.lines, from.n_lines);
    copy_first(block, to.sides, from.sides, from.n_sides);
    copy_first(block, to.thinkers, from.thinkers, MAX_THINKERS + 1);
    copy_first(block, to.mobjs, from.mobjs, n_mobjs);
    copy_first(block, to.movers, from.movers, MAX_MOVERS);
}

}  // namespace doom
