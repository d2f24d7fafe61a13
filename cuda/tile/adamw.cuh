// AdamW with the special function unit's division and square root: the step of a weight is exact to about 1e-6 of itself.
#pragma once

#include "ops/adamw.h"
#include "tile/bf16.cuh"

namespace ofa {

// What AdamW needs of a step, with decay, is worked out once per step and block.
OFA_INLINE AdamW adamw_of_step(Block& block, const TaskContext& ctx) {
    if (block.memo_key() != ctx.iteration + 1) {
        block.sync();
        if (block.leader()) block.keep(ctx.iteration + 1, AdamW(ctx.launch->optimizer, ctx.iteration, true));
        block.sync();
    }
    return block.kept<AdamW>();
}

OFA_INLINE float fast_update(const AdamW& o, float grad, float p, float& m, float& v) {
    m = o.beta1 * m + o.one_minus_beta1 * grad;
    v = o.beta2 * v + o.one_minus_beta2 * grad * grad;
    const float direction =
        __fdividef(m * o.inverse_correction1, square_root_of(v * o.inverse_correction2) + o.epsilon);
    return p - o.rate * (direction + o.decay * p);
}

OFA_INLINE float4 fast_update(const AdamW& o, float4 grad, float4 p, float4& m, float4& v) {
    return make_float4(fast_update(o, grad.x, p.x, m.x, v.x), fast_update(o, grad.y, p.y, m.y, v.y),
                       fast_update(o, grad.z, p.z, m.z, v.z), fast_update(o, grad.w, p.w, m.w, v.w));
}

}  // namespace ofa
