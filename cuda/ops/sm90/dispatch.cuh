// The bodies that a Hopper block calls. Products are none: they run in the kernel's entry (tile/product.cuh,
// tile/staging.cuh, tile/update.cuh); but before a weight's gradient AdamW's numbers of the step are worked out. Nor is a
// token between its beginning and its sampling (ops/sm90/token.cuh), nor attention (tile/attention.cuh).
#pragma once

#include "ops/sm90/bodies.cuh"
#include "ops/sm90/sample.cuh"
#include "ops/sm90/stream.cuh"
#include "tile/adamw.cuh"

namespace ofa {

// False for a task type that is no part of the sm90 program.
OFA_FUNCTION bool run_body(Block& block, const TaskContext& ctx) {
    switch (ctx.task->opcode) {
        OFA_CASES_OF_BOTH
        OFA_CASE(OPCODE_MATMUL_DW_ADAMW, adamw_of_step)
        OFA_CASE(OPCODE_STREAM_BEGIN, sm90::op_stream_begin)
        OFA_CASE(OPCODE_SAMPLE_ROW, sm90::op_sample)
        OFA_CASE(OPCODE_SAMPLE, sm90::op_sample)
    default:
        return false;
    }
}

}  // namespace ofa
