// Attention in the block of tile/pipeline.cuh: its matrices fill the stages of the ring, and what belongs to them lies where
// products stage their outputs.
#pragma once

#include "ops/sm90/attention.cuh"
#include "tile/pipeline.cuh"

namespace ofa {

OFA_INLINE sm90::AttentionMemory attention_memory(Pipeline& pipeline) {
    static_assert(3 * sm90::MATRIX_BYTES <= sizeof pipeline.a + sizeof pipeline.b);
    static_assert(sizeof(sm90::AttentionNumbers) <= sizeof pipeline.staging);
    return {pipeline.a[0], pipeline.staging, &pipeline.attention};
}

// The storers may still read what the product before has staged.
OFA_INLINE void wait_for_storer(Pipeline& pipeline) {
    const int thread = fresh_thread();
    Position<BUFFERS> at{pipeline.places[thread / 32].buffers};
    for (int i = 0; i < BUFFERS; ++i, at.advance())
        wait_for(&pipeline.stored[thread / WARPGROUP - 1][at.stage()], at.parity() ^ 1);
}

OFA_NOINLINE void begin_attention(Pipeline& pipeline, const TaskContext& ctx) {
    wait_for_storer(pipeline);
    pipeline.block.sync();
    sm90::begin_attention(pipeline.block, ctx, attention_memory(pipeline));
}

// The next task is claimed when the leader's group begins with its last rows.
OFA_INLINE void finish_attention(Pipeline& pipeline, const Task& task) {
    sm90::finish_attention(pipeline.block, task, attention_memory(pipeline), [&] {
        if (pipeline.block.leader()) sm90::arrive(&pipeline.claim_next);
    });
}

}  // namespace ofa
