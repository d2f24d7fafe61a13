// RMSNorm, a warp per row; the formulas are those of ops/norm.h.
#pragma once

#include "ops/sm90/rows.cuh"

namespace ofa::sm90 {

OFA_NOINLINE void op_norm(Block& block, const TaskContext& ctx) {
    const Operands operands(ctx);
    const Matrix<float> x = operands.at<float>(0), rstd = operands.at<float>(3);
    const Matrix<bf16> y = operands.at<bf16>(2);
    const int columns = int(x.cols), end = int(ctx.row0() + ctx.rows());
    if (!can_hold_row(block, ctx, columns)) return;
    const float epsilon = ctx.launch->model.norm_epsilon;
    Row gain;
    gain.load(operands.at<float>(1).data, columns);
    const int together = rows_together(block, Row::BYTES);
    float* const near = block.near<float>() + warp_of_block() * together * MOST_COLUMNS;
    for (int first = int(ctx.row0()) + warp_of_block(); first < end; first += together * ROW_WARPS) {
        const int rows = rows_left(first, end, together);
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            Row::copy(near + k * MOST_COLUMNS, x.row(first + k * ROW_WARPS), columns);
            commit_row();
        }
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            const int r = first + k * ROW_WARPS;
            wait_for_rows(rows - 1 - k);
            Row row;
            row.load(near + k * MOST_COLUMNS, columns);
            float squares = 0.0f;
#pragma unroll
            for (const float4& piece : row.at) squares += sum_of(piece * piece);
            const float scale = 1.0f / sqrtf(sum_of_warp(squares) / float(columns) + epsilon);
            PackedRow out;
#pragma unroll
            for (int i = 0; i < PIECES; ++i) out.at[i] = pack(row.at[i] * scale * gain.at[i]);
            out.store(y.row(r), columns);
            if (lane_of_thread() == 0) *rstd.row(r) = scale;
        }
    }
}

// What the gradient of a row needs, in near memory.
struct RowInputs {
    float x[MOST_COLUMNS];
    bf16 dy[MOST_COLUMNS], skip[MOST_COLUMNS];
};

// A warp's share of the gain's gradient stays in registers; the warps' shares are added in their order.
OFA_NOINLINE void op_norm_backward(Block& block, const TaskContext& ctx) {
    const Operands operands(ctx);
    const bool has_skip = ctx.present(4);
    const Matrix<bf16> dy = operands.at<bf16>(0), dx = operands.at<bf16>(5);
    const Matrix<bf16> skip = operands.at<bf16>(has_skip ? 4 : 0);
    const Matrix<float> x = operands.at<float>(1), rstd = operands.at<float>(2);
    const int columns = int(x.cols), end = int(ctx.row0() + ctx.rows());
    if (!can_hold_row(block, ctx, columns)) return;
    Row gain, dgain;
    gain.load(operands.at<float>(3).data, columns);
    const int together = rows_together(block, int(sizeof(RowInputs)));
    RowInputs* const near = block.near<RowInputs>() + warp_of_block() * together;
    for (int first = int(ctx.row0()) + warp_of_block(); first < end; first += together * ROW_WARPS) {
        const int rows = rows_left(first, end, together);
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            const int r = first + k * ROW_WARPS;
            Row::copy(near[k].x, x.row(r), columns);
            PackedRow::copy(near[k].dy, dy.row(r), columns);
            if (has_skip) PackedRow::copy(near[k].skip, skip.row(r), columns);
            commit_row();
        }
        const int mine = first + min(lane_of_thread(), rows - 1) * ROW_WARPS;
        const float scale_of_lane = *rstd.row(mine);
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            const float scale = __shfl_sync(0xFFFFFFFFu, scale_of_lane, k);
            wait_for_rows(rows - 1 - k);
            Row in;
            PackedRow from_y, out;
            in.load(near[k].x, columns);
            from_y.load(near[k].dy, columns);
            float dot = 0.0f;
#pragma unroll
            for (int i = 0; i < PIECES; ++i) {
                const float4 through = unpack(from_y.at[i]);
                dgain.at[i] = dgain.at[i] + through * in.at[i] * scale;
                dot += sum_of(through * gain.at[i] * in.at[i]);
            }
            const float along_x = sum_of_warp(dot) / float(columns) * scale * scale;
            if (has_skip) out.load(near[k].skip, columns);
#pragma unroll
            for (int i = 0; i < PIECES; ++i) {
                const float4 change = less(unpack(from_y.at[i]) * gain.at[i], in.at[i], along_x) * scale;
                out.at[i] = pack(has_skip ? unpack(out.at[i]) + change : change);
            }
            out.store(dx.row(first + k * ROW_WARPS), columns);
        }
    }
    dgain.store(near->x, columns);
    block.sync();
    float* const part = operands.at<float>(6).row(uint32_t(ctx.row0()) / uint32_t(ctx.rows()));
    const RowInputs* const shares = block.near<RowInputs>();
    for (int c = 4 * block.thread(); c < columns; c += 4 * BLOCK_THREADS) {
        float4 sum = {};
#pragma unroll
        for (int warp = 0; warp < ROW_WARPS; ++warp)
            sum = sum + *reinterpret_cast<const float4*>(shares[warp * together].x + c);
        *reinterpret_cast<float4*>(part + c) = sum;
    }
}

}  // namespace ofa::sm90
