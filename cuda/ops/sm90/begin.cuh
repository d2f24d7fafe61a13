// How a token begins in both kernels of the sm90 program.
#pragma once

#include "ops/stream.h"
#include "tile/bf16.cuh"

namespace ofa::sm90 {

// The input token's row of table [V, C], operand 0, becomes message x [1, C], operand 1. `fits()`, asked by the leader, is
// whether blocks can decode the model, and says so where they cannot.
template <class Fits>
OFA_INLINE void begin_token(Block& block, const TaskContext& ctx, Fits fits) {
    const auto open = [&] {
        if (!fits() || !open_token(ctx)) return false;
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
