// What benchmarks run beside the peers: blocks that read memory at a given rate, as serving SMs read weights, blocks that
// hold SMs, blocks that read as fast as bulk copies go, and a kernel that says on which SMs a stream's blocks run.
#include <stdint.h>

#include "platform/platform.h"
#include "tile/sm90.cuh"

namespace sm90 = ofa::sm90;
using ofa::now_ns;

constexpr int THREADS = 1024, IN_FLIGHT = 8;
constexpr uint64_t CHUNK = uint64_t(THREADS) * IN_FLIGHT * sizeof(uint4);
constexpr uint32_t COPY_BYTES = 32 << 10, RING = 6;
constexpr uint64_t PATIENCE_NS = 1000000000;

// Each block goes round its share of `memory` ([bytes], a multiple of CHUNK a block), a chunk every `interval_ns` at most,
// until *stop is not 0. chunks[block]: how many it has read.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
stream_memory(const uint4* memory, uint64_t bytes, uint64_t interval_ns, const volatile uint32_t* stop, uint64_t* chunks,
              uint4* sink) {
    __shared__ uint32_t stopped;
    const uint64_t share = bytes / gridDim.x / CHUNK;  // chunks
    const uint4* const first = memory + blockIdx.x * share * (CHUNK / sizeof(uint4));
    const uint64_t began_ns = now_ns();
    uint4 sum = {0, 0, 0, 0};
    for (uint64_t n = 0;; ++n) {
        if (threadIdx.x == 0) {
            while (now_ns() < began_ns + n * interval_ns) __nanosleep(32);
            chunks[blockIdx.x] = n;
            stopped = *stop;
        }
        __syncthreads();
        if (stopped != 0) break;
        const uint4* const from = first + n % share * (CHUNK / sizeof(uint4)) + threadIdx.x;
        uint4 got[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i)
            asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(got[i].x), "=r"(got[i].y), "=r"(got[i].z), "=r"(got[i].w)
                         : "l"(from + i * THREADS));
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i) {
            sum.x ^= got[i].x;
            sum.y ^= got[i].y;
            sum.z ^= got[i].z;
            sum.w ^= got[i].w;
        }
        __syncthreads();
    }
    if (sum.x == 1 && sum.y == 2 && sum.z == 3 && sum.w == 4) *sink = sum;  // else the loads would be dropped
}

// Stays until *stop is not 0. seen[sm] = 1 for every SM that is held: launched with all shared memory that a block can
// have, it leaves none for another block, which would need a little even if it asked for none.
extern "C" __global__ void hold_sms(const volatile uint32_t* stop, uint32_t* seen) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x != 0) return;
    *static_cast<volatile uint32_t*>(seen + sm) = 1;
    while (*stop == 0) __nanosleep(500);
}

// Blocks `first` to `first` + `count` - 1 read `memory` ([bytes], a multiple of COPY_BYTES for each) `passes` times over,
// each its own share of it, by one thread and a ring of bulk copies; the others only keep their SMs until all blocks are
// there. *there has to be 0 before. took_ns[block]: how long its copies took; not written where a block never came.
// sms[block]: where it was.
extern "C" __global__ void copy_memory(const uint8_t* memory, uint64_t bytes, uint32_t first, uint32_t count,
                                       uint32_t passes, uint32_t* there, uint64_t* took_ns, uint32_t* sms) {
    extern __shared__ __align__(128) uint8_t ring[];  // RING x COPY_BYTES, then a barrier for each slot
    if (threadIdx.x != 0) return;
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    sms[blockIdx.x] = sm;
    sm90::Barrier* const full = reinterpret_cast<sm90::Barrier*>(ring + RING * COPY_BYTES);
    for (uint32_t slot = 0; slot < RING; ++slot) sm90::open_barrier(&full[slot], 1);
    sm90::barriers_are_open();
    atomicAdd(there, 1u);
    const uint64_t give_up_ns = now_ns() + PATIENCE_NS;
    while (*static_cast<volatile uint32_t*>(there) < gridDim.x)
        if (now_ns() > give_up_ns) return;
    if (blockIdx.x < first || blockIdx.x >= first + count) return;
    const uint32_t share = uint32_t(bytes / count / COPY_BYTES), copies = share * passes;
    const uint8_t* const from = memory + uint64_t(blockIdx.x - first) * share * COPY_BYTES;
    const uint64_t began_ns = now_ns();
    uint32_t at = 0, slot = 0, parity = 0;  // no division: a copy every 360 clocks is what an SM can do
    for (uint32_t n = 0; n < copies + RING; ++n) {
        if (n >= RING)
            while (!sm90::has_passed(&full[slot], parity ^ 1)) {}
        if (n < copies) {
            sm90::arrive_expecting(&full[slot], COPY_BYTES);
            sm90::load_bulk(ring + slot * COPY_BYTES, from + uint64_t(at) * COPY_BYTES, COPY_BYTES, &full[slot]);
            at = at + 1 == share ? 0 : at + 1;
        }
        if (++slot == RING) {
            slot = 0;
            parity ^= 1;
        }
    }
    took_ns[blockIdx.x] = now_ns() - began_ns;
}

// seen[sm] = 1 for every SM that runs a block. Each block stays for a while, so that they spread out.
extern "C" __global__ void mark_sms(uint32_t* seen) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) seen[sm] = 1;
    const uint64_t end_ns = now_ns() + 200000;
    while (now_ns() < end_ns) __nanosleep(1000);
}
