// The token table, forward and with its update.
#pragma once

#include "ops/sm90/rows.cuh"
#include "tile/adamw.cuh"

namespace ofa::sm90 {

OFA_NOINLINE void op_embed(Block& block, const TaskContext& ctx) {
    const Operands operands(ctx);
    const Matrix<bf16> table = operands.at<bf16>(0);
    const Matrix<float> x = operands.at<float>(1);
    const int columns = int(x.cols), end = int(ctx.row0() + ctx.rows());
    if (!can_hold_row(block, ctx, columns)) return;
    const Sequences sequences = ctx.sequences();
    const int together = rows_together(block, PackedRow::BYTES);
    bf16* const near = block.near<bf16>() + warp_of_block() * together * MOST_COLUMNS;
    for (int first = int(ctx.row0()) + warp_of_block(); first < end; first += together * ROW_WARPS) {
        const int rows = rows_left(first, end, together);
        const int token_of_lane = sequences.token(first + min(lane_of_thread(), rows - 1) * ROW_WARPS);
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            const int token = __shfl_sync(0xFFFFFFFFu, token_of_lane, k);
            PackedRow::copy(near + k * MOST_COLUMNS, table.row(token), columns);
            commit_row();
        }
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            wait_for_rows(rows - 1 - k);
            PackedRow in;
            in.load(near + k * MOST_COLUMNS, columns);
            Row out;
#pragma unroll
            for (int i = 0; i < PIECES; ++i) out.at[i] = unpack(in.at[i]);
            out.store(x.row(first + k * ROW_WARPS), columns);
        }
    }
}

// Rows of the batch whose token is in the task's stripe of the table: each warp lists those of its share of the batch, in
// order. An entry is row * ROW + token - first token.
struct Matches {
    static constexpr int ROW = 256, TOGETHER = 8, PICKED = 64;
    uint32_t* counts;   // [ROW_WARPS]
    uint32_t* picked;   // [ROW_WARPS, PICKED]: rows of the token that a warp is at
    uint32_t* entries;  // [ROW_WARPS, share]
    int share;

    OFA_INLINE Matches(const Block& block, int rows) {
        counts = block.near<uint32_t>();
        picked = counts + ROW_WARPS;
        entries = picked + ROW_WARPS * PICKED;
        share = (rows + 32 * ROW_WARPS - 1) / (32 * ROW_WARPS) * 32;
    }
    OFA_INLINE uint64_t bytes() const { return sizeof(uint32_t) * ROW_WARPS * uint64_t(1 + PICKED + share); }

    static OFA_INLINE uint32_t before(uint32_t lanes) { return __popc(lanes & ((1u << lane_of_thread()) - 1)); }

    OFA_INLINE void list(const TaskContext& ctx, int rows) {
        const Sequences sequences = ctx.sequences();
        const int first = warp_of_block() * share, row0 = int(ctx.row0());
        const uint32_t owned = uint32_t(ctx.rows());
        uint32_t count = 0;
        for (int base = 0; base < share; base += 32 * TOGETHER) {
            uint32_t token[TOGETHER];  // in the stripe; all on their way before the first entry is written
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                const int i = base + 32 * k + lane_of_thread();
                token[k] = i < share && first + i < rows ? uint32_t(sequences.token(first + i) - row0) : NONE_U32;
            }
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                const uint32_t row = uint32_t(first + base + 32 * k + lane_of_thread());
                const uint32_t lanes = __ballot_sync(0xFFFFFFFFu, token[k] < owned);
                if (token[k] < owned) entries[first + count + before(lanes)] = row * ROW + token[k];
                count += __popc(lanes);
            }
        }
        if (lane_of_thread() == 0) counts[warp_of_block()] = count;
    }

    // The lists one after the other, 32 entries at a time, one a lane; NONE_U32 where there is none.
    struct Walk {
        const Matches& of;
        int warp = 0, at = 0;

        OFA_INLINE bool next(uint32_t& entry) {
            while (warp < ROW_WARPS && at >= int(of.counts[warp])) {
                ++warp;
                at = 0;
            }
            if (warp == ROW_WARPS) return false;
            const int i = at + lane_of_thread();
            entry = i < int(of.counts[warp]) ? of.entries[warp * of.share + i] : NONE_U32;
            at += 32;
            return true;
        }
    };

    // Bit k: a row of the batch has the stripe's token warp_of_block() + k * ROW_WARPS.
    OFA_INLINE uint32_t own_tokens() const {
        uint32_t own = 0, entry;
        for (Walk walk{*this}; walk.next(entry);) {
            const uint32_t token = entry % ROW;
            if (entry != NONE_U32 && token % ROW_WARPS == uint32_t(warp_of_block())) own |= 1u << (token / ROW_WARPS);
        }
        return __reduce_or_sync(0xFFFFFFFFu, own);
    }

    // Adds the rows of dx with the stripe's token `i`, in their order.
    OFA_INLINE void add_rows(const Matrix<bf16>& dx, uint32_t i, int columns, Row& sum) const {
        uint32_t* const mine = picked + warp_of_block() * PICKED;
        uint32_t entry;
        Walk walk{*this};
        for (bool more = true; more;) {
            int count = 0;
            while (count <= PICKED - 32 && (more = walk.next(entry))) {
                const bool here = entry != NONE_U32 && entry % ROW == i;
                const uint32_t lanes = __ballot_sync(0xFFFFFFFFu, here);
                if (here) mine[count + before(lanes)] = entry / ROW;
                count += __popc(lanes);
            }
            __syncwarp();
#pragma unroll 1
            for (int first = 0; first < count; first += TOGETHER)
                add_together(dx, mine + first, count - first, columns, sum);
            __syncwarp();
        }
    }

private:
    static OFA_INLINE void add_together(const Matrix<bf16>& dx, const uint32_t* rows, int count, int columns, Row& sum) {
        PackedRow each[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k)
            if (k < count) each[k].load(dx.row(rows[k]), columns);
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k)
#pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) sum.at[piece] = sum.at[piece] + unpack(each[k].at[piece]);
    }
};
static_assert(Matches::ROW / ROW_WARPS <= 32);

OFA_INLINE void prefetch_row(const float* row, int columns) {
    const int column = 32 * lane_of_thread();
    if (column < columns) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + column));
}

// A warp per row of the table: the sum of dx over the rows of its token, in their order, and the update.
OFA_NOINLINE void op_embed_adamw(Block& block, const TaskContext& ctx) {
    const Operands operands(ctx);
    const Matrix<bf16> dx = operands.at<bf16>(0), table = operands.at<bf16>(4);
    const Matrix<float> master = operands.at<float>(1), m = operands.at<float>(2), v = operands.at<float>(3);
    const int columns = int(table.cols), end = int(ctx.row0() + ctx.rows());
    Matches matches(block, int(dx.rows));
    if (!can_hold_row(block, ctx, columns)) return;
    if (!block.broadcast([&] {
            return check(ctx, matches.bytes(), block.near_bytes()) && check(ctx, uint64_t(ctx.rows()), Matches::ROW);
        }))
        return;
    FastAdamW adamw = adamw_of_step(block, ctx);
    if ((ctx.task->flags & ADAMW_DECAY) == 0) adamw.decay = 0.0f;
    const auto prefetch = [&](int r) {
        if (r >= end) return;
        prefetch_row(master.row(r), columns);
        prefetch_row(m.row(r), columns);
        prefetch_row(v.row(r), columns);
    };
    int r = int(ctx.row0()) + warp_of_block();
    prefetch(r);
    prefetch(r + ROW_WARPS);
    matches.list(ctx, int(dx.rows));
    block.sync();
    uint32_t own = matches.own_tokens();
    for (; r < end; r += ROW_WARPS, own >>= 1) {
        prefetch(r + 2 * ROW_WARPS);
        Row grad, p, first, second;
        if (own & 1) matches.add_rows(dx, uint32_t(r - int(ctx.row0())), columns, grad);
        p.load(master.row(r), columns);
        first.load(m.row(r), columns);
        second.load(v.row(r), columns);
        PackedRow next;
#pragma unroll
        for (int i = 0; i < PIECES; ++i) {
            p.at[i] = fast_update(adamw, grad.at[i], p.at[i], first.at[i], second.at[i]);
            next.at[i] = pack(p.at[i]);
        }
        p.store(master.row(r), columns);
        first.store(m.row(r), columns);
        second.store(v.row(r), columns);
        next.store(table.row(r), columns);
    }
}

// A gain: its partial gradients added in their order, then the update. Four columns belong to one thread.
OFA_NOINLINE void op_adamw_gain(Block& block, const TaskContext& ctx) {
    const Operands operands(ctx);
    const Matrix<float> parts = operands.at<float>(0);
    const int columns = int(parts.cols);
    if (!can_hold_row(block, ctx, columns)) return;
    FastAdamW adamw = adamw_of_step(block, ctx);
    adamw.decay = 0.0f;
    const auto four = [&](int operand, int c) { return reinterpret_cast<float4*>(operands.at<float>(operand).data + c); };
    for (int base = 0; base < columns; base += 4 * BLOCK_THREADS) {
        const int c = base + 4 * block.thread();
        float4 *p = four(1, c), *next = four(2, c), *m = four(3, c), *v = four(4, c), *grad = four(5, c);
        if (c >= columns) continue;
        float4 sum = {};
#pragma unroll 16
        for (int part = 0; part < int(parts.rows); ++part)
            sum = sum + *reinterpret_cast<const float4*>(parts.row(part) + c);
        *grad = sum;
        float4 first = *m, second = *v;
        const float4 at = *p;
        *next = fast_update(adamw, sum, at, first, second);
        *m = first;
        *v = second;
    }
}

}  // namespace ofa::sm90
