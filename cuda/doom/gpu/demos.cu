// Plays demos on a GPU, a block each, and writes their traces: whether the game is the same game there
// (ofa_tui/doom/gpu_demos.py).
#include "platform/platform.h"

#include "doom/doom.h"
#include "doom/traced_tic.h"

namespace {

using namespace doom;

// A demo, and how far it was played. The games must be zero before the first tic.
struct Demo {
    const WadBlob* wad;
    const TicCommand* commands;  // [tics, MAX_PLAYERS]
    TraceRow* rows;              // [tics]
    TraceLoad* loads;            // [tics + 1]
    TwinGames* games;
    NewGame settings;
    uint32_t tics, done, n_loads;
};

struct BlockMachine {
    ofa::Block& block;

    template <class F>
    OFA_INLINE void alone(F f) {
        if (block.leader()) f();
        block.sync();
    }
    OFA_INLINE void draw(const DrawJob& job) {
        draw_job(block, job);
        block.sync();
    }
};

__device__ __noinline__ void play_tic(BlockMachine& machine, Demo& demo) {
    TwinGames& games = *demo.games;
    machine.alone([&] {
        if (demo.done == 0) start_twins(games, *demo.wad, demo.settings, true);
        if (begin_traced_tic(games, *demo.wad)) demo.loads[demo.n_loads++] = trace_load(games.silent, games.heard);
    });
    run_traced_tic(machine, games, *demo.wad, demo.commands + uint64_t(demo.done) * MAX_PLAYERS, demo.rows[demo.done]);
    machine.alone([&] { ++demo.done; });
}

}  // namespace

// Sizes of the structs that cross the border.
extern "C" __global__ void demo_sizes(uint64_t* sizes) {
    sizes[0] = sizeof(Demo);
    sizes[1] = sizeof(TwinGames);
    sizes[2] = sizeof(TraceRow);
    sizes[3] = sizeof(TraceLoad);
}

// At most `tics` tics of every demo; block i plays demo i.
extern "C" __global__ void __launch_bounds__(ofa::BLOCK_THREADS, 1) play_demos(Demo* demos, uint32_t tics) {
    __shared__ ofa::Block block;
    if (threadIdx.x == 0) block.open(blockIdx.x, nullptr, 0, nullptr, 0);
    __syncthreads();
    Demo& demo = demos[blockIdx.x];
    BlockMachine machine{block};
    for (uint32_t i = 0; i < tics && demo.done < demo.tics; ++i) play_tic(machine, demo);
}
