// The bodies that a block calls where there are matrix instructions of warps: products, and those it shares with Hopper.
#pragma once

#include "ops/sm80/matmul.cuh"
#include "ops/sm90/bodies.cuh"

namespace ofa {

// False for a task type that is no part of the sm90 program.
OFA_FUNCTION bool run_body(Block& block, const TaskContext& ctx) {
    switch (ctx.task->opcode) {
    case OPCODE_MATMUL:
        sm80::op_matmul(block, ctx);
        return true;
    case OPCODE_MATMUL_RESIDUAL:
        sm80::op_matmul_residual(block, ctx);
        return true;
    case OPCODE_MATMUL_GELU:
        sm80::op_matmul_gelu(block, ctx);
        return true;
    case OPCODE_MATMUL_STATISTICS:
        sm80::op_matmul_statistics(block, ctx);
        return true;
    case OPCODE_MATMUL_DX:
        sm80::op_matmul_dx(block, ctx);
        return true;
    case OPCODE_MATMUL_DX_GELU:
        sm80::op_matmul_dx_gelu(block, ctx);
        return true;
    case OPCODE_MATMUL_DW_ADAMW:
        sm80::op_matmul_dw_adamw(block, ctx);
        return true;
    default:
        return run_body_without_product(block, ctx);
    }
}

}  // namespace ofa
