// RMSNorm, a warp per row; the formulas are those of ops/norm.h.
#pragma once

#include "ops/sm90/rows.cuh"

namespace ofa::sm90 {

// A warp's rows are ROW_WARPS apart. So many of them are on their way from memory together; where there is no further row, the
// task's last one is read again.
OFA_NOINLINE void op_norm(Block& block, const TaskContext& ctx) {
    constexpr int TOGETHER = 4;
    const Operands operands(ctx);
    const Matrix<float> x = operands.at<float>(0), rstd = operands.at<float>(3);
    const Matrix<bf16> y = operands.at<bf16>(2);
    const int columns = int(x.cols), end = int(ctx.row0() + ctx.rows());
    if (!can_hold_row(block, ctx, columns)) return;
    const float epsilon = ctx.launch->model.norm_epsilon;
    Row gain;
    gain.load(operands.at<float>(1).data, columns);
    for (int first = int(ctx.row0()) + warp_of_block(); first < end; first += TOGETHER * ROW_WARPS) {
        Row rows[TOGETHER];
        float scale[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) rows[k].load(x.row(min(first + k * ROW_WARPS, end - 1)), columns);
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            float squares = 0.0f;
#pragma unroll
            for (const float4& piece : rows[k].at) squares += sum_of(piece * piece);
            scale[k] = 1.0f / sqrtf(sum_of_warp(squares) / float(columns) + epsilon);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            const int r = first + k * ROW_WARPS;
            if (r >= end) break;
            PackedRow out;
#pragma unroll
            for (int i = 0; i < PIECES; ++i) out.at[i] = pack(rows[k].at[i] * scale[k] * gain.at[i]);
            out.store(y.row(r), columns);
            if (lane_of_thread() == 0) *rstd.row(r) = scale[k];
        }
    }
}

// A warp's share of the gain's gradient stays in registers; the warps' shares are added in their order.
OFA_NOINLINE void op_norm_backward(Block& block, const TaskContext& ctx) {
    constexpr int TOGETHER = 2;
    const Operands operands(ctx);
    const bool has_skip = ctx.present(4);
    const Matrix<bf16> dy = operands.at<bf16>(0), dx = operands.at<bf16>(5);
    const Matrix<bf16> skip = operands.at<bf16>(has_skip ? 4 : 0);
    const Matrix<float> x = operands.at<float>(1), rstd = operands.at<float>(2);
    const int columns = int(x.cols), end = int(ctx.row0() + ctx.rows());
    if (!can_hold_row(block, ctx, columns)) return;
    float* const shares = block.near<float>();  // [ROW_WARPS, columns]: at first the gain, of which a lane reads its own part
    float* const own = shares + warp_of_block() * columns;
    Row gain, dgain;
    gain.load(operands.at<float>(3).data, columns);
    gain.store(own, columns);
    const auto gain_of = [&](int i) { return load_near(own + min(Row::column(i), columns - 4)); };
    for (int first = int(ctx.row0()) + warp_of_block(); first < end; first += TOGETHER * ROW_WARPS) {
        PackedRow from_y[TOGETHER], beside[TOGETHER];
        Row in[TOGETHER];
        float scale[TOGETHER], along_x[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            const int r = min(first + k * ROW_WARPS, end - 1);
            from_y[k].load(dy.row(r), columns);
            in[k].load(x.row(r), columns);
            if (has_skip) beside[k].load(skip.row(r), columns);
            scale[k] = *rstd.row(r);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            float dot = 0.0f;
#pragma unroll
            for (int i = 0; i < PIECES; ++i) dot += sum_of(unpack(from_y[k].at[i]) * gain_of(i) * in[k].at[i]);
            along_x[k] = sum_of_warp(dot) / float(columns) * scale[k] * scale[k];
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k) {
            const int r = first + k * ROW_WARPS;
            if (r >= end) break;
            PackedRow out;
#pragma unroll
            for (int i = 0; i < PIECES; ++i) {
                const float4 through = unpack(from_y[k].at[i]);
                dgain.at[i] = dgain.at[i] + through * in[k].at[i] * scale[k];
                const float4 change = less(through * gain_of(i), in[k].at[i], along_x[k]) * scale[k];
                out.at[i] = pack(has_skip ? unpack(beside[k].at[i]) + change : change);
            }
            out.store(dx.row(r), columns);
        }
    }
    dgain.store(own, columns);
    block.sync();
    float* const part = operands.at<float>(6).row(uint32_t(ctx.row0()) / uint32_t(ctx.rows()));
    for (int c = 4 * block.thread(); c < columns; c += 4 * BLOCK_THREADS) {
        float4 sum = {};
#pragma unroll
        for (int warp = 0; warp < ROW_WARPS; ++warp)
            sum = sum + *reinterpret_cast<const float4*>(shares + warp * columns + c);
        *reinterpret_cast<float4*>(part + c) = sum;
    }
}

}  // namespace ofa::sm90
