// What bench_train.py runs beside the peers: blocks that read memory at a given rate, as serving SMs read weights, and a
// kernel that says on which SMs a stream's blocks run.
#include <stdint.h>

constexpr int THREADS = 1024, IN_FLIGHT = 8;
constexpr uint64_t CHUNK = uint64_t(THREADS) * IN_FLIGHT * sizeof(uint4);

static __device__ uint64_t now_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

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

// seen[sm] = 1 for every SM that runs a block. Each block stays for a while, so that they spread out.
extern "C" __global__ void mark_sms(uint32_t* seen) {
    uint32_t sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    if (threadIdx.x == 0) seen[sm] = 1;
    const uint64_t end_ns = now_ns() + 200000;
    while (now_ns() < end_ns) __nanosleep(1000);
}
