// Rows of up to MOST_COLUMNS columns, a warp each, lane l with columns 4 l + {0 .. 3} of every 128. A warp's rows are ROW_WARPS
// apart. They come through near memory, so that many are on their way although few fit into registers; and they are done in
// a loop, not side by side, because instructions come from memory too: a task would be over before it used them twice.
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
        return {static_cast<T*>(__cvta_global_to_generic(base)), int64_t(of(pitch_, i)), int64_t(of(rows_, i)),
                int64_t(of(cols_, i))};
    }

private:
    static OFA_INLINE uint32_t of(uint32_t value, int i) { return __shfl_sync(0xFFFFFFFFu, value, i); }

    uint8_t* base_;
    uint32_t pitch_, rows_, cols_;
};

// So many rows of a warp are on their way together, where near memory holds them.
constexpr int MOST_TOGETHER = 4;
OFA_INLINE int rows_together(const Block& block, int row_bytes) {
    return min(MOST_TOGETHER, int(block.near_bytes()) / (ROW_WARPS * row_bytes));
}
// Of `together` rows from `first` on, those before `end`.
OFA_INLINE int rows_left(int first, int end, int together) {
    return min(together, (end - first + ROW_WARPS - 1) / ROW_WARPS);
}

OFA_INLINE float4 operator*(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
OFA_INLINE float4 operator*(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
OFA_INLINE float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
// a - b c, rounded once.
OFA_INLINE float4 less(float4 a, float4 b, float c) {
    return make_float4(fmaf(-b.x, c, a.x), fmaf(-b.y, c, a.y), fmaf(-b.z, c, a.z), fmaf(-b.w, c, a.w));
}
OFA_INLINE float sum_of(float4 a) { return (a.x + a.y) + (a.z + a.w); }

// From global into shared memory, both aligned by `bytes`.
template <int bytes>
OFA_INLINE void copy_async(void* to, const void* from) {
    static_assert(bytes == 8 || bytes == 16);
    const uint32_t place = uint32_t(__cvta_generic_to_shared(to));
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(place), "l"(from) : "memory");
}
OFA_INLINE void commit_row() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `left` of the rows that the thread has committed are on their way, or 3.
OFA_INLINE void wait_for_rows(int left) {
    switch (left) {
    case 0:
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        break;
    case 1:
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        break;
    case 2:
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        break;
    default:
        asm volatile("cp.async.wait_group 3;" ::: "memory");
    }
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
    static constexpr int BYTES = PIECES * 32 * int(sizeof(Piece));

    static OFA_INLINE int column(int piece) { return 128 * piece + 4 * lane_of_thread(); }

    // Into shared memory; a lane's part is then there for itself.
    template <class T>
    static OFA_INLINE void copy(T* near, const T* from, int columns) {
        static_assert(sizeof(Piece) == 4 * sizeof(T));
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
            if (column(i) < columns) copy_async<int(sizeof(Piece))>(near + column(i), from + column(i));
    }

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
