// The GPU kernel's entry on Hopper: one CTA of three warpgroups per SM, all resident.
#pragma once

#include "tile/pipeline.cuh"
#include "tile/product.cuh"

namespace ofa {

constexpr int PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224;

// A lane of every warp but the consumers' first: who is done with a slot says so.
OFA_INLINE void release_slot(Pipeline& pipeline, const Position<SLOTS>& at) {
    sm90::arrive(&pipeline.slot_empty[at.stage()]);
}

OFA_INLINE Slot& next_slot(Pipeline& pipeline, const Position<SLOTS>& at) {
    wait_for(&pipeline.slot_full[at.stage()], at.parity());
    return pipeline.slots[at.stage()];
}

OFA_INLINE void load_tasks(Pipeline& pipeline) {
    Position<SLOTS> slots;
    Position<STAGES> stages;
    for (;; slots.advance()) {
        const Slot& slot = next_slot(pipeline, slots);
        if (slot.kind == SLOT_LEAVE) return;
        if (slot.kind == SLOT_PRODUCT) load_product(pipeline, slot, stages);
        release_slot(pipeline, slots);
    }
}

OFA_INLINE void claim_tasks(Pipeline& pipeline, const Launch& launch, Turn& turn) {
    Position<SLOTS> slots;
    Position<1> claims;
    enter(turn, launch, blockIdx.x);
    for (;; slots.advance()) {
        wait_for(&pipeline.slot_empty[slots.stage()], slots.parity() ^ 1);
        Slot& slot = pipeline.slots[slots.stage()];
        uint32_t next;
        do next = take_turn(turn);
        while (next == TURN_PASS);
        slot.ctx = turn.ctx;
        slot.kind = next == TURN_LEAVE ? SLOT_LEAVE : SLOT_BODY;
        if (next == TURN_RUN) {
            slot.task = *turn.ctx.task;
            if (slot.task.opcode == OPCODE_MATMUL || slot.task.opcode == OPCODE_MATMUL_DX ||
                slot.task.opcode == OPCODE_MATMUL_DW_ADAMW)
                slot.kind = SLOT_PRODUCT;
        }
        sm90::arrive(&pipeline.slot_full[slots.stage()]);
        if (next == TURN_LEAVE) return;
        wait_for(&pipeline.claim_next, claims.parity());
        claims.advance();
    }
}

OFA_INLINE void store_sums(const TaskContext& ctx, const Task& task, int consumer, const float (&sums)[128]) {
    const Operand& o = ctx.launch->operands[task.operands[2]];
    float* const out = reinterpret_cast<float*>(o.base);
    const int thread = threadIdx.x % WARPGROUP;
    const int row = task.tile[0] + consumer * 64 + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int j = 0; j < 32; ++j) {
        const int column = task.tile[2] + 8 * j + 2 * (thread % 4);
        *reinterpret_cast<float2*>(out + int64_t(row) * o.pitch + column) = make_float2(sums[4 * j], sums[4 * j + 1]);
        *reinterpret_cast<float2*>(out + int64_t(row + 8) * o.pitch + column) =
            make_float2(sums[4 * j + 2], sums[4 * j + 3]);
    }
}

OFA_INLINE void finish(Pipeline& pipeline, Block& block) {
    volatile Places& places = pipeline.places[threadIdx.x / 32];
    Position<SLOTS> slots{places.slots};
    Slot& slot = pipeline.slots[slots.stage()];
    if (block.leader()) {
        if (slot.kind == SLOT_BODY) sm90::arrive(&pipeline.claim_next);
        signal(slot.ctx);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        places.slots = slots.count + 1;
        release_slot(pipeline, slots);
    }
    __syncwarp();
}

// A consumer's places in the rings lie in shared memory between two tasks: what stays in registers across the call of a
// body would be spilled, for the sums fill them.
OFA_INLINE void consume_tasks(Pipeline& pipeline, Block& block) {
    for (;;) {
        volatile Places& places = pipeline.places[threadIdx.x / 32];
        Position<SLOTS> slots{places.slots};
        Slot& slot = next_slot(pipeline, slots);
        if (slot.kind == SLOT_LEAVE) return;
        if (slot.kind == SLOT_PRODUCT) {
            const int consumer = int(threadIdx.x) / WARPGROUP - 1;
            Position<STAGES> stages{places.stages};
            float sums[128];
            const uint32_t blocks = (product_depth(slot.ctx, slot.task) + TILE_DEPTH - 1) / TILE_DEPTH;
            if (slot.task.opcode == OPCODE_MATMUL)
                multiply_tile<false, false>(pipeline, consumer, blocks, stages, sums);
            else if (slot.task.opcode == OPCODE_MATMUL_DX)
                multiply_tile<false, true>(pipeline, consumer, blocks, stages, sums);
            else
                multiply_tile<true, true>(pipeline, consumer, blocks, stages, sums);
            store_sums(slot.ctx, slot.task, consumer, sums);
            places.stages = stages.count;
        } else {
            run_body(block, slot.ctx);
        }
        block.sync();
        finish(pipeline, block);
    }
}

}  // namespace ofa

extern "C" __global__ void __launch_bounds__(384, 1) megakernel(const __grid_constant__ ofa::Launch launch) {
    extern __shared__ uint8_t shared[];
    __shared__ ofa::Block block;
    __shared__ ofa::Turn turn;
    ofa::Pipeline& pipeline = *reinterpret_cast<ofa::Pipeline*>(shared);
    if (threadIdx.x == 0) {
        pipeline.open();
        block.open(blockIdx.x, launch.scratch, launch.scratch_bytes);
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        ofa::sm90::give_up_registers_to<ofa::PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) ofa::load_tasks(pipeline);
        if (threadIdx.x == 32) ofa::claim_tasks(pipeline, launch, turn);
    } else {
        ofa::sm90::take_registers_to<ofa::CONSUMER_REGISTERS>();
        ofa::consume_tasks(pipeline, block);
    }
}
