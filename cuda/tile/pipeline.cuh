// A block of three warpgroups that works on one task after the other (Hopper).
//
//   warpgroup 0   warp 0 loads operand tiles, warp 1 claims tasks, warps 2 and 3 store what one consumer each has staged
//   warpgroups 1, 2   multiply, 64 rows each; and run everything that is not a product
//
// All of them walk the same sequence of task slots. Barriers have two sides, full and empty, and a position that only
// grows; stage = position mod depth, parity = position div depth mod 2.
#pragma once

#include "ofa_abi.h"
#include "task.h"
#include "tile/sm90.cuh"

namespace ofa {

constexpr int TILE_ROWS = 128, TILE_COLUMNS = 256, TILE_DEPTH = 64;
constexpr int WARPGROUP = 128, CONSUMERS = 2, CONSUMER_WARPS = 8;
constexpr int STAGES = 4, SLOTS = 2, BUFFERS = 2;
constexpr int A_BYTES = TILE_ROWS * TILE_DEPTH * 2, B_BYTES = TILE_COLUMNS * TILE_DEPTH * 2;
constexpr int CHUNK_COLUMNS = 64, CHUNK_BYTES = 64 * CHUNK_COLUMNS * 2;

// What warps have to do for a task.
constexpr uint32_t SLOT_LEAVE = 0, SLOT_BODY = 1, SLOT_PRODUCT = 2;

struct Slot {
    TaskContext ctx;
    Task task;
    uint32_t kind;
};

struct Places {
    uint32_t slots, stages, buffers;
};

struct Pipeline {
    alignas(1024) uint8_t a[STAGES][A_BYTES];
    uint8_t b[STAGES][B_BYTES];
    uint8_t staging[CONSUMERS][BUFFERS][CHUNK_BYTES];
    sm90::Barrier full[STAGES], empty[STAGES];
    sm90::Barrier slot_full[SLOTS], slot_empty[SLOTS];
    sm90::Barrier claim_next;
    sm90::Barrier staged[CONSUMERS][BUFFERS], stored[CONSUMERS][BUFFERS];
    Slot slots[SLOTS];
    Places places[12];
    uint32_t aborted;

    OFA_INLINE void open() {
        for (int i = 0; i < STAGES; ++i) {
            sm90::open_barrier(&full[i], 1);
            sm90::open_barrier(&empty[i], CONSUMER_WARPS);
        }
        for (int i = 0; i < SLOTS; ++i) {
            sm90::open_barrier(&slot_full[i], 1);
            sm90::open_barrier(&slot_empty[i], 1 + CONSUMER_WARPS + CONSUMERS);
        }
        sm90::open_barrier(&claim_next, 1);
        for (int i = 0; i < CONSUMERS * BUFFERS; ++i) {
            sm90::open_barrier(&staged[0][i], WARPGROUP / 32);
            sm90::open_barrier(&stored[0][i], 1);
        }
        for (Places& place : places) place = {0, 0, 0};
        aborted = 0;
        sm90::barriers_are_open();
    }
};

// A place in a ring of `depth` barriers.
template <int depth>
struct Position {
    uint32_t count = 0;

    OFA_INLINE uint32_t stage() const { return count % depth; }
    OFA_INLINE uint32_t parity() const { return count / depth % 2; }
    OFA_INLINE void advance() { ++count; }
};

// Waits without end on purpose: whoever fills or empties a stage has a deadline of its own and fills it when that is
// over, so that the block drains.
OFA_INLINE void wait_for(sm90::Barrier* barrier, uint32_t parity) {
    while (!sm90::has_passed(barrier, parity)) {
    }
}

}  // namespace ofa
