// The bodies that a Hopper block calls. Products are none: they run in the kernel's entry (tile/product.cuh,
// tile/staging.cuh); a weight's update is, for its second half.
#pragma once

#include "ops/sm90/bodies.cuh"
#include "tile/update.cuh"

namespace ofa {

// False for a task type that is no part of the sm90 program.
OFA_FUNCTION bool run_body(Block& block, const TaskContext& ctx) {
    switch (ctx.task->opcode) {
        OFA_CASES_WITHOUT_PRODUCTS
        OFA_CASE(OPCODE_MATMUL_DW_ADAMW, update_weight)
    default:
        return false;
    }
}

}  // namespace ofa
