// The GPU kernel's entry: one CTA per SM, all resident.
#pragma once

extern "C" __global__ void __launch_bounds__(ofa::BLOCK_THREADS, 1)
megakernel(const __grid_constant__ ofa::Launch launch) {
    __shared__ ofa::Block::Exchange exchange;
    const uint32_t sm = blockIdx.x;
    ofa::Block block(sm, launch.scratch + sm * launch.scratch_bytes, launch.scratch_bytes, &exchange);
    ofa::run_block(block, launch);
}
