// One token through the model by owned tasks, each a body that passes on messages, with weights in bf16 and stream order. What
// is computed in which order does not depend on who computes it; the steps are those of ops/stream.h. Hopper claims the
// tasks of a token together instead: ops/sm90/token.cuh.
#pragma once

#include "ops/sm90/begin.cuh"
#include "ops/sm90/rows.cuh"
#include "ops/stream.h"

namespace ofa::sm80 {

using namespace sm90;  // what warps do with rows

// A block of 16 weight rows over a quarter of their columns is a warp's work; partial sums of quarters are added in order.
constexpr int QUARTERS = 4, BLOCK_ROWS = 16;

// store(r, x w[r]) for the rows r < 16 blocks, where rows 16 b .. 16 b + 15 are the 16 weight rows from first_row(b) on.
// `x` lies in shared memory, as `parts`: room for 64 sums a block.
template <class FirstRow, class Store>
OFA_INLINE void multiply_rows(Block& block, const Matrix<bf16>& weight, const float* x, int blocks, float* parts,
                              FirstRow first_row, Store store) {
    const int lane = lane_of_thread(), across = int(weight.cols) / 16;
    for (int item = warp_of_block(); item < blocks * QUARTERS; item += BLOCK_THREADS / 32) {
        const int b = item / QUARTERS, quarter = item % QUARTERS;
        const int begin = across * quarter / QUARTERS, end = across * (quarter + 1) / QUARTERS;
        const bf16* const words = weight.data + (int64_t(first_row(b)) / 16 * across) * 256 + lane * 8;
        float low = 0.0f, high = 0.0f;  // rows lane / 4 and + 8
#pragma unroll 12
        for (int i = begin; i < end; ++i) {
            const Eight w = unpack(load_words(words + int64_t(i) * 256));
            const float2 left = *reinterpret_cast<const float2*>(x + 16 * i + lane % 4 * 2);
            const float2 right = *reinterpret_cast<const float2*>(x + 16 * i + lane % 4 * 2 + 8);
            low += w.at[0] * left.x + w.at[1] * left.y + w.at[4] * right.x + w.at[5] * right.y;
            high += w.at[2] * left.x + w.at[3] * left.y + w.at[6] * right.x + w.at[7] * right.y;
        }
#pragma unroll
        for (int distance = 1; distance < 4; distance *= 2) {
            low += __shfl_xor_sync(0xFFFFFFFFu, low, distance);
            high += __shfl_xor_sync(0xFFFFFFFFu, high, distance);
        }
        if (lane % 4 == 0) {
            parts[item * BLOCK_ROWS + lane / 4] = low;
            parts[item * BLOCK_ROWS + lane / 4 + 8] = high;
        }
    }
    block.sync();
    block.for_each(blocks * BLOCK_ROWS, [&](int64_t r) {
        const float* const part = parts + r / BLOCK_ROWS * QUARTERS * BLOCK_ROWS + r % BLOCK_ROWS;
        store(int(r), (part[0] + part[BLOCK_ROWS]) + (part[2 * BLOCK_ROWS] + part[3 * BLOCK_ROWS]));
    });
}

// store(c, x w[c]) for the task's output columns c.
template <class Store>
OFA_INLINE void multiply_columns(Block& block, const TaskContext& ctx, const float* x, int w, float* parts,
                                 Store store) {
    const int first = int(ctx.col0()), end = first + int(ctx.cols());
    multiply_rows(block, ctx.operand<bf16>(w), x, (int(ctx.cols()) + 15) / 16, parts,
                  [=](int b) { return first + 16 * b; },
                  [=](int r, float sum) {
                      if (first + r < end) store(int64_t(first + r), sum);
                  });
}

OFA_NOINLINE bool receive_normed_near(Block& block, const TaskContext& ctx, int64_t row, float* normed) {
    return receive_normed(block, ctx, row, normed);
}

OFA_NOINLINE void op_stream_begin(Block& block, const TaskContext& ctx) {
    begin_token(block, ctx, [] { return true; });
}

OFA_INLINE void stream_qkv_row(Block& block, const TaskContext& ctx, int64_t row) {
    const Unit unit(ctx);
    const int64_t width = ctx.launch->model.width;
    const int n = int(unit.cols), run_blocks = int(unit.run) / 16;
    float* const x = block.near<float>();
    float* const q = x + width;
    float* const k = q + n;
    float* const v = k + n;
    float* const sums = v + n;
    if (!receive_normed_near(block, ctx, row, x)) return;
    multiply_rows(
        block, ctx.operand<bf16>(2), x, 3 * n / 16, sums,
        [=](int b) { return int(b / (2 * run_blocks) * width + unit.column(b % (2 * run_blocks) * 16)); },
        [=](int r, float sum) { q[r] = sum; });
    block.sync();

    const Where where(ctx, row);
    const Matrix<bf16> keys = ctx.operand<bf16>(3), values = ctx.operand<bf16>(4);
    bf16* const new_key = keys.row(where.first + where.position);
    bf16* const new_value = values.row(where.first + where.position);
    turn_pairs(block, ctx, unit, where.position, q, k, [=](int64_t e, int64_t partner, float key, float partner_key) {
        const uint32_t both_keys = pack(key, partner_key), both_values = pack(v[e], v[partner]);
        new_key[unit.column(e)] = bf16(both_keys);
        new_key[unit.column(partner)] = bf16(both_keys >> 16);
        new_value[unit.column(e)] = bf16(both_values);
        new_value[unit.column(partner)] = bf16(both_values >> 16);
    });

    // A thread per position: the unit's columns are two runs of whole 16-byte pieces.
    const Message scores = message_of(ctx, 5);
    const int64_t of_unit = unit.row_of_scores(unit.part), place = first_score(ctx, row);
    const int64_t first = unit.column(0), second = unit.column(unit.run);
    block.for_each(where.position + 1, [=](int64_t r) {
        float sum = 0.0f;
        for (int64_t run = 0; run < 2; ++run) {
            const bf16* const key = keys.row(where.first + r) + (run == 0 ? first : second);
            const float* const query = q + run * unit.run;
            for (int64_t e = 0; e < unit.run; e += 8) {
                const Eight part = unpack(load_words(key + e));
#pragma unroll
                for (int c = 0; c < 8; ++c) sum += query[e + c] * part.at[c];
            }
        }
        publish(scores, of_unit, place + r, sum);
    });
}

OFA_NOINLINE void op_stream_qkv(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t row) { sm80::stream_qkv_row(block, ctx, row); });
}

OFA_INLINE void stream_attention_row(Block& block, const TaskContext& ctx, int64_t row) {
    const Unit unit(ctx);
    const Where where(ctx, row);
    const int64_t rows = where.position + 1, place = first_score(ctx, row);
    float* const scores = block.near<float>();
    float* const part = scores + rows;
    float* const sums = part + rows;  // [shares, columns]
    const Message parts = message_of(ctx, 0);
    if (!receive(block, ctx, parts, unit.row_of_scores(0), place, rows, scores)) return;
    for (int64_t other = 1; other < unit.parts; ++other) {
        if (!receive(block, ctx, parts, unit.row_of_scores(other), place, rows, part)) return;
        block.for_each(rows, [=](int64_t r) { scores[r] += part[r]; });
        block.sync();
    }
    const float largest = block.max(rows, -INFINITY, [=](int64_t r) { return scores[r]; });
    block.for_each(rows, [=](int64_t r) { scores[r] = exp2_of((scores[r] - largest) * LOG2_E); });
    block.sync();
    const float inverse = 1.0f / block.sum(rows, [=](int64_t r) { return scores[r]; });
    // Thread: one column and every shares-th position; the shares are added in order.
    const Matrix<bf16> values = ctx.operand<bf16>(1);
    const int columns = int(unit.cols), shares = BLOCK_THREADS / columns;
    const int column = block.thread() % columns, share = block.thread() / columns;
    if (share < shares) {
        const bf16* const value = values.row(where.first) + unit.column(column);
        float sum = 0.0f;
#pragma unroll 4
        for (int64_t r = share; r < rows; r += shares) sum += scores[r] * float_of(value[r * values.pitch]);
        sums[share * columns + column] = sum;
    }
    block.sync();
    const Message attention = message_of(ctx, 2);
    block.for_each(columns, [=](int64_t e) {
        float sum = 0.0f;
        for (int s = 0; s < shares; ++s) sum += sums[s * columns + e];
        publish(attention, row, unit.column(e), sum * inverse);
    });
}

OFA_NOINLINE void op_stream_attention(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t row) { sm80::stream_attention_row(block, ctx, row); });
}

OFA_NOINLINE void op_stream_matmul_residual(Block& block, const TaskContext& ctx) {
    const int64_t first = ctx.col0();
    const Message skipped = message_of(ctx, 2), y = message_of(ctx, 3);
    const Matrix<bf16> weight = ctx.operand<bf16>(1);
    float* const x = block.near<float>();
    float* const skip = x + weight.cols;
    float* const parts = skip + ctx.cols();
    for_each_row(block, ctx, [&](int64_t row) {
        if (!receive(block, ctx, skipped, row, first, ctx.cols(), skip) || !receive_all(block, ctx, 0, row, x)) return;
        multiply_columns(block, ctx, x, 1, parts,
                         [=](int64_t c, float sum) { publish(y, row, c, skip[c - first] + sum); });
    });
}

OFA_NOINLINE void op_stream_norm_matmul_gelu(Block& block, const TaskContext& ctx) {
    float* const x = block.near<float>();
    const Message a = message_of(ctx, 3);
    for_each_row(block, ctx, [&](int64_t row) {
        if (!receive_normed_near(block, ctx, row, x)) return;
        multiply_columns(block, ctx, x, 2, x + ctx.operand<bf16>(2).cols,
                         [=](int64_t c, float sum) { publish(a, row, c, math::gelu(sum)); });
    });
}

OFA_NOINLINE void op_stream_norm_matmul(Block& block, const TaskContext& ctx) {
    float* const x = block.near<float>();
    for_each_row(block, ctx, [&](int64_t row) {
        if (!receive_normed_near(block, ctx, row, x)) return;
        float* const y = ctx.operand<float>(3).row(row);
        multiply_columns(block, ctx, x, 2, x + ctx.operand<bf16>(2).cols, [=](int64_t c, float sum) { y[c] = sum; });
    });
}

}  // namespace ofa::sm80
