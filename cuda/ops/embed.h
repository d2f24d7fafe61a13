// The token table, forward and backward.
#pragma once

#include "ops/adamw.h"
#include "task.h"

namespace ofa {

OFA_OP void op_embed(Block& block, const TaskContext& ctx) {
    const Matrix<float> table = ctx.operand<float>(0), x = ctx.operand<float>(1);
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const float* const OFA_RESTRICT from = table.row(ctx.token(r));
        float* const OFA_RESTRICT to = x.row(r);
        block.for_each(x.cols, [=](int64_t c) { to[c] = from[c]; });
    }
}

// sums[i] = sum of dx over the rows whose token is first + i. Column c belongs to one thread in every loop, so that no
// barrier is needed and the rows are added in their order.
OFA_FUNCTION void sum_by_token(Block& block, const TaskContext& ctx, const Matrix<float>& dx, int64_t first,
                               const Matrix<float>& sums) {
    for (int64_t i = 0; i < sums.rows; ++i) {
        float* const row = sums.row(i);
        block.for_each(sums.cols, [=](int64_t c) { row[c] = 0.0f; });
    }
    for (int64_t r = 0; r < dx.rows; ++r) {
        const int64_t i = ctx.token(r) - first;
        if (i < 0 || i >= sums.rows) continue;
        const float* const OFA_RESTRICT from = dx.row(r);
        float* const OFA_RESTRICT to = sums.row(i);
        block.for_each(sums.cols, [=](int64_t c) { to[c] += from[c]; });
    }
}

// The task owns rows of the table.
OFA_OP void op_embed_backward(Block& block, const TaskContext& ctx) {
    const Matrix<float> dtable = ctx.operand<float>(1);
    const Matrix<float> owned = {dtable.row(ctx.row0()), dtable.pitch, ctx.rows(), dtable.cols};
    sum_by_token(block, ctx, ctx.operand<float>(0), ctx.row0(), owned);
}

// The gradients of as many rows at a time as scratch memory holds, each the sum of dx in the order of the batch's rows.
// Rows without a token are updated with a gradient of zero.
OFA_OP void op_embed_adamw(Block& block, const TaskContext& ctx) {
    const AdamW adamw(ctx.launch->optimizer, ctx.iteration, (ctx.task->flags & ADAMW_DECAY) != 0);
    const Matrix<float> dx = ctx.operand<float>(0), master = ctx.operand<float>(1), table = ctx.operand<float>(4);
    const Matrix<float> m = ctx.operand<float>(2), v = ctx.operand<float>(3);
    const int64_t width = table.cols, fit = int64_t(block.scratch_bytes() / sizeof(float)) / width;
    const int64_t end = ctx.row0() + ctx.rows();
    for (int64_t first = ctx.row0(); first < end; first += fit) {
        const int64_t rows = end - first < fit ? end - first : fit;
        const Matrix<float> grad = {block.scratch<float>(), width, rows, width};
        sum_by_token(block, ctx, dx, first, grad);
        for (int64_t i = 0; i < rows; ++i) {
            const float* const OFA_RESTRICT g = grad.row(i);
            float* const OFA_RESTRICT p = master.row(first + i);
            float* const OFA_RESTRICT m_row = m.row(first + i);
            float* const OFA_RESTRICT v_row = v.row(first + i);
            float* const OFA_RESTRICT next = table.row(first + i);
            block.for_each(width, [=](int64_t c) { next[c] = p[c] = adamw.update(g[c], p[c], m_row[c], v_row[c]); });
        }
    }
}

}  // namespace ofa
