// RMSNorm, a warp per row; the formulas are those of ops/norm.h.
#pragma once

#include "ops/sm90/rows.cuh"

namespace ofa::sm90 {

OFA_NOINLINE void op_norm(Block& block, const TaskContext& ctx) {
    const Matrix<float> x = ctx.operand<float>(0), rstd = ctx.operand<float>(3);
    const Matrix<bf16> y = ctx.operand<bf16>(2);
    const int columns = int(x.cols);
    if (!can_hold_row(block, ctx, columns)) return;
    Row gain;
    gain.load(ctx.operand<float>(1).data, columns);
    const float epsilon = ctx.launch->model.norm_epsilon;
    const int64_t end = ctx.row0() + ctx.rows();
    for (int64_t r = ctx.row0() + warp_of_block(); r < end; r += BLOCK_THREADS / 32) {
        Row row;
        row.load(x.row(r), columns);
        float squares = 0.0f;
        Row::for_each(columns, [&](int i, int) { squares += sum_of(row.at[i] * row.at[i]); });
        const float scale = 1.0f / sqrtf(sum_of_warp(squares) / float(columns) + epsilon);
        Row::for_each(columns, [&](int i, int) { row.at[i] = row.at[i] * scale * gain.at[i]; });
        row.store(y.row(r), columns);
        if (lane_of_thread() == 0) *rstd.row(r) = scale;
    }
}

// A warp's share of the gain's gradient stays in registers; the warps' shares are added in their order.
OFA_NOINLINE void op_norm_backward(Block& block, const TaskContext& ctx) {
    const Matrix<bf16> dy = ctx.operand<bf16>(0), dx = ctx.operand<bf16>(5);
    const Matrix<float> x = ctx.operand<float>(1), rstd = ctx.operand<float>(2);
    const float* const gain = ctx.operand<float>(3).data;
    const bool has_skip = ctx.present(4);
    const Matrix<bf16> skip = has_skip ? ctx.operand<bf16>(4) : dy;
    const int columns = int(x.cols);
    if (!can_hold_row(block, ctx, columns)) return;
    Row dgain;
#pragma unroll
    for (int i = 0; i < PIECES; ++i) dgain.at[i] = make_float4(0, 0, 0, 0);
    const int64_t end = ctx.row0() + ctx.rows();
    for (int64_t r = ctx.row0() + warp_of_block(); r < end; r += BLOCK_THREADS / 32) {
        Row through, from;
        through.load(dy.row(r), columns);
        from.load(x.row(r), columns);
        const float scale = *rstd.row(r);
        float dot = 0.0f;
        Row::for_each(columns, [&](int i, int column) {
            dgain.at[i] = dgain.at[i] + through.at[i] * from.at[i] * scale;
            through.at[i] = through.at[i] * *reinterpret_cast<const float4*>(gain + column);
            dot += sum_of(through.at[i] * from.at[i]);
        });
        const float along_x = sum_of_warp(dot) / float(columns) * scale * scale;
        Row::for_each(columns, [&](int i, int) { from.at[i] = (through.at[i] - from.at[i] * along_x) * scale; });
        if (has_skip) {
            through.load(skip.row(r), columns);
            Row::for_each(columns, [&](int i, int) { from.at[i] = through.at[i] + from.at[i]; });
        }
        from.store(dx.row(r), columns);
    }
    float* const shares = block.near<float>();
    dgain.store(shares + warp_of_block() * columns, columns);
    block.sync();
    float* const part = ctx.operand<float>(6).row(ctx.row0() / ctx.rows());
    block.for_each(columns, [&](int64_t c) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < BLOCK_THREADS / 32; ++warp) sum += shares[warp * columns + c];
        part[c] = sum;
    });
}

}  // namespace ofa::sm90
