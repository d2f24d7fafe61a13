// How a token begins in both kernels of the sm90 program.
#pragma once

#include "ops/stream.h"
#include "tile/bf16.cuh"

namespace ofa::sm90 {

// The input tokens' rows of table [V, C], operand 0, become message x [PASS_ROWS, C], operand 1. `fits()`, asked by the
// leader, is whether blocks can decode the model, and says so where they cannot.
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
    const Matrix<bf16> table = pinned.operand<bf16>(0);
    const Message x = message_of(ctx, 1);
    const ServeState& serve = *ctx.launch->serve;
    for (uint32_t r = 0; r < serve.n_rows; ++r) {
        const bf16* const row = table.row(serve.rows[r].token);
        block.for_each(x.packets.cols, [=](int64_t c) { publish(x, r, c, float_of(row[c])); });
    }
}

}  // namespace ofa::sm90
