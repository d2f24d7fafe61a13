// Products of a block of eight warps, from Ampere on: operands come by cp.async, the sums are made by mma.sync.
//
// Of the task's 128 x 256 sums a warp has 64 x 64, as four bands of 16 rows (tile/epilogue.cuh says which of them a thread
// has). A stage of the ring holds 64 values of k: strips of 64 rows or columns of the product, two of a and four of b, each
// 64 lines of 128 bytes (tile/mma.cuh), in either order:
//
//   rows   a line has 64 values of k, of one row of the strip     by k   a line has the strip, of one value of k
#pragma once

#include "task.h"
#include "tile/mma.cuh"
#include "tile/shape.cuh"

namespace ofa::sm80 {

using namespace sm90;  // what warps do with lines

constexpr int STRIP = 64, STRIP_BYTES = STRIP * LINE_BYTES;
constexpr int A_STRIPS = TILE_ROWS / STRIP, B_STRIPS = TILE_COLUMNS / STRIP;
constexpr int STAGE_BYTES = (A_STRIPS + B_STRIPS) * STRIP_BYTES;
constexpr int LEAST_STAGES = 2, MOST_STAGES = 4;
constexpr int BANDS = STRIP / 16, BAND_SUMS = 16 * STRIP / 32;  // of a warp, of a thread
static_assert(A_STRIPS * B_STRIPS == BLOCK_THREADS / 32);

// --- copies ------------------------------------------------------------------------------------------------------

// 16 bytes, past the first-level cache; zeros where they are not `there`.
OFA_INLINE void copy_piece(uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "r"(there ? 16 : 0)
                 : "memory");
}
OFA_INLINE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// At most `left` groups of this thread's copies are still on their way.
template <int left>
OFA_INLINE void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// A factor as the block walks over its k. A thread copies 16 bytes of every 32nd line.
template <bool BY_K, int STRIPS>
struct Factor {
    static constexpr int LINES = BLOCK_THREADS / 8;  // of a round of copies

    const uint8_t* from;
    uint32_t pitch_bytes;
    int rows, columns;  // of the operand, from the thread's first 16 bytes on

    // Of the strips from row (by k: column) `first` of operand `i` on.
    OFA_INLINE Factor(const TaskContext& ctx, int i, int first, int thread) {
        const Matrix<bf16> all = ctx.operand<bf16>(i);
        const int row = thread / 8 + (BY_K ? 0 : first), column = thread % 8 * 8 + (BY_K ? first : 0);
        from = reinterpret_cast<const uint8_t*>(all.row(row) + column);
        pitch_bytes = uint32_t(all.pitch) * sizeof(bf16);
        rows = int(all.rows) - row;
        columns = int(all.cols) - column;
    }
    // Brings the next block of k; `to` is where the thread's first 16 bytes go.
    OFA_INLINE void copy(uint32_t to) {
#pragma unroll
        for (int round = 0; round < STRIPS * STRIP / LINES; ++round) {
            const int down = BY_K ? round * LINES % STRIP : round * LINES, right = BY_K ? round * LINES / STRIP * STRIP : 0;
            copy_piece(to + round * LINES * LINE_BYTES, from + uint64_t(pitch_bytes) * down + right * sizeof(bf16),
                       down < rows && right < columns);
        }
        from += BY_K ? uint64_t(pitch_bytes) * TILE_DEPTH : TILE_DEPTH * sizeof(bf16);
        (BY_K ? rows : columns) -= TILE_DEPTH;
    }
};

// --- products ----------------------------------------------------------------------------------------------------

// Where the lane's line of a strip's first four matrices of 8 x 8 lies. The second of them is 8 rows of the left operand
// further on, or 8 values of k of the right one.
template <bool IS_LEFT, bool BY_K>
OFA_INLINE uint32_t first_matrices(uint32_t strip, int lane) {
    return IS_LEFT != BY_K ? piece_at(strip, lane % 16, lane / 16) : piece_at(strip, lane / 16 * 8 + lane % 8, lane / 8 % 2);
}

// A 16 x 16 part of a strip: values of k from 16 step on, rows or columns from 16 part on. Two pieces further in a line is
// another pair of bits; 16 lines further, an offset.
template <bool BY_K>
OFA_INLINE uint4 load_part(uint32_t first, int step, int part) {
    return load_matrices<BY_K>((first ^ ((BY_K ? part : step) * 32)) + (BY_K ? step : part) * 16 * LINE_BYTES);
}

// sums += the product of the warp's strips of one stage, of which `a` and `b` are the first matrices.
template <bool A_BY_K, bool B_BY_K>
OFA_INLINE void multiply_stage(uint32_t a, uint32_t b, float (&sums)[BANDS][BAND_SUMS]) {
    constexpr int UNROLLED = A_BY_K ? 1 : 2;  // with more the assembler spills
#pragma unroll UNROLLED
    for (int step = 0; step < TILE_DEPTH / 16; ++step) {
        Left left[BANDS];
#pragma unroll
        for (int band = 0; band < BANDS; ++band) {
            const uint4 words = load_part<A_BY_K>(a, step, band);
            left[band] = {{words.x, words.y, words.z, words.w}};
        }
#pragma unroll
        for (int pair = 0; pair < STRIP / 16; ++pair) {
            const RightPair right = right_pair(load_part<B_BY_K>(b, step, pair));
#pragma unroll
            for (int i = 0; i < 2 * BANDS; ++i) {
                float* const s = sums[i / 2] + 4 * (2 * pair + i % 2);
                multiply_add(s[0], s[1], s[2], s[3], left[i / 2], right.at[i % 2]);
            }
        }
    }
}

// The next block of k has come, of all that are on their way.
OFA_INLINE void wait_for_stage(int stages) {
    if (stages == 4)
        wait_for_copies<2>();
    else if (stages == 3)
        wait_for_copies<1>();
    else
        wait_for_copies<0>();
}

// The task's tile of operand 0 times operand 1. The ring is all of near memory, as deep as that allows; afterwards it is
// free.
template <bool A_BY_K, bool B_BY_K>
OFA_INLINE void multiply_tile(Block& block, const TaskContext& ctx, float (&sums)[BANDS][BAND_SUMS]) {
    const int thread = block.thread(), warp = thread / 32, lane = thread % 32;
    const uint32_t ring = shared_address(block.near<uint8_t>());
    const int stages = smaller(int(block.near_bytes()) / STAGE_BYTES, MOST_STAGES);
    Factor<A_BY_K, A_STRIPS> a(ctx, 0, int(ctx.row0()), thread);
    Factor<B_BY_K, B_STRIPS> b(ctx, 1, int(ctx.col0()), thread);
    const Matrix<bf16> x = ctx.operand<bf16>(0);
    const int blocks = (int(A_BY_K ? x.rows : x.cols) + TILE_DEPTH - 1) / TILE_DEPTH;
    const uint32_t first_piece = piece_at(0, thread / 8, thread % 8);
    const uint32_t first_a = first_matrices<true, A_BY_K>(ring + warp / B_STRIPS * STRIP_BYTES, lane);
    const uint32_t first_b = first_matrices<false, B_BY_K>(ring + (A_STRIPS + warp % B_STRIPS) * STRIP_BYTES, lane);
    const auto copy = [&](int stage) {
        const uint32_t to = ring + stage * STAGE_BYTES + first_piece;
        a.copy(to);
        b.copy(to + A_STRIPS * STRIP_BYTES);
    };
#pragma unroll
    for (auto& band : sums)
#pragma unroll
        for (float& sum : band) sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < stages - 1; ++i) {
        if (i < blocks) copy(i);
        commit_copies();  // also of nothing, so that the groups are counted like the blocks of k
    }
    int stage = 0;
#pragma unroll 1
    for (int left = blocks; left > 0; --left) {
        wait_for_stage(stages);
        block.sync();  // all have their copies of this block of k, and have read the one before, whose stage is next
        if (left >= stages) copy(stage == 0 ? stages - 1 : stage - 1);
        commit_copies();
        multiply_stage<A_BY_K, B_BY_K>(first_a + stage * STAGE_BYTES, first_b + stage * STAGE_BYTES, sums);
        stage = stage + 1 == stages ? 0 : stage + 1;
    }
    block.sync();
}

}  // namespace ofa::sm80
