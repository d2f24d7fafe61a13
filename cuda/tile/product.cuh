// The products of a training step on Hopper: what the loader, the consumers and the storers do for one task.
#pragma once

#include "ops/matmul.h"
#include "tile/pipeline.cuh"

namespace ofa {

// How a view is moved by the copy engine: which of its tensor maps. Launch.tensor_maps has, for every view that is a
// factor or a staged output of a product, MAP_USES x copies maps of 128 bytes from Operand.tensor_map on: use by use, in
// each use copy by copy. The engine makes them of a matrix [rows, cols] with `pitch` elements a row:
//
//   use           dimensions, inner first      strides, bytes     box              moves
//   MAP_A         cols, rows                   2 pitch            64 x 128         128 rows of a factor, 64 of k
//   MAP_B         cols, rows                   2 pitch            64 x 256         256 rows of a factor, 64 of k
//   MAP_A_BY_K    64, rows, ceil(cols / 64)    2 pitch, 128       64 x 64 x 2      64 of k, 128 columns of a factor
//   MAP_B_BY_K    64, rows, ceil(cols / 64)    2 pitch, 128       64 x 64 x 4      64 of k, 256 columns of a factor
//   MAP_OUT       cols, rows                   2 pitch            64 x 64          a staged chunk of an output
//   MAP_LINES     cols, rows                   4 pitch            32 x 64          lines of f4 (tile/lines.cuh)
//
// All: bf16, but for lines; element strides 1, no interleave, 128-byte swizzle, 128-byte promotion to the second-level cache, zeros
// outside. Base 16-byte aligned, pitch a multiple of 8.
constexpr uint32_t MAP_A = 0, MAP_B = 1, MAP_A_BY_K = 2, MAP_B_BY_K = 3, MAP_OUT = 4, MAP_LINES = 5, MAP_USES = 6;

OFA_INLINE const sm90::TensorMap* tensor_map(const Slot& slot, int operand, uint32_t use) {
    return slot.operands[operand].maps + use * slot.operands[operand].map_copies;
}

OFA_INLINE bool is_product(uint32_t opcode) {
    switch (opcode) {
    case OPCODE_MATMUL:
    case OPCODE_MATMUL_RESIDUAL:
    case OPCODE_MATMUL_GELU:
    case OPCODE_MATMUL_STATISTICS:
    case OPCODE_MATMUL_DX:
    case OPCODE_MATMUL_DX_GELU:
    case OPCODE_MATMUL_DW_ADAMW:
        return true;
    default:
        return false;
    }
}

// y = x w^T: both K-major. dx = dy w: w by k. dw = dy^T x: both by k.
OFA_INLINE bool a_by_k(uint32_t opcode) { return opcode == OPCODE_MATMUL_DW_ADAMW; }
OFA_INLINE bool b_by_k(uint32_t opcode) {
    return opcode == OPCODE_MATMUL_DX || opcode == OPCODE_MATMUL_DX_GELU || opcode == OPCODE_MATMUL_DW_ADAMW;
}

// By the warp that claims, a lane an operand.
OFA_INLINE void find_operands(Slot& slot) {
    const uint32_t lane = threadIdx.x % 32;
    if (lane >= MAX_OPERANDS || slot.task.operands[lane] == NONE_U16) return;
    const Operand& o = slot.ctx.launch->operands[slot.task.operands[lane]];
    const uint64_t copy = slot.ctx.copy_of(o);
    const auto* const maps = reinterpret_cast<const sm90::TensorMap*>(slot.ctx.launch->tensor_maps);
    slot.operands[lane] = {reinterpret_cast<uint8_t*>(o.base + copy * o.copy_bytes),
                           o.tensor_map == NONE_U32 ? nullptr : maps + o.tensor_map + copy, o.copies, o.pitch, o.rows, o.cols};
    if (lane == 0) slot.depth = a_by_k(slot.task.opcode) ? o.rows : o.cols;
}

// The next task is claimed so many stages before the last one of a product is loaded: its waits take as long.
constexpr int32_t CLAIMED_BEFORE = 5;
OFA_INLINE bool is_time_to_claim(int32_t stage, int32_t stages) {
    return stage == (stages > CLAIMED_BEFORE ? stages - CLAIMED_BEFORE : 0);
}

// What is moved through the ring behind the factors: lines of f4, or inputs of an epilogue.
OFA_INLINE bool has_tail(uint32_t opcode) {
    return opcode == OPCODE_MATMUL_DW_ADAMW || opcode == OPCODE_MATMUL_RESIDUAL || opcode == OPCODE_MATMUL_DX_GELU;
}

// One thread.
OFA_INLINE void load_product(Pipeline& pipeline, const Slot& slot, Position<STAGES>& at) {
    const Task& task = slot.task;
    const bool a_mn = a_by_k(task.opcode), b_mn = b_by_k(task.opcode);
    const sm90::TensorMap* a = tensor_map(slot, 0, a_mn ? MAP_A_BY_K : MAP_A);
    const sm90::TensorMap* b = tensor_map(slot, 1, b_mn ? MAP_B_BY_K : MAP_B);
    sm90::prefetch(a);
    sm90::prefetch(b);
    const int32_t row0 = task.tile[0], col0 = task.tile[2];
    const int32_t depth = int32_t(slot.depth), blocks = (depth + TILE_DEPTH - 1) / TILE_DEPTH;
    if (task.flags & FENCE_BEFORE) sm90::fence_proxy_global();
    for (int32_t k = 0; k < depth; k += TILE_DEPTH, at.advance()) {
        const uint32_t stage = at.stage();
        wait_for(&pipeline.empty[stage], at.parity() ^ 1);
        if (!has_tail(task.opcode) && is_time_to_claim(k / TILE_DEPTH, blocks)) sm90::arrive(&pipeline.claim_next);
        sm90::Barrier* full = &pipeline.full[stage];
        sm90::arrive_expecting(full, A_BYTES + B_BYTES);
        if (a_mn)
            sm90::load_3d(pipeline.a[stage], a, 0, k, row0 / 64, full);
        else
            sm90::load_2d(pipeline.a[stage], a, k, row0, full);
        if (b_mn)
            sm90::load_3d(pipeline.b[stage], b, 0, k, col0 / 64, full);
        else
            sm90::load_2d(pipeline.b[stage], b, k, col0, full);
    }
}

// A consumer's 64 rows. A stage is given back one block of k late, when its products are known to be finished.
template <bool A_MN, bool B_MN>
OFA_INLINE void multiply_tile(Pipeline& pipeline, int consumer, bool lane0, uint32_t blocks,
                              Position<STAGES>& at, float (&sums)[128]) {
    for (uint32_t block = 0; block < blocks; ++block, at.advance()) {
        const uint32_t stage = at.stage();
        wait_for(&pipeline.full[stage], at.parity());
        const uint64_t a = sm90::descriptor(pipeline.a[stage] + consumer * (A_BYTES / CONSUMERS));
        const uint64_t b = sm90::descriptor(pipeline.b[stage]);
        sm90::begin_multiply();
#pragma unroll
        for (int step = 0; step < TILE_DEPTH / 16; ++step)
            sm90::multiply<A_MN, B_MN>(sums, a + step * sm90::K_STEP<A_MN>, b + step * sm90::K_STEP<B_MN>);
        sm90::commit_multiply();
        if (block > 0) {
            sm90::wait_multiply<1>();
            if (lane0) sm90::arrive(&pipeline.empty[(at.count - 1) % STAGES]);
        }
    }
    sm90::wait_multiply<0>();
    if (lane0) sm90::arrive(&pipeline.empty[(at.count - 1) % STAGES]);
}

}  // namespace ofa
