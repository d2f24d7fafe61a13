// Softmax cross-entropy over all entries of the vocabulary, in nats.
#pragma once

#include "platform/math.h"
#include "task.h"

namespace ofa {

OFA_INLINE float largest_of(Block& block, const float* OFA_RESTRICT row, int64_t n) {
    return block.max(n, row[0], [=](int64_t c) { return row[c]; });
}

// Turns each row into the gradient of the mean loss over the batch's counted rows: (softmax - one hot) /
// count. A row without a target has loss 0 and gradient 0.
OFA_OP void op_cross_entropy(Block& block, const TaskContext& ctx) {
    const Matrix<float> logits = ctx.operand<float>(0), losses = ctx.operand<float>(1);
    const float weight = 1.0f / float(ctx.counted_rows());
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const int64_t target = ctx.target(r);
        float* const OFA_RESTRICT row = logits.row(r);
        if (target < 0) {
            block.for_each(logits.cols, [=](int64_t c) { row[c] = 0.0f; });
            if (block.leader()) *losses.row(r) = 0.0f;
            continue;
        }
        const float largest = largest_of(block, row, logits.cols);
        const float target_logit = row[target];
        block.sync();
        const float total = block.sum(logits.cols, [=](int64_t c) {
            row[c] = math::exp(row[c] - largest);
            return row[c];
        });
        const float scale = weight / total;
        block.for_each(logits.cols, [=](int64_t c) { row[c] *= scale; });
        block.sync();
        if (block.leader()) {
            row[target] -= weight;
            *losses.row(r) = logf(total) + largest - target_logit;
        }
    }
}

OFA_OP void op_cross_entropy_loss(Block& block, const TaskContext& ctx) {
    const Matrix<float> logits = ctx.operand<float>(0), losses = ctx.operand<float>(1);
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const int64_t target = ctx.target(r);
        const float* const OFA_RESTRICT row = logits.row(r);
        float loss = 0.0f;
        if (target >= 0) {
            const float largest = largest_of(block, row, logits.cols);
            const float total = block.sum(logits.cols, [=](int64_t c) { return math::exp(row[c] - largest); });
            loss = logf(total) + largest - row[target];
        }
        if (block.leader()) *losses.row(r) = loss;
    }
}

OFA_OP void op_cross_entropy_statistics(Block&, const TaskContext&) {}
OFA_OP void op_cross_entropy_loss_statistics(Block&, const TaskContext&) {}

}  // namespace ofa
