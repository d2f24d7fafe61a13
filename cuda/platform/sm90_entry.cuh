// The GPU kernel's entry on Hopper: one CTA of three warpgroups per SM, all resident.
#pragma once

#include "tile/epilogue.cuh"
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
            if (is_product(slot.task.opcode)) slot.kind = SLOT_PRODUCT;
        }
        sm90::arrive(&pipeline.slot_full[slots.stage()]);
        if (next == TURN_LEAVE) return;
        wait_for(&pipeline.claim_next, claims.parity());
        claims.advance();
    }
}

// Chunks that the storers send of a task's outputs, and the operand and first column of each.
OFA_INLINE int staged_chunks(uint32_t opcode) {
    return opcode == OPCODE_MATMUL_GELU ? 2 * CHUNKS
           : opcode == OPCODE_MATMUL_RESIDUAL || opcode == OPCODE_MATMUL_DW_ADAMW ? 0 : CHUNKS;
}

OFA_INLINE void store_tasks(Pipeline& pipeline, int consumer) {
    Position<SLOTS> slots;
    Position<BUFFERS> buffers;
    for (;; slots.advance()) {
        const Slot& slot = next_slot(pipeline, slots);
        if (slot.kind == SLOT_LEAVE) return;
        const Task& task = slot.task;
        const int chunks = slot.kind == SLOT_PRODUCT ? staged_chunks(task.opcode) : 0;
        const int outputs = task.opcode == OPCODE_MATMUL_GELU ? 2 : 1;
        const int first = task.opcode == OPCODE_MATMUL_DX_GELU ? 3 : 2;
        for (int chunk = 0; chunk < chunks; ++chunk, buffers.advance()) {
            const uint32_t buffer = buffers.stage();
            wait_for(&pipeline.staged[consumer][buffer], buffers.parity());
            const int column = task.tile[2] + chunk / outputs * CHUNK_COLUMNS;
            sm90::store_2d(tensor_map(slot.ctx, task, first + chunk % outputs, MAP_OUT), column,
                           task.tile[0] + 64 * consumer, pipeline.staging[consumer][buffer]);
            sm90::commit_stores();
            sm90::wait_until_read<0>();
            sm90::arrive(&pipeline.stored[consumer][buffer]);
        }
        if (chunks > 0) {
            sm90::wait_until_stored();
            sm90::fence_proxy_global();
            signal(slot.ctx);
        }
        release_slot(pipeline, slots);
    }
}

OFA_INLINE void multiply_task(Pipeline& pipeline, const Slot& slot, Position<STAGES>& stages,
                              Position<BUFFERS>& buffers) {
    const int consumer = int(threadIdx.x) / WARPGROUP - 1;
    const Task& task = slot.task;
    const Place place(task, consumer);
    float sums[128];
    const uint32_t blocks = (product_depth(slot.ctx, task) + TILE_DEPTH - 1) / TILE_DEPTH;
    if (task.opcode == OPCODE_MATMUL_DW_ADAMW)
        multiply_tile<true, true>(pipeline, consumer, blocks, stages, sums);
    else if (b_by_k(task.opcode))
        multiply_tile<false, true>(pipeline, consumer, blocks, stages, sums);
    else
        multiply_tile<false, false>(pipeline, consumer, blocks, stages, sums);
    switch (task.opcode) {
    case OPCODE_MATMUL_DW_ADAMW:
        update_weight(slot.ctx, task, place, sums);
        break;
    case OPCODE_MATMUL_DX_GELU:
        store_through_gelu(pipeline, slot.ctx, task, consumer, place, buffers, sums);
        break;
    case OPCODE_MATMUL_RESIDUAL:
        store_with_skip(slot.ctx, task, place, sums);
        break;
    case OPCODE_MATMUL_GELU:
        store_gelu(pipeline, consumer, place, buffers, sums);
        break;
    case OPCODE_MATMUL_STATISTICS:
        store_statistics(slot.ctx, task, place, sums);
        [[fallthrough]];
    default:
        store_tile(pipeline, consumer, place, buffers, sums);
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
            Position<STAGES> stages{places.stages};
            Position<BUFFERS> buffers{places.buffers};
            multiply_task(pipeline, slot, stages, buffers);
            places.stages = stages.count;
            places.buffers = buffers.count;
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
        if (threadIdx.x == 64 || threadIdx.x == 96) ofa::store_tasks(pipeline, int(threadIdx.x) / 32 - 2);
        if (threadIdx.x == 32) ofa::claim_tasks(pipeline, launch, turn);
    } else {
        ofa::sm90::take_registers_to<ofa::CONSUMER_REGISTERS>();
        ofa::consume_tasks(pipeline, block);
    }
}
