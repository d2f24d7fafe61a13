// What the host must know of a cubin before it builds a run's memory; a kernel of its own, run once before the launch.
#pragma once

namespace ofa {

OFA_INLINE uint64_t scratch_bytes_of(const Model& model) {
    const uint64_t needs[] = {training_scratch_bytes(model), serving_scratch_bytes(model),
                              streaming_scratch_bytes(model)};
    uint64_t most = 0;
    for (const uint64_t need : needs) most = need > most ? need : most;
    return most;
}

}  // namespace ofa

// One thread. `facts`: scratch bytes of an SM, bytes of a game and of its snapshot, the clock, the layout
// (ofa_tui/abi_header.py), and the least shared memory that a block needs; 0 for a kernel that lays out none itself.
extern "C" __global__ void kernel_facts(const __grid_constant__ ofa::Launch launch, uint64_t* facts) {
    using namespace ofa;
    const uint64_t layout[] = {OFA_LAYOUT};
    facts[0] = scratch_bytes_of(launch.model);
    facts[1] = sizeof(DoomTable);
    facts[2] = sizeof(DoomState);
    facts[3] = now_ns();
    for (int i = 0; i < OFA_LAYOUT_COUNT; ++i) facts[4 + i] = layout[i];
    facts[4 + OFA_LAYOUT_COUNT] = least_shared_bytes(launch.model);
}
