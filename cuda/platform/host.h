// The CPU: a block is one thread, so a barrier is nothing and the leader is everybody.
#pragma once

#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define OFA_INLINE inline __attribute__((always_inline))     // small helper on a hot path
#define OFA_FUNCTION inline                                  // ordinary function in a header
#define OFA_NOINLINE __attribute__((noinline, unused)) static  // big function, kept out of its caller
#define OFA_OP OFA_NOINLINE                                  // body of a task type
#define OFA_TABLE static constexpr                           // constant array
#define OFA_RESTRICT __restrict__

#if defined(__clang__)
#define OFA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OFA_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace ofa {

constexpr bool HAS_JITTER = true;

class Block {
public:
    Block(uint32_t sm, uint8_t* scratch, uint64_t scratch_bytes)
        : sm_(sm), scratch_(scratch), scratch_bytes_(scratch_bytes) {}

    uint32_t sm() const { return sm_; }
    int thread() const { return 0; }
    int threads() const { return 1; }
    bool leader() const { return true; }
    void sync() {}

    // f(i) for i in [0, n): the calls must be independent of each other. No barrier follows.
    template <class F>
    OFA_INLINE void for_each(int64_t n, F f) {
        OFA_INDEPENDENT
        for (int64_t i = 0; i < n; ++i) f(i);
    }

    // Sum of f(i) over [0, n), the same in every thread; the order of additions depends on n alone.
    template <class F>
    OFA_INLINE auto sum(int64_t n, F f) -> decltype(f(int64_t(0))) {
        return reduce(n, f, decltype(f(int64_t(0)))(0), [](auto& total, const auto& part) { total = total + part; });
    }

    // done(r, sum of term(r, i) over i in [0, n)) for r in [0, rows): `done` runs in one thread per row.
    template <class Term, class Done>
    OFA_INLINE void sum_rows(int64_t rows, int64_t n, Term term, Done done) {
        for (int64_t r = 0; r < rows; ++r) done(r, sum(n, [&](int64_t i) { return term(r, i); }));
    }

    // Largest f(i) over [0, n); `lowest` where n is 0.
    template <class T, class F>
    OFA_INLINE T max(int64_t n, T lowest, F f) {
        return reduce(n, f, lowest, [](auto& most, const auto& other) { most = most < other ? other : most; });
    }

    // The leader's f(), in every thread.
    template <class F>
    OFA_INLINE auto broadcast(F f) -> decltype(f()) {
        return f();
    }

    // Memory of this SM, 64-byte aligned at offset 0, shared by its threads, kept during a task only.
    template <class T>
    OFA_INLINE T* scratch(uint64_t offset_bytes = 0) const {
        return reinterpret_cast<T*>(scratch_ + offset_bytes);
    }
    uint64_t scratch_bytes() const { return scratch_bytes_; }

private:
    static constexpr int LANES = 16;

    // Sixteen partial results, so that the loop is a vector loop and its order is still fixed.
    template <class T, class F, class Combine>
    static OFA_INLINE T reduce(int64_t n, F f, T initial, Combine combine) {
        T lanes[LANES];
        for (int l = 0; l < LANES; ++l) lanes[l] = initial;
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 1  // a loop that is unrolled first does not become one vector operation
            for (int l = 0; l < LANES; ++l) combine(lanes[l], f(i + l));
        for (int l = 0; i < n; ++i, ++l) combine(lanes[l], f(i));
        return fold<LANES>(lanes, combine);
    }

    // The first half of N results with the second half, and so on until one is left. `combine` works in place, so that
    // no vector is an argument: how those are passed differs between processors.
    template <int N, class T, class Combine>
    static OFA_INLINE T fold(const T* results, Combine combine) {
        if constexpr (N == 2) {
            T first = results[0];
            combine(first, results[1]);
            return first;
        }
        if constexpr (N > 2) {
            typedef T Half __attribute__((vector_size(N / 2 * sizeof(T))));
            Half first, second;
            memcpy(&first, results, sizeof first);
            memcpy(&second, results + N / 2, sizeof second);
            combine(first, second);
            T left[N / 2];
            memcpy(left, &first, sizeof left);
            return fold<N / 2>(left, combine);
        }
    }

    uint32_t sm_;
    uint8_t* scratch_;
    uint64_t scratch_bytes_;
};

// --- atomics: T is uint32_t or uint64_t ------------------------------------------------------------------

template <class T>
OFA_INLINE T load_relaxed(const T* p) {
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T>
OFA_INLINE T load_acquire(const T* p) {
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T>
OFA_INLINE T load_seq_cst(const T* p) {
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
template <class T>
OFA_INLINE void store_relaxed(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}
template <class T>
OFA_INLINE void store_release(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
template <class T>
OFA_INLINE void release_to_blocks(T* p, T value) {
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
template <class T>
OFA_INLINE T exchange_seq_cst(T* p, T value) {
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
}
template <class T>
OFA_INLINE T fetch_add_relaxed(T* p, T value) {
    return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}
OFA_INLINE void add_relaxed(uint64_t* p, uint64_t value) { __atomic_fetch_add(p, value, __ATOMIC_RELAXED); }
template <class T>
OFA_INLINE void add_release(T* p, T value) {
    __atomic_fetch_add(p, value, __ATOMIC_RELEASE);
}
template <class T>
OFA_INLINE T fetch_add_acq_rel(T* p, T value) {
    return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}
// True when *p was `expected` and is now `desired`.
template <class T>
OFA_INLINE bool compare_exchange(T* p, T expected, T desired) {
    return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

// --- time ------------------------------------------------------------------------------------------------

OFA_INLINE uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

OFA_INLINE void sleep_ns(uint64_t ns) {
    const timespec t = {time_t(ns / 1000000000u), long(ns % 1000000000u)};
    nanosleep(&t, nullptr);
}

// One pause of a polling loop, longer the longer it has waited. The core may be shared with a thread that has work: after
// about a microsecond that one goes first, and after some thirty this one sleeps. Shorter waits, such as those between
// the tasks of a token, end at once; one of a millisecond ends at most 60 microseconds late, one of 100 milliseconds half
// a millisecond.
OFA_INLINE void back_off(uint32_t attempt) {
    constexpr uint32_t SPINS = 64, YIELDS = 128;
    constexpr uint64_t LONGEST_NS = 1000000;
    if (attempt < SPINS) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return;
    }
    if (attempt < SPINS + YIELDS) {
        sched_yield();
        return;
    }
    const uint64_t ns = 10000 + uint64_t(attempt - SPINS - YIELDS) * 1500;
    sleep_ns(ns < LONGEST_NS ? ns : LONGEST_NS);
}

}  // namespace ofa
