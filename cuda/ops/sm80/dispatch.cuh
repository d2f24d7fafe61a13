// The bodies that a block calls where there are matrix instructions of warps: products, tokens, and those
// it shares with Hopper.
#pragma once

#include "ops/sm80/attention.cuh"
#include "ops/sm80/matmul.cuh"
#include "ops/sm80/sample.cuh"
#include "ops/sm80/stream.cuh"
#include "ops/sm90/bodies.cuh"

namespace ofa {

// False for a task type that is no part of the sm90 program.
OFA_FUNCTION bool run_body(Block& block, const TaskContext& ctx) {
    switch (ctx.task->opcode) {
        OFA_CASE(OPCODE_MATMUL, sm80::op_matmul)
        OFA_CASE(OPCODE_MATMUL_RESIDUAL, sm80::op_matmul_residual)
        OFA_CASE(OPCODE_MATMUL_GELU, sm80::op_matmul_gelu)
        OFA_CASE(OPCODE_MATMUL_STATISTICS, sm80::op_matmul_statistics)
        OFA_CASE(OPCODE_MATMUL_DX, sm80::op_matmul_dx)
        OFA_CASE(OPCODE_MATMUL_DX_GELU, sm80::op_matmul_dx_gelu)
        OFA_CASE(OPCODE_MATMUL_DW_ADAMW, sm80::op_matmul_dw_adamw)
        OFA_CASE(OPCODE_ATTENTION, sm80::op_attention)
        OFA_CASE(OPCODE_ATTENTION_BACKWARD, sm80::op_attention_backward)
        OFA_CASES_OF_BOTH
        OFA_CASE(OPCODE_STREAM_BEGIN, sm80::op_stream_begin)
        OFA_CASE(OPCODE_STREAM_QKV, sm80::op_stream_qkv)
        OFA_CASE(OPCODE_STREAM_ATTENTION, sm80::op_stream_attention)
        OFA_CASE(OPCODE_STREAM_MATMUL_RESIDUAL, sm80::op_stream_matmul_residual)
        OFA_CASE(OPCODE_STREAM_NORM_MATMUL_GELU, sm80::op_stream_norm_matmul_gelu)
        OFA_CASE(OPCODE_STREAM_NORM_MATMUL, sm80::op_stream_norm_matmul)
        OFA_CASE(OPCODE_SAMPLE_ROW, sm80::op_sample)
        OFA_CASE(OPCODE_SAMPLE, sm80::op_sample)
    default:
        return false;
    }
}

}  // namespace ofa
