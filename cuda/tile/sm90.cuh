// Hopper's copy engine, barriers and matrix instructions, as far as the tiles of a product need them.
//
// Operand tiles lie in shared memory with the 128-byte swizzle, each aligned to 1,024 bytes, in either order:
//   K-major    rows of 64 values of k
//   MN-major   groups of 64 rows (or columns) of the product; in a group, one line of 64 for each value of k
// Encodings: PTX ISA, sections on wgmma matrix descriptors and on tensor maps.
#pragma once

#include <stdint.h>

#include "tile/shared.cuh"

namespace ofa::sm90 {

// --- shared-memory barriers --------------------------------------------------------------------------------------

using Barrier = uint64_t;

OFA_INLINE void open_barrier(Barrier* barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
// Makes barriers that one thread opened visible to the copy engine; a block barrier must follow.
OFA_INLINE void barriers_are_open() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

OFA_INLINE void arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
OFA_INLINE void arrive(Barrier* barrier, uint32_t times) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(times) : "memory");
}
OFA_INLINE void arrive_expecting(Barrier* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
OFA_INLINE bool has_passed(Barrier* barrier, uint32_t parity) {
    uint32_t passed;
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(passed)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return passed != 0;
}

// The same, without waiting for a while where it has not passed.
OFA_INLINE bool has_passed_already(Barrier* barrier, uint32_t parity) {
    uint32_t passed;
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(passed)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return passed != 0;
}

// Subtracts 1 from a word in shared memory; what other threads did before they subtracted is seen afterwards.
OFA_INLINE uint32_t subtract_one(uint32_t* word) {
    uint32_t before;
    asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(shared_address(word)),
                 "r"(0xFFFFFFFFu) : "memory");
    return before;
}

// --- proxies -----------------------------------------------------------------------------------------------------

OFA_INLINE void fence_proxy_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
OFA_INLINE void fence_proxy_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// --- copies ------------------------------------------------------------------------------------------------------

struct alignas(64) TensorMap {
    uint64_t words[16];
};

OFA_INLINE void prefetch_line(const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }
OFA_INLINE void prefetch(const TensorMap* map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
OFA_INLINE void load_2d(void* to, const TensorMap* map, int32_t x, int32_t y, Barrier* full) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(to)),
        "l"(map), "r"(x), "r"(y), "r"(shared_address(full))
        : "memory");
}
OFA_INLINE void load_3d(void* to, const TensorMap* map, int32_t x, int32_t y, int32_t z, Barrier* full) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
            "r"(shared_address(to)),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(full))
        : "memory");
}
OFA_INLINE void store_2d(const TensorMap* map, int32_t x, int32_t y, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
                 "r"(y), "r"(shared_address(from))
                 : "memory");
}
// Both 16-byte aligned, a multiple of 16 bytes.
OFA_INLINE void load_bulk(void* to, const void* from, uint32_t bytes, Barrier* full) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(full))
        : "memory");
}
OFA_INLINE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// At most `left` groups of stores still read shared memory.
template <int left>
OFA_INLINE void wait_until_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}
OFA_INLINE void wait_until_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// --- matrix instructions -----------------------------------------------------------------------------------------

// Where an operand tile starts, all that differs between tiles: the lower word of a descriptor. The leading offset matters
// only for a 256-wide MN-major operand.
OFA_INLINE uint32_t tile_place(const void* tile) {
    constexpr uint32_t LEADING = uint32_t(8192 >> 4) << 16;
    return LEADING | ((shared_address(tile) & 0x3FFFF) >> 4);
}
OFA_INLINE uint64_t descriptor(uint32_t place) {
    constexpr uint64_t SWIZZLE_128 = 1ull << 62, STRIDE = uint64_t(1024 >> 4) << 32;
    return SWIZZLE_128 | STRIDE | place;
}
OFA_INLINE uint64_t descriptor(const void* tile) { return descriptor(tile_place(tile)); }

// One step of 16 values of k further on, in units of the descriptor.
template <bool mn_major>
constexpr uint32_t K_STEP = mn_major ? 2048 >> 4 : 32 >> 4;

OFA_INLINE void begin_multiply() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
OFA_INLINE void commit_multiply() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left>
OFA_INLINE void wait_multiply() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

// sums += a b for 64 rows of a and 256 columns of b. Thread t of the warpgroup holds
// rows 16 (t / 32) + t mod 32 / 4 (+ 8) and columns 8 j + 2 (t mod 4) + {0, 1}: sums[4 j + 2 (row half) + {0, 1}].
#define OFA_F8(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
                  "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define OFA_F32(i) OFA_F8(i), OFA_F8(i + 8), OFA_F8(i + 16), OFA_F8(i + 24)
template <bool a_mn_major, bool b_mn_major>
OFA_INLINE void multiply(float (&sums)[128], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, 1, 1, 1, %130, %131;\n"
        : OFA_F32(0), OFA_F32(32), OFA_F32(64), OFA_F32(96)
        : "l"(a), "l"(b), "n"(int(a_mn_major)), "n"(int(b_mn_major)));
}

// The same for 64 columns of b. The first product of a sum overwrites it.
#define OFA_SUMS_64                                                                                          \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "    \
    "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
// a in registers: word w of thread t is row 16 (t / 32) + t mod 32 / 4 + 8 (w mod 2), columns 2 (t mod 4) + 8 (w / 2) + {0, 1}
// of k.
template <bool b_mn_major>
OFA_INLINE void multiply_64(float (&sums)[32], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(OFA_SUMS_64 "{%32, %33, %34, %35}, %36, 1, 1, 1, %37;\n"
                 : OFA_F32(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(b_mn_major)));
}
// Both K-major.
OFA_INLINE void multiply_64(float (&sums)[32], uint64_t a, uint64_t b) {
    asm volatile(OFA_SUMS_64 "%32, %33, 1, 1, 1, 0, 0;\n" : OFA_F32(0) : "l"(a), "l"(b));
}
#undef OFA_F8
#define OFA_F8(i) "=f"(sums[i]), "=f"(sums[i + 1]), "=f"(sums[i + 2]), "=f"(sums[i + 3]), "=f"(sums[i + 4]), \
                  "=f"(sums[i + 5]), "=f"(sums[i + 6]), "=f"(sums[i + 7])
template <bool b_mn_major>
OFA_INLINE void multiply_64_first(float (&sums)[32], const uint32_t (&a)[4], uint64_t b) {
    asm volatile(OFA_SUMS_64 "{%32, %33, %34, %35}, %36, 0, 1, 1, %37;\n"
                 : OFA_F32(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(b_mn_major)));
}
OFA_INLINE void multiply_64_first(float (&sums)[32], uint64_t a, uint64_t b) {
    asm volatile(OFA_SUMS_64 "%32, %33, 0, 1, 1, 0, 0;\n" : OFA_F32(0) : "l"(a), "l"(b));
}
#undef OFA_SUMS_64
#undef OFA_F32
#undef OFA_F8

// --- registers ---------------------------------------------------------------------------------------------------

template <int n>
OFA_INLINE void give_up_registers_to() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}
template <int n>
OFA_INLINE void take_registers_to() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n));
}

}  // namespace ofa::sm90
