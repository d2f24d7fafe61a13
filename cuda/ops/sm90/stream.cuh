// Opens a token. What follows, up to its sampling, is no body: ops/sm90/token.cuh.
#pragma once

#include "ops/stream.h"
#include "tile/bf16.cuh"
#include "tile/step.cuh"

namespace ofa::sm90 {

OFA_NOINLINE void op_stream_begin(Block& block, const TaskContext& ctx) {
    const auto open = [&] {
        if (!check(ctx, 1, holds_model(ctx.launch->model) ? 1 : 0) || !open_token(ctx)) return false;
        open_to_blocks(ctx);
        return true;
    };
    if (!block.broadcast(open)) return;
    TaskContext pinned = ctx;
    pinned.version = load_relaxed(&ctx.launch->serve->pin);
    const bf16* const row = pinned.operand<bf16>(0).row(ctx.launch->serve->input_token);
    const Message x = message_of(ctx, 1);
    block.for_each(x.packets.cols, [=](int64_t c) { publish(x, 0, c, float_of(row[c])); });
}

}  // namespace ofa::sm90
