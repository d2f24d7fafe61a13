// The next token, as on Hopper, in the near memory of a block: how many weights it holds depends on the GPU.
#pragma once

#include "ops/sm90/sample.cuh"

namespace ofa::sm80 {

OFA_NOINLINE void op_sample(Block& block, const TaskContext& ctx) {
    sm90::sample_or_row(block, ctx, sm90::weights_in(block.near_bytes()));
}

}  // namespace ofa::sm80
