// Rows of up to MOST_COLUMNS columns, a warp each, lane l with columns 4 l + {0 .. 3} of every 128.
#pragma once

#include "sched/abort.h"
#include "tile/bf16.cuh"

namespace ofa::sm90 {

constexpr int PIECES = 6, MOST_COLUMNS = PIECES * 128;

OFA_INLINE int lane_of_thread() { return int(threadIdx.x) % 32; }
OFA_INLINE int warp_of_block() { return (int(threadIdx.x) - FIRST_THREAD) / 32; }

OFA_INLINE float sum_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}

// Uniform over the block, without a barrier.
OFA_INLINE bool can_hold_row(Block& block, const TaskContext& ctx, int64_t columns) {
    if (columns <= MOST_COLUMNS && columns % 4 == 0) return true;
    if (block.leader()) record_abort(ctx, ABORT_CHECK, NONE_U32, uint64_t(MOST_COLUMNS), uint64_t(columns));
    return false;
}

// A lane's part of a row.
struct Row {
    float4 at[PIECES];

    // f(piece, first column) for the pieces of a row of `columns`.
    template <class F>
    static OFA_INLINE void for_each(int columns, F f) {
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) {
            const int column = 128 * piece + 4 * lane_of_thread();
            if (column < columns) f(piece, column);
        }
    }
    OFA_INLINE void load(const float* from, int columns) {
        for_each(columns, [&](int piece, int column) { at[piece] = *reinterpret_cast<const float4*>(from + column); });
    }
    OFA_INLINE void load(const bf16* from, int columns) {
        for_each(columns, [&](int piece, int column) {
            const uint2 words = *reinterpret_cast<const uint2*>(from + column);
            at[piece] = make_float4(low_of(words.x), high_of(words.x), low_of(words.y), high_of(words.y));
        });
    }
    OFA_INLINE void store(float* to, int columns) const {
        for_each(columns, [&](int piece, int column) { *reinterpret_cast<float4*>(to + column) = at[piece]; });
    }
    OFA_INLINE void store(bf16* to, int columns) const {
        for_each(columns, [&](int piece, int column) {
            *reinterpret_cast<uint2*>(to + column) =
                make_uint2(pack(at[piece].x, at[piece].y), pack(at[piece].z, at[piece].w));
        });
    }
};

OFA_INLINE float4 operator*(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
OFA_INLINE float4 operator*(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
OFA_INLINE float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
OFA_INLINE float4 operator-(float4 a, float4 b) { return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
OFA_INLINE float sum_of(float4 a) { return (a.x + a.y) + (a.z + a.w); }

}  // namespace ofa::sm90
