// A block of three warpgroups that works on one task after the other (Hopper).
//
//   warpgroup 0   warp 0 loads operand tiles, warp 1 claims tasks, warps 2 and 3 store what one consumer each has staged;
//                 warp 2 also keeps the books: signals, status, timeline
//   warpgroups 1, 2   multiply, 64 rows each; and run everything that is not a product
//
// All of them walk the same sequence of task slots. Barriers have two sides, full and empty, and a position that only
// grows; stage = position mod depth, parity = position div depth mod 2.
#pragma once

#include "ofa_abi.h"
#include "ops/sm90/attention.cuh"
#include "task.h"
#include "tile/shape.cuh"
#include "tile/sm90.cuh"
#include "tile/step.cuh"

namespace ofa {

constexpr int WARPGROUP = 128, CONSUMERS = 2, CONSUMER_WARPS = 8;
constexpr int STAGES = 4, SLOTS = 2, BUFFERS = 2;
constexpr int A_BYTES = TILE_ROWS * TILE_DEPTH * 2, B_BYTES = TILE_COLUMNS * TILE_DEPTH * 2;
constexpr int CHUNK_COLUMNS = 64, CHUNK_BYTES = 64 * CHUNK_COLUMNS * 2;
constexpr int SHARED_BYTES = 232448;  // a block's share on Hopper, all of it asked for at the launch

// What warps have to do for a task.
constexpr uint32_t SLOT_LEAVE = 0, SLOT_BODY = 1, SLOT_PRODUCT = 2, SLOT_TOKEN = 3;

// A product's operand: looked up in memory by those who compute, it would be waited for in every task.
struct NearOperand {
    uint8_t* base;  // of the task's copy
    const sm90::TensorMap* maps;
    uint32_t map_copies, pitch, rows, cols;
};

struct alignas(16) Slot {
    TaskContext ctx;
    Task task;
    NearOperand operands[MAX_OPERANDS];  // of a product
    uint32_t depth;                      // of its sums
    uint32_t kind;
    uint32_t parts;  // of the task that are not done: the last one signals
    bool ahead;      // TaskContext's as it was claimed
    uint64_t waited_ns;                     // the SM before it, where it was not claimed ahead
    uint64_t began_ns, ended_ns, held_ns;   // the consumers' time for it, and what of that they waited
};

// A consumer warp's places in the rings.
struct Places {
    uint32_t slots, stages, buffers, changed, steps;
};

// The stages of the ring are also the near memory of bodies: the loader goes on to the next task when a body has ended.
struct Pipeline {
    alignas(1024) uint8_t a[STAGES][A_BYTES];
    uint8_t b[STAGES][B_BYTES];
    uint8_t staging[CONSUMERS][BUFFERS][CHUNK_BYTES];
    sm90::Barrier full[STAGES], empty[STAGES];
    sm90::Barrier slot_full[SLOTS], slot_consumed[SLOTS], slot_empty[SLOTS];
    StepRing step_ring;
    sm90::Barrier claim_next, body_ended;
    sm90::Barrier staged[CONSUMERS][BUFFERS], stored[CONSUMERS][BUFFERS];
    sm90::Barrier changed[CONSUMERS][STAGES];  // lines in a stage, one after the other
    Slot slots[SLOTS];
    Places places[12];
    uint32_t changed_stage[CONSUMERS][STAGES];  // in which stage the lines are that `changed` stands for
    double turns[RowMemory::UNIT];  // of the pairs of columns of a head, for each position
    Block block;          // of the consumers
    sm90::AttentionViews attention;
    uint32_t zero;
    Launch launch;        // at hand: as the kernel's parameter it would be fetched from memory again and again
    Turn turn;            // the claimer's
    TaskTimer timer;      // the bookkeeper's; in a token the consumers'
    uint64_t ended_ns;    // when the consumers were done with the slot before; the bookkeeper's

    // Of products and of tokens by turns: a token begins when the storers are done.
    OFA_INLINE TokenMemory& token() { return *reinterpret_cast<TokenMemory*>(staging); }

    OFA_INLINE void open() {
        static_assert(sizeof(TokenMemory) <= sizeof staging && STAGES * STREAM_STAGE_BYTES <= sizeof a + sizeof b);
        for (int i = 0; i < STAGES; ++i) {
            sm90::open_barrier(&full[i], 1);
            sm90::open_barrier(&empty[i], CONSUMER_WARPS);
        }
        for (int i = 0; i < SLOTS; ++i) {
            sm90::open_barrier(&slot_full[i], 1);
            sm90::open_barrier(&slot_consumed[i], CONSUMER_WARPS);
            sm90::open_barrier(&slot_empty[i], 1 + CONSUMERS);
        }
        for (int i = 0; i < STEP_SLOTS; ++i) {
            sm90::open_barrier(&step_ring.full[i], 1);
            sm90::open_barrier(&step_ring.empty[i], 1 + CONSUMER_WARPS);
        }
        sm90::open_barrier(&claim_next, 1);
        sm90::open_barrier(&body_ended, 1);
        for (int i = 0; i < CONSUMERS * BUFFERS; ++i) {
            sm90::open_barrier(&staged[0][i], WARPGROUP / 32);
            sm90::open_barrier(&stored[0][i], 1);
        }
        for (int i = 0; i < CONSUMERS * STAGES; ++i) sm90::open_barrier(&changed[0][i], WARPGROUP / 32);
        for (Places& place : places) place = {};
        for (double& pair : turns) pair = 0.0;
        timer.open();
        ended_ns = 0;
        zero = 0;
        sm90::barriers_are_open();
    }
};

// Where a block's shared memory starts that the launch asks for: behind what the system keeps. A number, not the address
// of an array: no register holds it nor what is derived from it.
constexpr uint32_t SHARED_START = 1024;

OFA_INLINE Pipeline& shared_pipeline() {
    return *reinterpret_cast<Pipeline*>(__cvta_shared_to_generic(SHARED_START));
}

// A place in a ring of `depth` barriers.
template <int depth>
struct Position {
    uint32_t count = 0;

    OFA_INLINE uint32_t stage() const { return count % depth; }
    OFA_INLINE uint32_t parity() const { return count / depth % 2; }
    OFA_INLINE void advance() { ++count; }
};

OFA_INLINE int consumer_of(int thread) { return thread / WARPGROUP - 1; }

// A consumer's places in the rings lie in shared memory between two tasks: what stays in registers across the call of a
// body, or across the sums of a product, would be spilled. So both are looked up again behind it.
OFA_INLINE volatile Places& places_of_warp(Pipeline& pipeline) { return pipeline.places[fresh_thread() / 32]; }

OFA_INLINE Slot& current_slot(Pipeline& pipeline) {
    return pipeline.slots[Position<SLOTS>{places_of_warp(pipeline).slots}.stage()];
}

// A slot is filled when there is work, however long that takes.
OFA_INLINE void wait_for_slot(sm90::Barrier* barrier, uint32_t parity) {
    while (!sm90::has_passed(barrier, parity)) {
    }
}

// Inside a task: whoever fills or empties a stage has all it needs, so that only a fault of the kernel itself or of a
// tensor map can make this wait long. Then nothing is left but to end the launch.
OFA_INLINE void wait_for(sm90::Barrier* barrier, uint32_t parity) {
    constexpr uint64_t LONGEST_NS = 20000000000;
    uint64_t started_ns = 0;
    for (uint32_t attempt = 1; !sm90::has_passed(barrier, parity); ++attempt) {
        if (attempt % 4096 != 0) continue;
        if (started_ns == 0) started_ns = now_ns();
        if (now_ns() - started_ns > LONGEST_NS) __trap();
    }
}

}  // namespace ofa
