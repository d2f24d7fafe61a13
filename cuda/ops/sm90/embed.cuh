// The token table, forward and with its update.
#pragma once

#include "ops/sm90/rows.cuh"
#include "tile/adamw.cuh"

namespace ofa::sm90 {

OFA_NOINLINE void op_embed(Block& block, const TaskContext& ctx) {
    const Matrix<bf16> table = ctx.operand<bf16>(0);
    const Matrix<float> x = ctx.operand<float>(1);
    const int columns = int(x.cols);
    if (!can_hold_row(block, ctx, columns)) return;
    for (int64_t r = ctx.row0() + warp_of_block(); r < ctx.row0() + ctx.rows(); r += BLOCK_THREADS / 32) {
        Row row;
        row.load(table.row(ctx.token(r)), columns);
        row.store(x.row(r), columns);
    }
}

// Rows of the batch whose token is in the task's stripe of the table: each warp lists those of its share of the batch, in
// order. An entry is row * ROW + token - first token.
struct Matches {
    static constexpr int WARPS = BLOCK_THREADS / 32, ROW = 256;
    uint32_t* entries;  // [WARPS, share]
    uint32_t* counts;   // [WARPS]
    int share;

    OFA_INLINE Matches(const Block& block, int64_t rows) {
        counts = block.near<uint32_t>();
        entries = counts + WARPS;
        share = int(rows + 32 * WARPS - 1) / (32 * WARPS) * 32;
    }
    OFA_INLINE uint64_t bytes() const { return sizeof(uint32_t) * (WARPS + uint64_t(WARPS) * share); }

    OFA_INLINE void list(const TaskContext& ctx, int64_t rows) {
        const int lane = lane_of_thread(), warp = warp_of_block();
        const int first = warp * share;
        uint32_t count = 0;
#pragma unroll 4
        for (int i = 0; i < share; i += 32) {
            const int row = first + i + lane;
            const int64_t token = row < rows ? ctx.token(row) - ctx.row0() : -1;
            const bool here = token >= 0 && token < ctx.rows();
            const uint32_t others = __ballot_sync(0xFFFFFFFFu, here);
            if (here)
                entries[first + count + __popc(others & ((1u << lane) - 1))] = uint32_t(row) * ROW + uint32_t(token);
            count += __popc(others);
        }
        if (lane == 0) counts[warp] = count;
    }

    // f(row) for the rows with the stripe's token `i`, in their order.
    template <class F>
    OFA_INLINE void for_each(uint32_t i, F f) const {
        const int lane = lane_of_thread();
        for (int warp = 0; warp < WARPS; ++warp)
            for (uint32_t at = 0; at < counts[warp]; at += 32) {
                const uint32_t entry = at + lane < counts[warp] ? entries[warp * share + at + lane] : NONE_U32;
                uint32_t found = __ballot_sync(0xFFFFFFFFu, entry != NONE_U32 && entry % ROW == i);
                while (found != 0) {
                    const int who = __ffs(int(found)) - 1;
                    found &= found - 1;
                    f(int(__shfl_sync(0xFFFFFFFFu, entry, who) / ROW));
                }
            }
    }
};

OFA_INLINE void prefetch_row(const float* row, int columns) {
    const int column = 32 * lane_of_thread();
    if (column < columns) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + column));
}

// A warp per row of the table: the sum of dx over the rows of its token, in their order, and the update.
OFA_NOINLINE void op_embed_adamw(Block& block, const TaskContext& ctx) {
    const Matrix<bf16> dx = ctx.operand<bf16>(0), table = ctx.operand<bf16>(4);
    const Matrix<float> master = ctx.operand<float>(1), m = ctx.operand<float>(2), v = ctx.operand<float>(3);
    const int columns = int(table.cols);
    Matches matches(block, dx.rows);
    if (!can_hold_row(block, ctx, columns)) return;
    if (!block.broadcast([&] {
            return check(ctx, matches.bytes(), block.near_bytes()) && check(ctx, uint64_t(ctx.rows()), Matches::ROW);
        }))
        return;
    const AdamW adamw(ctx.launch->optimizer, ctx.iteration, (ctx.task->flags & ADAMW_DECAY) != 0);
    matches.list(ctx, dx.rows);
    block.sync();
    for (int i = warp_of_block(); i < int(ctx.rows()); i += Matches::WARPS) {
        const int64_t r = ctx.row0() + i;
        Row grad, p, first, second;
        p.load(master.row(r), columns);
        first.load(m.row(r), columns);
        second.load(v.row(r), columns);
        if (i + Matches::WARPS < int(ctx.rows())) {
            const int64_t next = r + Matches::WARPS;
            prefetch_row(master.row(next), columns);
            prefetch_row(m.row(next), columns);
            prefetch_row(v.row(next), columns);
        }
#pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) grad.at[piece] = make_float4(0, 0, 0, 0);
        matches.for_each(uint32_t(i), [&](int row) {
            Row one;
            one.load(dx.row(row), columns);
            Row::for_each(columns, [&](int piece, int) { grad.at[piece] = grad.at[piece] + one.at[piece]; });
        });
        Row::for_each(columns, [&](int piece, int) {
            p.at[piece] = fast_update(adamw, grad.at[piece], p.at[piece], first.at[piece], second.at[piece]);
        });
        p.store(master.row(r), columns);
        first.store(m.row(r), columns);
        second.store(v.row(r), columns);
        p.store(table.row(r), columns);
    }
}

// A gain: its partial gradients added in their order, then the update. A column belongs to one thread.
OFA_NOINLINE void op_adamw_gain(Block& block, const TaskContext& ctx) {
    const AdamW adamw(ctx.launch->optimizer, ctx.iteration, false);
    const Matrix<float> parts = ctx.operand<float>(0);
    const float* const p = ctx.operand<float>(1).data;
    float* const next = ctx.operand<float>(2).data;
    float* const m = ctx.operand<float>(3).data;
    float* const v = ctx.operand<float>(4).data;
    float* const grad = ctx.operand<float>(5).data;
    block.for_each(parts.cols, [&](int64_t c) {
        float sum = 0.0f;
#pragma unroll 16
        for (int64_t part = 0; part < parts.rows; ++part) sum += parts.row(part)[c];
        grad[c] = sum;
        next[c] = adamw.update(sum, p[c], m[c], v[c]);
    });
}

}  // namespace ofa::sm90
