// RMSNorm (Zhang and Sennrich, arXiv:1910.07467): y = gain x / rms(x), rms(x)^2 = mean(x^2) + epsilon.
#pragma once

#include "ops/prefetch.h"
#include "task.h"

namespace ofa {

OFA_OP void op_norm(Block& block, const TaskContext& ctx) {
    const Matrix<float> x = ctx.operand<float>(0), y = ctx.operand<float>(2), rstd = ctx.operand<float>(3);
    const float* const OFA_RESTRICT gain = ctx.operand<float>(1).data;
    const float epsilon = ctx.launch->model.norm_epsilon;
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const float* const OFA_RESTRICT in = x.row(r);
        float* const OFA_RESTRICT out = y.row(r);
        prefetch_row(x, r + ROWS_AHEAD);
        prefetch_row(y, r + ROWS_AHEAD);
        const float squares = block.sum(x.cols, [=](int64_t c) { return in[c] * in[c]; });
        const float scale = 1.0f / sqrtf(squares / float(x.cols) + epsilon);
        block.for_each(x.cols, [=](int64_t c) { out[c] = in[c] * scale * gain[c]; });
        if (block.leader()) *rstd.row(r) = scale;
    }
}

// With n = x rstd and g = dy gain: dx = rstd (g - n mean(g n)), and the gain's gradient is the sum of dy n
// over rows. Column c of that sum belongs to one thread, which adds the block's rows in their order.
OFA_OP void op_norm_backward(Block& block, const TaskContext& ctx) {
    const Matrix<float> dy = ctx.operand<float>(0), x = ctx.operand<float>(1), rstd = ctx.operand<float>(2);
    const float* const OFA_RESTRICT gain = ctx.operand<float>(3).data;
    const bool has_skip = ctx.present(4);
    const Matrix<float> skip = has_skip ? ctx.operand<float>(4) : dy;
    const Matrix<float> dx = ctx.operand<float>(5);
    float* const OFA_RESTRICT dgain = ctx.operand<float>(6).row(ctx.row0() / ctx.rows());
    const int64_t n = x.cols;
    block.for_each(n, [=](int64_t c) { dgain[c] = 0.0f; });
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const float* const OFA_RESTRICT dy_row = dy.row(r);
        const float* const OFA_RESTRICT x_row = x.row(r);
        const float* const OFA_RESTRICT skip_row = skip.row(r);
        float* const OFA_RESTRICT dx_row = dx.row(r);
        const float scale = *rstd.row(r);
        prefetch_row(dy, r + ROWS_AHEAD);
        prefetch_row(x, r + ROWS_AHEAD);
        if (has_skip) prefetch_row(skip, r + ROWS_AHEAD);
        prefetch_row(dx, r + ROWS_AHEAD);
        const float dot = block.sum(n, [=](int64_t c) { return dy_row[c] * gain[c] * x_row[c]; });
        const float along_x = dot / float(n) * scale * scale;
        block.for_each(n, [=](int64_t c) {
            const float through_norm = scale * (dy_row[c] * gain[c] - x_row[c] * along_x);
            dgain[c] += dy_row[c] * x_row[c] * scale;
            dx_row[c] = has_skip ? skip_row[c] + through_norm : through_norm;
        });
    }
}

}  // namespace ofa
