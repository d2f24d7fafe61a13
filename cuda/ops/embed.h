// The token table, forward and backward.
#pragma once

#include "task.h"

namespace ofa {

OFA_OP void op_embed(Block& block, const TaskContext& context) {
  const Matrix<float> table = context.operand<float>(0), x = context.operand<float>(1);
  for (int64_t r = context.row0(); r < context.row0() + context.rows(); ++r) {
    const float* const OFA_RESTRICT from = table.row(context.token(r));
    float* const OFA_RESTRICT to = x.row(r);
    block.for_each(x.cols, [=](int64_t c) { to[c] = from[c]; });
  }
}

// The task owns rows of the table. Column c belongs to one thread in every loop, so that no barrier is needed and the
// rows of x are added in their order.
OFA_OP void op_embed_backward(Block& block, const TaskContext& context) {
  const Matrix<float> dx = context.operand<float>(0), dtable = context.operand<float>(1);
  for (int64_t i = context.row0(); i < context.row0() + context.rows(); ++i) {
    float* const row = dtable.row(i);
    block.for_each(dtable.cols, [=](int64_t c) { row[c] = 0.0f; });
  }
  for (int64_t r = 0; r < dx.rows; ++r) {
    const int64_t token = context.token(r);
    if (token < context.row0() || token >= context.row0() + context.rows()) continue;
    const float* const OFA_RESTRICT from = dx.row(r);
    float* const OFA_RESTRICT to = dtable.row(token);
    block.for_each(dtable.cols, [=](int64_t c) { to[c] += from[c]; });
  }
}

}  // namespace ofa
