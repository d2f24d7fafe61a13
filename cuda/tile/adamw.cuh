// AdamW with the special function unit's division and square root: the step of a weight is exact to about 1e-6 of itself.
#pragma once

#include "ops/adamw.h"
#include "tile/bf16.cuh"

namespace ofa {

// Multiplications by what a step alone determines, done once:
//   p - rate (c1 m / (sqrt(c2 v) + epsilon) + decay p)  =  (p - (rate c1 / sqrt(c2)) m / (sqrt(v) + epsilon / sqrt(c2))) - rate decay p
struct FastAdamW {
    float beta1, beta2, one_minus_beta1, one_minus_beta2;
    float rate, epsilon, decay;

    OFA_INLINE explicit FastAdamW(const AdamW& o)
        : beta1(o.beta1), beta2(o.beta2), one_minus_beta1(o.one_minus_beta1), one_minus_beta2(o.one_minus_beta2),
          rate(o.rate * o.inverse_correction1 / sqrtf(o.inverse_correction2)),
          epsilon(o.epsilon / sqrtf(o.inverse_correction2)), decay(o.rate * o.decay) {}
};

// What AdamW needs of a step, with decay, is worked out once per step and block.
OFA_INLINE FastAdamW adamw_of_step(Block& block, const TaskContext& ctx) {
    if (block.memo_key() != ctx.iteration + 1) {
        block.sync();
        if (block.leader()) block.keep(ctx.iteration + 1, FastAdamW(AdamW(ctx.launch->optimizer, ctx.iteration, true)));
        block.sync();
    }
    return block.kept<FastAdamW>();
}

OFA_INLINE float fast_update(const FastAdamW& o, float grad, float p, float& m, float& v) {
    m = fmaf(o.one_minus_beta1, grad, o.beta1 * m);
    v = fmaf(o.one_minus_beta2 * grad, grad, o.beta2 * v);
    const float step = m * reciprocal_of(square_root_of(v) + o.epsilon);
    return fmaf(-o.decay, p, fmaf(-o.rate, step, p));
}

OFA_INLINE float4 fast_update(const FastAdamW& o, float4 grad, float4 p, float4& m, float4& v) {
    return make_float4(fast_update(o, grad.x, p.x, m.x, v.x), fast_update(o, grad.y, p.y, m.y, v.y),
                       fast_update(o, grad.z, p.z, m.z, v.z), fast_update(o, grad.w, p.w, m.w, v.w));
}

}  // namespace ofa
