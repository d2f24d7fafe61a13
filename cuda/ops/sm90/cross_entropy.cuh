// Cross-entropy over bf16 logits with the statistics of their tiles: one pass, 16 bytes a thread.
#pragma once

#include "ops/sm90/rows.cuh"

namespace ofa::sm90 {

// What the softmax of a row needs beside its logits, in near memory.
struct RowOfLogits {
    float log2;      // of the denominator: the logarithm in base 2 of the sum of exp
    int32_t target;  // or -1
};
constexpr int ROWS_OF_LOGITS = 32;

// By a warp: the pairs (largest, sum of exp) of a row's tiles, 32 at a time.
OFA_INLINE float log2_of_denominator(const float* row, int tiles) {
    const float2* const pairs = reinterpret_cast<const float2*>(row);
    const auto pair_of_lane = [&](int base) {
        const int i = base + lane_of_thread();
        return i < tiles ? pairs[i] : make_float2(-INFINITY, 0.0f);
    };
    float largest = -INFINITY, total = 0.0f;
#pragma unroll 8
    for (int base = 0; base < tiles; base += 32) largest = fmaxf(largest, pair_of_lane(base).x);
    largest = max_of_warp(largest);
#pragma unroll 4
    for (int base = 0; base < tiles; base += 32) {
        const float2 pair = pair_of_lane(base);
        total += sum_of_warp(pair.y * exp2_of((pair.x - largest) * LOG2_E));
    }
    return largest * LOG2_E + log2f(total);
}

// A warp per row of the task; the losses, and in near memory what else the rows need.
OFA_INLINE const RowOfLogits* losses_of_rows(Block& block, const TaskContext& ctx, const Matrix<bf16>& logits,
                                             const Matrix<float>& statistics, const Matrix<float>& losses) {
    RowOfLogits* const rows = block.near<RowOfLogits>();
    const Sequences sequences = ctx.sequences();
    for (int i = warp_of_block(); i < int(ctx.rows()); i += ROW_WARPS) {
        const int r = int(ctx.row0()) + i, target = sequences.target(r);
        const float logit = float_of(logits.row(r)[target < 0 ? 0 : target]);
        const float log2 = log2_of_denominator(statistics.row(r), int(statistics.cols / 2));
        if (lane_of_thread() != 0) continue;
        *losses.row(r) = target < 0 ? 0.0f : log2 * LN_2 - logit;
        rows[i] = {log2, target};
    }
    block.sync();
    return rows;
}

OFA_INLINE int counted_rows_by_lanes(const Sequences& sequences) {
    int count = 0;
    for (uint32_t b = lane_of_thread(); b < sequences.batch; b += 32) count += int(sequences.counted_in(b));
    return __reduce_add_sync(0xFFFFFFFFu, count);
}

// Batches of 16-byte pieces, of which the next is on its way while one is turned into gradients.
OFA_NOINLINE void op_cross_entropy_statistics(Block& block, const TaskContext& ctx) {
    constexpr int BATCH = 9;  // pieces of a thread; three batches make up a row of 50,432
    const Operands operands(ctx);
    const Matrix<bf16> logits = operands.at<bf16>(0);
    if (logits.cols % 8 != 0 || ctx.rows() > ROWS_OF_LOGITS) {
        if (block.leader()) record_abort(ctx, ABORT_CHECK, NONE_U32, 8, uint64_t(logits.cols));
        return;
    }
    const RowOfLogits* const rows =
        losses_of_rows(block, ctx, logits, operands.at<float>(1), operands.at<float>(2));
    const float weight = 1.0f / float(counted_rows_by_lanes(ctx.sequences())), log2_weight = log2f(weight);
    const int pieces = int(logits.cols / 8), batches = (pieces + BATCH * BLOCK_THREADS - 1) / (BATCH * BLOCK_THREADS);
    const auto load = [&](uint4 (&words)[BATCH], const bf16* row, int first) {
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int i = first + k * BLOCK_THREADS;
            words[k] = i < pieces ? load_words(row + 8 * i) : uint4{};
        }
    };
    const int thread = block.thread(), n = int(ctx.rows());
    const bf16* from = logits.row(ctx.row0());
    uint4 next[BATCH];
    load(next, from, thread);
    for (int row = 0, batch = 0; row < n;) {
        uint4 words[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) words[k] = next[k];
        const int first = batch * BATCH * BLOCK_THREADS + thread;
        bf16* const to = logits.row(ctx.row0() + row);
        const int target = rows[row].target;
        const float shift = log2_weight - rows[row].log2;
        if (++batch == batches) {
            batch = 0;
            ++row;
            from += logits.pitch;
        }
        if (row < n) load(next, from, batch * BATCH * BLOCK_THREADS + thread);
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int i = first + k * BLOCK_THREADS;
            if (i >= pieces) break;
            Eight values = unpack(words[k]);
#pragma unroll
            for (int c = 0; c < 8; ++c)
                values.at[c] = target < 0 ? 0.0f : exp2_of(values.at[c] * LOG2_E + shift);
            if (i == target / 8 && target >= 0) {
#pragma unroll
                for (int c = 0; c < 8; ++c) values.at[c] -= c == target % 8 ? weight : 0.0f;
            }
            store_words(to + 8 * i, pack(values));
        }
    }
}

OFA_NOINLINE void op_cross_entropy_loss_statistics(Block& block, const TaskContext& ctx) {
    const Operands operands(ctx);
    if (ctx.rows() > ROWS_OF_LOGITS) {
        if (block.leader()) record_abort(ctx, ABORT_CHECK, NONE_U32, ROWS_OF_LOGITS, uint64_t(ctx.rows()));
        return;
    }
    losses_of_rows(block, ctx, operands.at<bf16>(0), operands.at<float>(1), operands.at<float>(2));
}

}  // namespace ofa::sm90
