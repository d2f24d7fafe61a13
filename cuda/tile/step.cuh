// What a block's claimer, loader (tile/token.cuh) and consumers (ops/sm90/token.cuh) share while they work on a token.
#pragma once

#include "ofa_abi.h"
#include "task.h"
#include "tile/bf16.cuh"
#include "tile/sm90.cuh"

namespace ofa {

constexpr int STEP_SLOTS = 8, MOST_PAIRS = 6, MOST_ACROSS = 48, MOST_CHUNKS = 4;
constexpr int WEIGHT_BLOCK = 16, WEIGHT_BLOCK_BYTES = 512;
constexpr int STREAM_STAGE_BYTES = 2 * MOST_ACROSS * WEIGHT_BLOCK_BYTES;
constexpr int STREAM_HEAD = 64;
constexpr uint32_t MOST_CONTEXT = 512;
constexpr uint16_t STEP_END = 0xFFFF;

// Neighbouring tasks of one operation that a block does together, with what their descriptors stand for.
struct alignas(16) Step {
    uint16_t opcode;   // or STEP_END
    uint8_t pairs;     // pairs of blocks of weight rows; 0: no weight
    uint8_t chunks;    // into which the depth is divided
    uint16_t blocks;   // of columns in a chunk
    uint16_t apart;    // rows between the two blocks of a pair
    uint32_t task;     // the first one's place in the queue
    uint32_t tasks;
    uint32_t row[MOST_PAIRS];  // first weight row of each pair; of a unit the first column
    uint32_t single;           // bit p: pair p is one block only
    uint32_t signal;
    // By operand, as ops.py numbers them.
    uint16_t name[8];      // in the operand table
    uint32_t tag[8];       // of a message
    uint64_t base[8];

    template <class T>
    OFA_INLINE T* at(int operand) const { return reinterpret_cast<T*>(base[operand]); }
};

// Into how many chunks of equal length the columns of a weight, in blocks, are divided.
OFA_INLINE uint32_t chunks_of(uint32_t across) { return (across + MOST_ACROSS - 1) / MOST_ACROSS; }

// Whether a block can decode a token of this model.
OFA_INLINE bool holds_model(const Model& model) {
    const auto in_chunks = [](uint32_t depth) {
        const uint32_t across = depth / WEIGHT_BLOCK, chunks = chunks_of(across);
        return depth % WEIGHT_BLOCK == 0 && chunks <= MOST_CHUNKS && across % chunks == 0;
    };
    return model.head_dim == STREAM_HEAD && model.context <= MOST_CONTEXT && in_chunks(model.width) &&
           in_chunks(model.feed_forward);
}

struct StepRing {
    sm90::Barrier full[STEP_SLOTS], empty[STEP_SLOTS];
};

// What is there twice is written in one copy while threads still read the other.
struct RowMemory {
    static constexpr int WARPS = 8, SLICE = MOST_ACROSS / WARPS, SLICE_PAIRS = SLICE * WEIGHT_BLOCK / 2;
    static constexpr int UNIT = 32;  // columns of a unit

    float parts[2][WARPS][MOST_PAIRS * 2 * WEIGHT_BLOCK];
    float squares[2][WARPS];
    // A warp's slice of each chunk of the input: pairs of bf16, then their pairs of rests, in the order of fragments.
    uint32_t x[MOST_CHUNKS][WARPS][2][SLICE_PAIRS];
    float cosine[UNIT], sine[UNIT];  // of the pairs of columns of a head, at the token's position
    alignas(16) float q[UNIT];
    alignas(16) bf16 k[UNIT], v[UNIT];
    float outs[2][WARPS][UNIT];
    float largest[2][WARPS], sums[2][WARPS];
};

// The same where a pass has several rows. A warp has the sums of a pair of blocks of weight rows, for all of them.
struct RowsMemory {
    float parts[2][RowMemory::WARPS][2 * WEIGHT_BLOCK][PASS_ROWS];
    float squares[2][RowMemory::WARPS][PASS_ROWS];
    float values[3][PASS_ROWS][RowMemory::UNIT];  // a unit's q, k and v
    alignas(16) bf16 keys[PASS_ROWS][RowMemory::UNIT], fresh[PASS_ROWS][RowMemory::UNIT];  // the new ones; fresh values
    uint32_t behind[PASS_ROWS];  // how many rows before it in the pass are of its stream
    float cosine[PASS_ROWS][RowMemory::UNIT], sine[PASS_ROWS][RowMemory::UNIT];
    float largest[PASS_ROWS][RowMemory::WARPS], sums[PASS_ROWS][RowMemory::WARPS];

    // Of attention, which has no weights: [row][part][column] in one copy of `parts`.
    OFA_INLINE float* outs(uint32_t turn, int row, int part) {
        static_assert(sizeof parts[0] >= sizeof(float) * PASS_ROWS * RowMemory::WARPS * RowMemory::UNIT);
        return &parts[turn][0][0][0] + (row * RowMemory::WARPS + part) * RowMemory::UNIT;
    }
};

// Shared memory of a block during a pass, in the place of what products stage.
struct TokenMemory {
    union {
        RowMemory one;
        RowsMemory several;
    };
    Step steps[STEP_SLOTS];
    const TaskContext* ctx;
    uint32_t given_up;
    uint64_t started_ns[RowMemory::WARPS], checked_ns[RowMemory::WARPS];  // of a long wait
    // What the leader has counted: tasks, signals of one counter; the token's begin; clocks.
    uint32_t tasks, signals, counter;
    uint64_t began_ns, began, last, waited, spent[OPCODE_COUNT];
    uint64_t last_ns, last_waited;  // as `last` and `waited` stood at the end of the step before
};

}  // namespace ofa
