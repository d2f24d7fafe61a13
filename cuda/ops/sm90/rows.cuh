// Rows of up to MOST_COLUMNS columns, a warp each, lane l with columns 4 l + {0 .. 3} of every 128.
#pragma once

#include "sched/abort.h"
#include "tile/bf16.cuh"

namespace ofa::sm90 {

constexpr int PIECES = 6, MOST_COLUMNS = PIECES * 128, ROW_WARPS = BLOCK_THREADS / 32;

OFA_INLINE int lane_of_thread() { return int(threadIdx.x) % 32; }
OFA_INLINE int warp_of_block() { return (int(threadIdx.x) - FIRST_THREAD) / 32; }

OFA_INLINE float sum_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    return value;
}
OFA_INLINE float max_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    return value;
}

// Uniform over the block, without a barrier.
OFA_INLINE bool can_hold_row(Block& block, const TaskContext& ctx, int64_t columns) {
    if (columns <= MOST_COLUMNS && columns % 4 == 0) return true;
    if (block.leader()) record_abort(ctx, ABORT_CHECK, NONE_U32, uint64_t(MOST_COLUMNS), uint64_t(columns));
    return false;
}

// The operands of a task, each looked up by a lane of its own, so that a warp waits for one of them, not for all in turn.
class Operands {
public:
    OFA_INLINE explicit Operands(const TaskContext& ctx) {
        static_assert(sizeof ctx.task->operands / sizeof *ctx.task->operands <= 32);
        constexpr int MOST = sizeof ctx.task->operands / sizeof *ctx.task->operands;
        const uint16_t name = lane_of_thread() < MOST ? ctx.task->operands[lane_of_thread()] : NONE_U16;
        const Operand& o = ctx.launch->operands[name == NONE_U16 ? 0 : name];
        base_ = o.base + ctx.copy_of(o) * o.copy_bytes;
        pitch_ = o.pitch;
        rows_ = o.rows;
        cols_ = o.cols;
    }
    template <class T>
    OFA_INLINE Matrix<T> at(int i) const {
        const uint64_t base = __shfl_sync(0xFFFFFFFFu, reinterpret_cast<uint64_t>(base_), i);
        return {static_cast<T*>(__cvta_global_to_generic(base)), int64_t(of(pitch_, i)), int64_t(of(rows_, i)), int64_t(of(cols_, i))};
    }

private:
    static OFA_INLINE uint32_t of(uint32_t value, int i) { return __shfl_sync(0xFFFFFFFFu, value, i); }

    uint8_t* base_;
    uint32_t pitch_, rows_, cols_;
};

OFA_INLINE float4 operator*(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
OFA_INLINE float4 operator*(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
OFA_INLINE float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
// a - b c, rounded once.
OFA_INLINE float4 less(float4 a, float4 b, float c) {
    return make_float4(fmaf(-b.x, c, a.x), fmaf(-b.y, c, a.y), fmaf(-b.z, c, a.z), fmaf(-b.w, c, a.w));
}
OFA_INLINE float sum_of(float4 a) { return (a.x + a.y) + (a.z + a.w); }

// From shared memory, each time anew: not kept in registers.
OFA_INLINE float4 load_near(const float* from) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(uint32_t(__cvta_generic_to_shared(from)))
                 : "memory");
    return v;
}

// A lane's part of a row. Pieces right of the row are zeros: an array of which a part is set, under a condition, is kept
// through the loop around it, in local memory.
template <class Piece>
struct PiecesOfRow {
    Piece at[PIECES];

    OFA_INLINE PiecesOfRow() {
#pragma unroll
        for (Piece& piece : at) piece = {};
    }
    static OFA_INLINE int column(int piece) { return 128 * piece + 4 * lane_of_thread(); }

    template <class T>
    OFA_INLINE void load(const T* from, int columns) {
        static_assert(sizeof(Piece) == 4 * sizeof(T));
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
            at[i] = column(i) < columns ? *reinterpret_cast<const Piece*>(from + column(i)) : Piece{};
    }
    template <class T>
    OFA_INLINE void store(T* to, int columns) const {
        static_assert(sizeof(Piece) == 4 * sizeof(T));
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
            if (column(i) < columns) *reinterpret_cast<Piece*>(to + column(i)) = at[i];
    }
};

using Row = PiecesOfRow<float4>;
using PackedRow = PiecesOfRow<uint2>;  // of bf16

using ofa::pack, ofa::unpack;
OFA_INLINE float4 unpack(uint2 words) {
    return make_float4(low_of(words.x), high_of(words.x), low_of(words.y), high_of(words.y));
}
OFA_INLINE uint2 pack(float4 values) { return make_uint2(pack(values.x, values.y), pack(values.z, values.w)); }

}  // namespace ofa::sm90
