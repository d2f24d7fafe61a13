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

// The denominator of a row's softmax is total * exp(largest).
struct Denominator {
    float largest, total;

    OFA_INLINE float loss(float target_logit) const { return logf(total) + largest - target_logit; }
};

// From the pairs (largest, sum of exp) of the row's column tiles.
OFA_INLINE Denominator denominator_of(Block& block, const Matrix<float>& statistics, int64_t r) {
    const float* const OFA_RESTRICT pairs = statistics.row(r);
    const int64_t tiles = statistics.cols / 2;
    const float largest = block.max(tiles, pairs[0], [=](int64_t i) { return pairs[2 * i]; });
    const float total =
        block.sum(tiles, [=](int64_t i) { return pairs[2 * i + 1] * math::exp(pairs[2 * i] - largest); });
    return {largest, total};
}

OFA_OP void op_cross_entropy_statistics(Block& block, const TaskContext& ctx) {
    const Matrix<float> logits = ctx.operand<float>(0), statistics = ctx.operand<float>(1);
    const Matrix<float> losses = ctx.operand<float>(2);
    const float weight = 1.0f / float(ctx.counted_rows());
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const int64_t target = ctx.target(r);
        float* const OFA_RESTRICT row = logits.row(r);
        if (target < 0) {
            block.for_each(logits.cols, [=](int64_t c) { row[c] = 0.0f; });
            if (block.leader()) *losses.row(r) = 0.0f;
            continue;
        }
        const Denominator denominator = denominator_of(block, statistics, r);
        const float largest = denominator.largest, scale = weight / denominator.total;
        const float target_logit = row[target];
        block.sync();
        block.for_each(logits.cols, [=](int64_t c) { row[c] = math::exp(row[c] - largest) * scale; });
        block.sync();
        if (block.leader()) {
            row[target] -= weight;
            *losses.row(r) = denominator.loss(target_logit);
        }
    }
}

OFA_OP void op_cross_entropy_loss_statistics(Block& block, const TaskContext& ctx) {
    const Matrix<float> logits = ctx.operand<float>(0), statistics = ctx.operand<float>(1);
    const Matrix<float> losses = ctx.operand<float>(2);
    for (int64_t r = ctx.row0(); r < ctx.row0() + ctx.rows(); ++r) {
        const int64_t target = ctx.target(r);
        const float loss = target < 0 ? 0.0f : denominator_of(block, statistics, r).loss(logits.row(r)[target]);
        if (block.leader()) *losses.row(r) = loss;
    }
}

}  // namespace ofa
