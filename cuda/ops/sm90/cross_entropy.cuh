// Cross-entropy over bf16 logits with the statistics of their tiles: one pass, 16 bytes a thread.
#pragma once

#include "sched/abort.h"
#include "tile/bf16.cuh"

namespace ofa::sm90 {

constexpr int BATCH = 9;  // pieces of a thread; three batches make up a row of 50,432

// The denominator of a row's softmax is 2^log2: the logarithm in base 2 of the sum of exp.
OFA_INLINE float log2_of_denominator(Block& block, const Matrix<float>& statistics, int64_t r) {
    const float* const pairs = statistics.row(r);
    const int64_t tiles = statistics.cols / 2;
    const float largest = block.max(tiles, -INFINITY, [=](int64_t i) { return pairs[2 * i]; });
    const float total =
        block.sum(tiles, [=](int64_t i) { return pairs[2 * i + 1] * exp2_of((pairs[2 * i] - largest) * LOG2_E); });
    return largest * LOG2_E + log2f(total);
}

OFA_NOINLINE void op_cross_entropy_statistics(Block& block, const TaskContext& ctx) {
    const Matrix<bf16> logits = ctx.operand<bf16>(0);
    const Matrix<float> statistics = ctx.operand<float>(1), losses = ctx.operand<float>(2);
    if (logits.cols % 8 != 0) {
        if (block.leader()) record_abort(ctx, ABORT_CHECK, NONE_U32, 8, uint64_t(logits.cols));
        return;
    }
    const float weight = 1.0f / float(ctx.counted_rows()), log2_weight = log2f(weight);
    const int pieces = int(logits.cols / 8);
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const int target = int(ctx.target(r));
        bf16* const row = logits.row(r);
        if (target < 0) {
            block.for_each(pieces, [&](int64_t i) { store_words(row + 8 * i, make_uint4(0, 0, 0, 0)); });
            if (block.leader()) *losses.row(r) = 0.0f;
            continue;
        }
        const float denominator = log2_of_denominator(block, statistics, r);
        if (block.leader()) *losses.row(r) = denominator * LN_2 - float_of(row[target]);
        block.sync();
        const float shift = log2_weight - denominator;
        for (int first = block.thread(); first < pieces; first += BATCH * BLOCK_THREADS) {
            uint4 words[BATCH];  // on their way together
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                const int i = first + k * BLOCK_THREADS;
                if (i < pieces) words[k] = load_words(row + 8 * i);
            }
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                const int i = first + k * BLOCK_THREADS;
                if (i >= pieces) break;
                Eight values = unpack(words[k]);
#pragma unroll
                for (int c = 0; c < 8; ++c) values.at[c] = exp2_of(values.at[c] * LOG2_E + shift);
                if (i == target / 8) {
#pragma unroll
                    for (int c = 0; c < 8; ++c) values.at[c] -= c == target % 8 ? weight : 0.0f;
                }
                store_words(row + 8 * i, pack(values));
            }
        }
    }
}

OFA_NOINLINE void op_cross_entropy_loss_statistics(Block& block, const TaskContext& ctx) {
    const Matrix<bf16> logits = ctx.operand<bf16>(0);
    const Matrix<float> statistics = ctx.operand<float>(1), losses = ctx.operand<float>(2);
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const int64_t target = ctx.target(r);
        float loss = 0.0f;
        if (target >= 0)
            loss = log2_of_denominator(block, statistics, r) * LN_2 - float_of(logits.row(r)[target]);
        if (block.leader()) *losses.row(r) = loss;
    }
}

}  // namespace ofa::sm90
