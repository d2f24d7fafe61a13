// Opens a token. What follows, up to its sampling, is no body: ops/sm90/token.cuh.
#pragma once

#include "ops/sm90/begin.cuh"
#include "tile/step.cuh"

namespace ofa::sm90 {

OFA_NOINLINE void op_stream_begin(Block& block, const TaskContext& ctx) {
    begin_token(block, ctx, [&] { return check(ctx, 1, holds_model(ctx.launch->model) ? 1 : 0); });
}

}  // namespace ofa::sm90
