// AdamW (Loshchilov and Hutter, arXiv:1711.05101) with the decay scaled by the learning rate.
#pragma once

#include "ops/matmul.h"
#include "ops/prefetch.h"
#include "ops/stream_order.h"
#include "task.h"

namespace ofa {

// Linear warm-up, then half a cosine down to final_fraction of the peak; `step` counts from 0.
OFA_FUNCTION double learning_rate(const Optimizer& o, uint64_t step) {
    const double warmup = step + 1 < o.warmup_steps ? double(step + 1) / double(o.warmup_steps) : 1.0;
    const double cosine = cos(3.14159265358979323846 * double(step) / double(o.total_steps));
    return o.learning_rate * warmup * (o.final_fraction + (1.0 - o.final_fraction) / 2.0 * (1.0 + cosine));
}

// The update of one element, with all that depends on the step alone worked out in double.
struct AdamW {
    float beta1, beta2, one_minus_beta1, one_minus_beta2;
    float inverse_correction1, inverse_correction2;  // 1 / (1 - beta^(step + 1))
    float rate, epsilon, decay;

    OFA_INLINE AdamW(const Optimizer& o, uint64_t step, bool with_decay)
        : beta1(float(o.beta1)),
          beta2(float(o.beta2)),
          one_minus_beta1(float(1.0 - o.beta1)),
          one_minus_beta2(float(1.0 - o.beta2)),
          inverse_correction1(float(1.0 / (1.0 - pow(o.beta1, double(step + 1))))),
          inverse_correction2(float(1.0 / (1.0 - pow(o.beta2, double(step + 1))))),
          rate(float(learning_rate(o, step))),
          epsilon(float(o.epsilon)),
          decay(with_decay ? float(o.weight_decay) : 0.0f) {}

    // Updates both moments; returns the next value of the parameter.
    OFA_INLINE float update(float grad, float p, float& m, float& v) const {
        m = beta1 * m + one_minus_beta1 * grad;
        v = beta2 * v + one_minus_beta2 * grad * grad;
        const float direction = m * inverse_correction1 / (sqrtf(v * inverse_correction2) + epsilon);
        return p - rate * (direction + decay * p);
    }
};

OFA_INLINE void adamw_row(Block& block, const AdamW& adamw, int64_t n, const float* OFA_RESTRICT grad,
                          const float* OFA_RESTRICT p, float* OFA_RESTRICT p_next, float* OFA_RESTRICT m,
                          float* OFA_RESTRICT v) {
    block.for_each(n, [=](int64_t c) { p_next[c] = adamw.update(grad[c], p[c], m[c], v[c]); });
}

constexpr int64_t ELEMENTS_AHEAD = 512;  // of each matrix, on their way from memory while others are updated

OFA_OP void op_adamw(Block& block, const TaskContext& ctx) {
    const AdamW adamw(ctx.launch->optimizer, ctx.iteration, (ctx.task->flags & ADAMW_DECAY) != 0);
    const Matrix<float> grad = tile_of(ctx, 0), p = tile_of(ctx, 1), p_next = tile_of(ctx, 2);
    const Matrix<float> m = tile_of(ctx, 3), v = tile_of(ctx, 4);
    const int64_t rows_ahead = 1 + ELEMENTS_AHEAD / ctx.cols();
    for (int64_t r = 0; r < ctx.rows(); ++r) {
        prefetch_row(grad, r + rows_ahead);
        prefetch_row(p, r + rows_ahead);
        prefetch_row(p_next, r + rows_ahead);
        prefetch_row(m, r + rows_ahead);
        prefetch_row(v, r + rows_ahead);
        adamw_row(block, adamw, ctx.cols(), grad.row(r), p.row(r), p_next.row(r), m.row(r), v.row(r));
    }
}

OFA_OP void op_adamw_gain(Block& block, const TaskContext& ctx) {
    const AdamW adamw(ctx.launch->optimizer, ctx.iteration, false);
    const Matrix<float> parts = ctx.operand<float>(0);
    float* const OFA_RESTRICT grad = ctx.operand<float>(5).data;
    for (int64_t part = 0; part < parts.rows; ++part) {
        const float* const OFA_RESTRICT row = parts.row(part);
        const bool first = part == 0;
        block.for_each(parts.cols, [=](int64_t c) { grad[c] = first ? row[c] : grad[c] + row[c]; });
    }
    adamw_row(block, adamw, parts.cols, grad, ctx.operand<float>(1).data, ctx.operand<float>(2).data,
              ctx.operand<float>(3).data, ctx.operand<float>(4).data);
}

// Epilogue of a weight's gradient: the update, and the next version in both orders.
struct UpdateWeight {
    AdamW adamw;
    Matrix<float> master, m, v, w;  // the task's tile of each
    Streamed<float> stream;
    int64_t row0, col0;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        f(master.row(i) + j, master.pitch);
        f(m.row(i) + j, m.pitch);
        f(v.row(i) + j, v.pitch);
        f(w.row(i) + j, w.pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* grad, int count) const {
        float* const OFA_RESTRICT p = master.row(i) + j;
        float* const OFA_RESTRICT m_row = m.row(i) + j;
        float* const OFA_RESTRICT v_row = v.row(i) + j;
        float* const OFA_RESTRICT to = w.row(i) + j;
        for (int c = 0; c < count; ++c) to[c] = p[c] = adamw.update(grad[c], p[c], m_row[c], v_row[c]);
        for (int c = 0; c < count; ++c) stream.at(row0 + i, col0 + j + c) = to[c];
    }
};

OFA_OP void op_matmul_dw_adamw(Block& block, const TaskContext& ctx) {
    const AdamW adamw(ctx.launch->optimizer, ctx.iteration, (ctx.task->flags & ADAMW_DECAY) != 0);
    const UpdateWeight update = {
        adamw, tile_of(ctx, 2), tile_of(ctx, 3), tile_of(ctx, 4), tile_of(ctx, 5), streamed_operand<float>(ctx, 6),
        ctx.row0(), ctx.col0()};
    tile::multiply_tn(block, int(ctx.rows()), int(ctx.cols()), int(ctx.operand<float>(0).rows),
                      factor(ctx, 0, 0, ctx.row0()), factor(ctx, 1, 0, ctx.col0()), block.scratch<float>(), update);
}

}  // namespace ofa
