// The bodies that a Hopper block calls, one line a task type of the sm90 program: those of this folder where matrices are
// in bf16 or one thread's loops would be too slow, those of ops/ where neither matters. Products are no bodies: they run
// in the kernel's entry (tile/product.cuh, tile/epilogue.cuh); a weight's update is, for its second half.
#pragma once

#include "ops/sm90/attention.cuh"
#include "ops/sm90/cross_entropy.cuh"
#include "ops/sm90/embed.cuh"
#include "ops/sm90/norm.cuh"
#include "ops/sm90/sample.cuh"
#include "ops/sm90/stream.cuh"
#include "tile/update.cuh"

namespace ofa {

#define OFA_CASE(opcode, body)  \
    case opcode:                \
        body(block, ctx);       \
        return true;

// False for a task type that is no part of the sm90 program.
OFA_FUNCTION bool run_body(Block& block, const TaskContext& ctx) {
    switch (ctx.task->opcode) {
        OFA_CASE(OPCODE_STEP_BEGIN, op_step_begin)
        OFA_CASE(OPCODE_PUBLISH, op_publish)
        OFA_CASE(OPCODE_EMBED, sm90::op_embed)
        OFA_CASE(OPCODE_NORM, sm90::op_norm)
        OFA_CASE(OPCODE_ATTENTION, sm90::op_attention)
        OFA_CASE(OPCODE_CROSS_ENTROPY_STATISTICS, sm90::op_cross_entropy_statistics)
        OFA_CASE(OPCODE_CROSS_ENTROPY_LOSS_STATISTICS, sm90::op_cross_entropy_loss_statistics)
        OFA_CASE(OPCODE_LOSS, op_loss)
        OFA_CASE(OPCODE_MATMUL_DW_ADAMW, update_weight)
        OFA_CASE(OPCODE_NORM_BACKWARD, sm90::op_norm_backward)
        OFA_CASE(OPCODE_ATTENTION_BACKWARD, sm90::op_attention_backward)
        OFA_CASE(OPCODE_EMBED_ADAMW, sm90::op_embed_adamw)
        OFA_CASE(OPCODE_ADAMW_GAIN, sm90::op_adamw_gain)
        OFA_CASE(OPCODE_SWEEP_BEGIN, op_sweep_begin)
        OFA_CASE(OPCODE_SWEEP_LOSS, op_sweep_loss)
        OFA_CASE(OPCODE_STREAM_BEGIN, sm90::op_stream_begin)
        OFA_CASE(OPCODE_SAMPLE, sm90::op_sample)
        OFA_CASE(OPCODE_DOOM_TIC, op_doom_tic)
    default:
        return false;
    }
}

#undef OFA_CASE

}  // namespace ofa
