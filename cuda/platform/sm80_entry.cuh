// The GPU kernel's entry from Ampere on: one CTA of eight warps per SM, all resident, and every thread runs bodies.
#pragma once

#include "ops/sm80/dispatch.cuh"

namespace ofa {

// What a block lays out in front of its near memory.
struct Frame {
    alignas(1024) Block block;
    Turn turn;
};

// Shared memory that a block needs for the tasks of a model: two stages of the products' ring, or a sequence of attention.
OFA_FUNCTION uint64_t least_shared_bytes(const Model& model) {
    const uint64_t ring = sm80::LEAST_STAGES * sm80::STAGE_BYTES;
    const uint64_t attention = sm90::AttentionMemory::bytes(int64_t(model.context));
    return sizeof(Frame) + (ring > attention ? ring : attention);
}

OFA_INLINE uint32_t dynamic_shared_bytes() {
    uint32_t bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

}  // namespace ofa

extern "C" __global__ void __launch_bounds__(ofa::BLOCK_THREADS, 1)
megakernel(const __grid_constant__ ofa::Launch launch) {
    extern __shared__ __align__(1024) uint8_t shared[];
    ofa::Frame& frame = *reinterpret_cast<ofa::Frame*>(shared);
    if (ofa::fresh_thread() == 0)
        frame.block.open(blockIdx.x, shared + sizeof(ofa::Frame),
                         ofa::dynamic_shared_bytes() - uint32_t(sizeof(ofa::Frame)), launch.scratch,
                         launch.scratch_bytes);
    __syncthreads();
    ofa::run_block(frame.block, launch, frame.turn);
}
