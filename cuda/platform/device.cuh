// An NVIDIA GPU: a block is the threads of a CTA that run bodies, one CTA per SM. On Hopper they are its last two
// warpgroups (platform/sm90_entry.cuh), in the other kernels all (platform/device_entry.cuh, platform/sm80_entry.cuh).
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OFA_INLINE __device__ __forceinline__
// A call, not a copy: the game alone has thousands of call sites, which inlined would take the assembler minutes.
#define OFA_FUNCTION __device__ __noinline__
#define OFA_NOINLINE __device__ __noinline__
#define OFA_OP __device__ __noinline__
#define OFA_TABLE static __device__ constexpr
#define OFA_RESTRICT __restrict__
#define OFA_INDEPENDENT

namespace ofa {

constexpr int BLOCK_THREADS = 256;
#if defined(OFA_SM90)
constexpr int FIRST_THREAD = 128;
#else
constexpr int FIRST_THREAD = 0;
#endif
// Random delays are for tests on virtual SMs: the word that asks for them would be read from memory at every signal.
constexpr bool HAS_JITTER = false;

// The thread's number, read anew wherever it is asked for: what is derived from it is then not kept in registers through a
// loop that calls bodies.
OFA_INLINE int fresh_thread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

// One object per CTA, in its shared memory.
class Block {
public:
    // By one thread, before a barrier. `scratch` holds `scratch_bytes` for every SM.
    __device__ void open(uint32_t sm, uint8_t* near, uint32_t near_bytes, uint8_t* scratch, uint64_t scratch_bytes) {
        sm_ = sm;
        near_ = near;
        near_bytes_ = near_bytes;
        scratch_ = scratch + sm * scratch_bytes;
        scratch_bytes_ = scratch_bytes;
        memo_key_ = 0;
    }

    __device__ uint32_t sm() const { return sm_; }
    __device__ int thread() const { return int(threadIdx.x) - FIRST_THREAD; }
    __device__ int threads() const { return BLOCK_THREADS; }
    __device__ bool leader() const { return fresh_thread() == FIRST_THREAD; }
    __device__ void sync() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

    template <class F>
    OFA_INLINE void for_each(int64_t n, F f) {
        for (int64_t i = thread(); i < n; i += BLOCK_THREADS) f(i);
    }

    template <class F>
    OFA_INLINE auto sum(int64_t n, F f) -> decltype(f(int64_t(0))) {
        return reduce(n, f, decltype(f(int64_t(0)))(0), [](auto a, auto b) { return a + b; });
    }

    // A warp per row.
    template <class Term, class Done>
    OFA_INLINE void sum_rows(int64_t rows, int64_t n, Term term, Done done) {
        const int lane = threadIdx.x % 32;
        for (int64_t r = thread() / 32; r < rows; r += BLOCK_THREADS / 32) {
            decltype(term(r, int64_t(0))) value = 0;
            for (int64_t i = lane; i < n; i += 32) value += term(r, i);
            for (int distance = 16; distance > 0; distance /= 2)
                value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
            if (lane == 0) done(r, value);
        }
    }

    template <class T, class F>
    OFA_INLINE T max(int64_t n, T lowest, F f) {
        return reduce(n, f, lowest, [](T a, T b) { return a < b ? b : a; });
    }

    template <class F>
    OFA_INLINE auto broadcast(F f) -> decltype(f()) {
        using T = decltype(f());
        static_assert(sizeof(T) <= sizeof(uint64_t));
        if (leader()) {
            const T value = f();
            memcpy(&value_, &value, sizeof(T));
        }
        sync();
        T value;
        memcpy(&value, &value_, sizeof(T));
        sync();
        return value;
    }

    template <class T>
    OFA_INLINE T* scratch(uint64_t offset_bytes = 0) const {
        return reinterpret_cast<T*>(scratch_ + offset_bytes);
    }
    __device__ uint64_t scratch_bytes() const { return scratch_bytes_; }

    // Shared memory, kept during a task only, 1024-byte aligned at offset 0.
    template <class T>
    OFA_INLINE T* near(uint32_t offset_bytes = 0) const {
        return reinterpret_cast<T*>(near_ + offset_bytes);
    }
    __device__ uint32_t near_bytes() const { return near_bytes_; }

    // One value that lasts from task to task, and a number other than 0 that says which; kept by one thread between
    // barriers.
    __device__ uint64_t memo_key() const { return memo_key_; }
    template <class T>
    OFA_INLINE void keep(uint64_t key, const T& value) {
        static_assert(sizeof(T) <= sizeof memo_);
        memcpy(memo_, &value, sizeof(T));
        memo_key_ = key;
    }
    template <class T>
    OFA_INLINE const T& kept() const {
        return *reinterpret_cast<const T*>(memo_);
    }

private:
    // Strided partial results per thread, a butterfly within each warp, then the warps in order.
    template <class T, class F, class Combine>
    OFA_INLINE T reduce(int64_t n, F f, T initial, Combine combine) {
        static_assert(sizeof(T) <= sizeof(uint64_t));
        T value = initial;
        for (int64_t i = thread(); i < n; i += BLOCK_THREADS) value = combine(value, f(i));
        for (int distance = 16; distance > 0; distance /= 2)
            value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
        if (threadIdx.x % 32 == 0) memcpy(&partial_[thread() / 32], &value, sizeof(T));
        sync();
        T total = initial;
        for (int warp = 0; warp < BLOCK_THREADS / 32; ++warp) {
            T part;
            memcpy(&part, &partial_[warp], sizeof(T));
            total = combine(total, part);
        }
        sync();
        return total;
    }

    uint32_t sm_, near_bytes_;
    uint8_t* near_;
    uint8_t* scratch_;
    uint64_t scratch_bytes_;
    // What the threads exchange.
    uint64_t value_;
    uint64_t partial_[BLOCK_THREADS / 32];
    uint64_t memo_key_, memo_[8];
};

// --- atomics: T is uint32_t or uint64_t. The host is the other side of some of them, but only through copies to and
// --- from device memory, which meet the blocks in the second-level cache: device scope reaches both. What is published
// --- for the host is released to the whole system.

template <class T>
OFA_INLINE T load_relaxed(const T* p) {
    return __nv_atomic_load_n(const_cast<T*>(p), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE T load_acquire(const T* p) {
    return __nv_atomic_load_n(const_cast<T*>(p), __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE T load_seq_cst(const T* p) {
    return __nv_atomic_load_n(const_cast<T*>(p), __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE void store_relaxed(T* p, T value) {
    __nv_atomic_store_n(p, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE void store_release(T* p, T value) {
    __nv_atomic_store_n(p, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
}
// What nobody but blocks waits for.
template <class T>
OFA_INLINE void release_to_blocks(T* p, T value) {
    __nv_atomic_store_n(p, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE T exchange_seq_cst(T* p, T value) {
    return __nv_atomic_exchange_n(p, value, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE T fetch_add_relaxed(T* p, T value) {
    return __nv_atomic_fetch_add(p, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}
// Nobody waits for the memory's answer, as for that of an atomic whose result is looked at.
OFA_INLINE void add_relaxed(uint64_t* p, uint64_t value) {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "l"(value) : "memory");
}
// After a block barrier one thread's release covers the writes of the whole block (causality is cumulative).
OFA_INLINE void add_release(uint64_t* p, uint64_t value) {
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" : : "l"(__cvta_generic_to_global(p)), "l"(value) : "memory");
}
template <class T>
OFA_INLINE T fetch_add_acq_rel(T* p, T value) {
    return __nv_atomic_fetch_add(p, value, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
}
template <class T>
OFA_INLINE bool compare_exchange(T* p, T expected, T desired) {
    return __nv_atomic_compare_exchange_n(p, &expected, desired, false, __NV_ATOMIC_ACQ_REL,
                                          __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// --- time ------------------------------------------------------------------------------------------------

OFA_INLINE uint64_t now_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

// __nanosleep takes at most a millisecond.
OFA_INLINE void sleep_ns(uint64_t ns) {
    const uint64_t end = now_ns() + ns;
    while (now_ns() < end) __nanosleep(ns < 1000000 ? uint32_t(ns) : 1000000u);
}

OFA_INLINE void back_off(uint32_t attempt) {
    if (attempt >= 32) __nanosleep(attempt < 256 ? 32 : 256);
}

}  // namespace ofa
