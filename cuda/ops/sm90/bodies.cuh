// The bodies of the sm90 program that both its kernels call, one line a task type: those of this folder where matrices are in
// bf16 or one thread's loops would be too slow, those of ops/ where neither matters. They need no more than Ampere has.
#pragma once

#include "ops/sm90/attention.cuh"
#include "ops/sm90/cross_entropy.cuh"
#include "ops/sm90/embed.cuh"
#include "ops/sm90/norm.cuh"

#define OFA_CASE(opcode, body)  \
    case opcode:                \
        body(block, ctx);       \
        return true;

#define OFA_CASES_OF_BOTH \
    OFA_CASE(OPCODE_STEP_BEGIN, op_step_begin)                                             \
    OFA_CASE(OPCODE_PUBLISH, op_publish)                                                   \
    OFA_CASE(OPCODE_EMBED, sm90::op_embed)                                                 \
    OFA_CASE(OPCODE_NORM, sm90::op_norm)                                                   \
    OFA_CASE(OPCODE_ATTENTION, sm90::op_attention)                                         \
    OFA_CASE(OPCODE_CROSS_ENTROPY_STATISTICS, sm90::op_cross_entropy_statistics)           \
    OFA_CASE(OPCODE_CROSS_ENTROPY_LOSS_STATISTICS, sm90::op_cross_entropy_loss_statistics) \
    OFA_CASE(OPCODE_LOSS, op_loss)                                                         \
    OFA_CASE(OPCODE_NORM_BACKWARD, sm90::op_norm_backward)                                 \
    OFA_CASE(OPCODE_ATTENTION_BACKWARD, sm90::op_attention_backward)                       \
    OFA_CASE(OPCODE_EMBED_ADAMW, sm90::op_embed_adamw)                                     \
    OFA_CASE(OPCODE_ADAMW_GAIN, sm90::op_adamw_gain)                                       \
    OFA_CASE(OPCODE_SWEEP_BEGIN, op_sweep_begin)                                           \
    OFA_CASE(OPCODE_SWEEP_LOSS, op_sweep_loss)                                             \
    OFA_CASE(OPCODE_DOOM_TIC, op_doom_tic)
