// The token table, forward and backward.
#pragma once

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

// The task owns rows of the table. Column c belongs to one thread in every loop, so that no barrier is needed
// and the rows of x are added in their order.
OFA_OP void op_embed_backward(Block& block, const TaskContext& ctx) {
    const Matrix<float> dx = ctx.operand<float>(0), dtable = ctx.operand<float>(1);
    for (int64_t i = ctx.row0(); i < ctx.row0() + ctx.rows(); ++i) {
        float* const row = dtable.row(i);
        block.for_each(dtable.cols, [=](int64_t c) { row[c] = 0.0f; });
    }
    for (int64_t r = 0; r < dx.rows; ++r) {
        const int64_t token = ctx.token(r);
        if (token < ctx.row0() || token >= ctx.row0() + ctx.rows()) continue;
        const float* const OFA_RESTRICT from = dx.row(r);
        float* const OFA_RESTRICT to = dtable.row(token);
        block.for_each(dtable.cols, [=](int64_t c) { to[c] += from[c]; });
    }
}

OFA_OP void op_embed_adamw(Block&, const TaskContext&) {}

}  // namespace ofa
