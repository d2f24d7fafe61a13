// The portable GPU kernel's entry: one CTA per SM, all resident, and every thread runs bodies.
#pragma once

namespace ofa {

OFA_INLINE uint64_t least_shared_bytes(const Model& /*model*/) { return 0; }

}  // namespace ofa

extern "C" __global__ void __launch_bounds__(ofa::BLOCK_THREADS, 1)
megakernel(const __grid_constant__ ofa::Launch launch) {
    __shared__ ofa::Block block;
    __shared__ ofa::Turn turn;
    if (ofa::fresh_thread() == 0) block.open(blockIdx.x, nullptr, 0, launch.scratch, launch.scratch_bytes);
    __syncthreads();
    ofa::run_block(block, launch, turn);
}
