// The GPU kernel's entry on Hopper: one CTA of three warpgroups per SM, all resident.
#pragma once

#include "ops/sm90/pass.cuh"
#include "tile/attention.cuh"
#include "tile/pipeline.cuh"
#include "tile/product.cuh"
#include "tile/staging.cuh"
#include "tile/token.cuh"
#include "tile/residual.cuh"
#include "tile/update.cuh"

// What the consumers take a product for. A probe is compiled for one kind of product alone, so that the assembler's report
// names the one at fault (scripts/compile_gpu.py).
#if defined(OFA_ONLY_PRODUCT)
#define OFA_CONSUMED(task) OFA_ONLY_PRODUCT
#else
#define OFA_CONSUMED(task) task.opcode
#endif

namespace ofa {

OFA_INLINE uint64_t least_shared_bytes(const Model& /*model*/) { return SHARED_BYTES; }

constexpr int PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224;

// Short bodies: the next task is claimed when they begin, so that its waits are over when they end. Of those that open or
// close an iteration only a token's, whose blocks are known before.
OFA_INLINE bool claims_early(uint32_t opcode) {
    switch (opcode) {
    case OPCODE_EMBED:
    case OPCODE_NORM:
    case OPCODE_NORM_BACKWARD:
    case OPCODE_CROSS_ENTROPY_STATISTICS:
    case OPCODE_CROSS_ENTROPY_LOSS_STATISTICS:
    case OPCODE_ADAMW_GAIN:
    case OPCODE_STREAM_BEGIN:
    case OPCODE_SAMPLE_ROW:
    case OPCODE_SAMPLE:
        return true;
    default:
        return false;
    }
}

OFA_INLINE bool claims_early(const Slot& slot) {
    return slot.kind == SLOT_TOKEN || (slot.kind == SLOT_BODY && claims_early(slot.task.opcode));
}

// A lane of every warp but the consumers' first: who is done with a slot says so.
OFA_INLINE void release_slot(Pipeline& pipeline, const Position<SLOTS>& at) {
    sm90::arrive(&pipeline.slot_empty[at.stage()]);
}

OFA_INLINE Slot& next_slot(Pipeline& pipeline, const Position<SLOTS>& at) {
    wait_for_slot(&pipeline.slot_full[at.stage()], at.parity());
    return pipeline.slots[at.stage()];
}

OFA_INLINE void load_tasks(Pipeline& pipeline) {
    Position<SLOTS> slots;
    Position<STAGES> stages;
    Position<STEP_SLOTS> steps;
    Position<1> bodies;
    for (;; slots.advance()) {
        const Slot& slot = next_slot(pipeline, slots);
        if (slot.kind == SLOT_LEAVE) return;
        if (slot.kind == SLOT_PRODUCT) {
            load_product(pipeline, slot, stages);
            if (lined_matrices(slot.task.opcode) > 0) load_lines(pipeline, slot, stages);
            if (slot.task.opcode == OPCODE_MATMUL_DX_GELU) load_gelu_inputs(pipeline, slot, stages);
        }
        if (slot.kind == SLOT_TOKEN) load_steps(pipeline, steps, stages);
        if (slot.kind == SLOT_BODY) {
            wait_for_slot(&pipeline.body_ended, bodies.parity());
            bodies.advance();
        }
        release_slot(pipeline, slots);
    }
}

// Who has done a part of the task, and made it visible, says so; the last one signals for the task.
OFA_INLINE void finish_part(Slot& slot) {
    if (sm90::subtract_one(&slot.parts) == 1) signal(slot.ctx);
}

// What opens and what samples a token waits for a counter; the tasks between are claimed together.
OFA_INLINE bool is_token(const TaskContext& ctx) { return ctx.program == PROGRAM_DECODE && ctx.task->n_waits == 0; }

// What a slot is for, and the task in it, once there is one.
OFA_INLINE uint32_t fill_slot(Pipeline& pipeline, Slot& slot) {
    Turn& turn = pipeline.turn;
    uint32_t next;
    do next = take_turn(turn);
    while (next == TURN_PASS);
    slot.ctx = turn.ctx;
    slot.kind = next == TURN_LEAVE ? SLOT_LEAVE : SLOT_BODY;
    slot.parts = 1;
    if (next == TURN_RUN) {
        slot.task = *turn.ctx.task;
        if (is_product(slot.task.opcode)) slot.kind = SLOT_PRODUCT;
        if (is_token(turn.ctx)) slot.kind = SLOT_TOKEN;
        if (slot.kind == SLOT_PRODUCT) slot.parts += CONSUMERS;
    }
    turn.ahead = slot.kind == SLOT_PRODUCT || claims_early(slot);
    return slot.kind;
}

// The next task is claimed when the product before it has been loaded; when a body begins or ends. By a warp, of which one
// lane does all but the steps of a token.
OFA_INLINE void claim_tasks(Pipeline& pipeline, const Launch& launch) {
    const bool lane0 = threadIdx.x % 32 == 0;
    Position<SLOTS> slots;
    Position<STEP_SLOTS> steps;
    Position<1> claims;
    if (lane0) enter(pipeline.turn, launch, blockIdx.x);
    for (;; slots.advance(), claims.advance()) {
        uint32_t kind = SLOT_LEAVE;
        if (lane0) {
            wait_for_slot(&pipeline.slot_empty[slots.stage()], slots.parity() ^ 1);
            kind = fill_slot(pipeline, pipeline.slots[slots.stage()]);
            if (kind == SLOT_TOKEN && slots.count > 0) {
                const Position<SLOTS> before{slots.count - 1};
                wait_for_slot(&pipeline.slot_empty[before.stage()], before.parity());
            }
        }
        kind = from_first_lane(kind);
        __syncwarp();
        if (kind == SLOT_PRODUCT) find_maps(pipeline.slots[slots.stage()]);
        __syncwarp();
        if (lane0) sm90::arrive(&pipeline.slot_full[slots.stage()]);
        if (kind == SLOT_LEAVE) return;
        if (kind == SLOT_TOKEN) claim_steps(pipeline, pipeline.turn.ctx, pipeline.turn.place, steps);
        if (lane0) wait_for_slot(&pipeline.claim_next, claims.parity());
        __syncwarp();
    }
}

OFA_INLINE void store_outputs(Pipeline& pipeline, const Slot& slot, int consumer, Position<BUFFERS>& buffers) {
    const Task& task = slot.task;
    const int outputs = task.opcode == OPCODE_MATMUL_GELU ? 2 : 1;
    const int first = task.opcode == OPCODE_MATMUL_DX_GELU ? 3 : 2;  // operand
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
        for (int output = 0; output < outputs; ++output)
            send_chunk(pipeline, slot, consumer, first + output, task.tile[2] + chunk * CHUNK_COLUMNS, buffers);
}

OFA_INLINE void store_tasks(Pipeline& pipeline, int consumer) {
    Position<SLOTS> slots;
    Position<BUFFERS> buffers;
    Position<STAGES> changed;
    for (;; slots.advance()) {
        Slot& slot = next_slot(pipeline, slots);
        if (slot.kind == SLOT_LEAVE) return;
        if (slot.kind == SLOT_PRODUCT) {
            if (slot.task.opcode == OPCODE_MATMUL_DW_ADAMW)
                store_update(pipeline, slot, consumer, changed, buffers);
            else if (slot.task.opcode == OPCODE_MATMUL_RESIDUAL)
                store_residual(pipeline, slot, consumer, changed);
            else
                store_outputs(pipeline, slot, consumer, buffers);
            sm90::wait_until_stored();
            sm90::fence_proxy_global();
            finish_part(slot);
        }
        release_slot(pipeline, slots);
    }
}

OFA_INLINE void sum_products(Pipeline& pipeline, const Slot& slot, Position<STAGES>& stages, float (&sums)[128]) {
    const int thread = fresh_thread(), consumer = consumer_of(thread);
    const bool lane0 = thread % 32 == 0;
    const Task& task = slot.task;
    const uint32_t blocks = (product_depth(slot.ctx, task) + TILE_DEPTH - 1) / TILE_DEPTH;
    if (OFA_CONSUMED(task) == OPCODE_MATMUL_DW_ADAMW)
        multiply_tile<true, true>(pipeline, consumer, lane0, blocks, stages, sums);
    else if (b_by_k(OFA_CONSUMED(task)))
        multiply_tile<false, true>(pipeline, consumer, lane0, blocks, stages, sums);
    else
        multiply_tile<false, false>(pipeline, consumer, lane0, blocks, stages, sums);
}

// What becomes of the sums.
OFA_INLINE void store_sums(Pipeline& pipeline, float (&sums)[128]) {
    switch (OFA_CONSUMED(current_slot(pipeline).task)) {
    case OPCODE_MATMUL_DW_ADAMW:
        update_tile(pipeline, sums);
        break;
    case OPCODE_MATMUL_DX_GELU:
        store_through_gelu(pipeline, sums);
        break;
    case OPCODE_MATMUL_RESIDUAL:
        add_tile_to_skip(pipeline, sums);
        break;
    case OPCODE_MATMUL_GELU:
        store_gelu(pipeline, sums);
        break;
    case OPCODE_MATMUL_STATISTICS:
        store_with_statistics(pipeline, sums);
        break;
    default:
        store_tile(pipeline, sums);
    }
}

OFA_INLINE void consume_product(Pipeline& pipeline) {
    float sums[128];  // set here, not by the first product: else they would count as alive across the call of a body
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    Position<STAGES> stages{places_of_warp(pipeline).stages};
    sum_products(pipeline, current_slot(pipeline), stages, sums);
    places_of_warp(pipeline).stages = stages.count;
    store_sums(pipeline, sums);
}

OFA_INLINE void begin(Pipeline& pipeline, Slot& slot) {
    const uint64_t claimed_ns = slot.ctx.claimed_ns, ready_ns = slot.ctx.ready_ns;
    const uint64_t free_ns = pipeline.ended_ns > claimed_ns ? pipeline.ended_ns : claimed_ns;
    if (slot.ctx.ahead && ready_ns > free_ns) add_wait(slot.ctx, ready_ns - free_ns);
    slot.ctx.ahead = false;  // waits of its body are the SM's
    begin_task(pipeline.timer, slot.ctx);
    if (claims_early(slot)) sm90::arrive(&pipeline.claim_next);
}

// After the consumers' barrier: all that they wrote is visible to the leader.
OFA_INLINE void finish(Pipeline& pipeline) {
    const int thread = fresh_thread();
    volatile Places& places = pipeline.places[thread / 32];
    const Position<SLOTS> slots{places.slots};
    Slot& slot = pipeline.slots[slots.stage()];
    if (pipeline.block.leader()) {
        if (slot.kind == SLOT_BODY) sm90::arrive(&pipeline.body_ended);
        if (slot.kind == SLOT_PRODUCT) {
            finish_part(slot);
            pipeline.timer.stop(slot.ctx);
        } else if (slot.kind == SLOT_BODY) {
            end_task(pipeline.timer, slot.ctx);
            if (!claims_early(slot)) sm90::arrive(&pipeline.claim_next);
        } else {
            pipeline.timer.stop_parts(slot.ctx);
        }
        pipeline.ended_ns = now_ns();
        store_relaxed(&status_of(slot.ctx).phase, uint32_t(PHASE_WAITING));
    }
    __syncwarp();
    if (thread % 32 == 0) {
        places.slots = slots.count + 1;
        release_slot(pipeline, slots);
    }
    __syncwarp();
}

// What is called for a slot: a body or a token; what a weight's update needs, before its product; nothing for others.
OFA_NOINLINE void run_slot(Pipeline& pipeline, const Slot& slot) {
#if defined(OFA_ONLY_PRODUCT)
    adamw_of_step(pipeline.block, slot.ctx);
#else
    if (slot.kind == SLOT_PRODUCT && slot.task.opcode != OPCODE_MATMUL_DW_ADAMW) return;
    if (slot.kind == SLOT_TOKEN) {
        if (slot.ctx.launch->serve->n_rows == 1)
            sm90::run_token(slot.ctx);
        else
            sm90::run_pass(slot.ctx);
        return;
    }
    if (slot.kind == SLOT_BODY) wait_for_empty_stages(pipeline);
    if (sm90::is_attention(slot.task.opcode))
        begin_attention(pipeline, slot.ctx);
    else if (!run_body(pipeline.block, slot.ctx) && pipeline.block.leader())
        refuse(slot.ctx);
#endif
}

OFA_INLINE void consume_tasks(Pipeline& pipeline) {
    Block& block = pipeline.block;
    if (block.leader()) pipeline.timer.open();
    for (;;) {
        next_slot(pipeline, Position<SLOTS>{places_of_warp(pipeline).slots});
        if (current_slot(pipeline).kind == SLOT_LEAVE) {
            if (block.leader()) pipeline.timer.publish(current_slot(pipeline).ctx);
            return;
        }
        if (block.leader()) begin(pipeline, current_slot(pipeline));
        // One place that calls, and for every slot: with two, or under a condition, ptxas spills.
        run_slot(pipeline, current_slot(pipeline));
        if (sm90::is_attention(current_slot(pipeline).task.opcode))
            finish_attention(pipeline, current_slot(pipeline).task);
        if (current_slot(pipeline).kind == SLOT_PRODUCT)
            consume_product(pipeline);
        else
            sm90::fence_proxy_shared();  // the copy engine writes next where the body has been
        block.sync();
        finish(pipeline);
    }
}

// Ends the thread. A call, followed by a loop that is never run: were the end in sight of the entry, the compiler would keep
// a place where consumers and producers meet again, and spill it across the calls of bodies.
OFA_NOINLINE void exit_thread() { asm volatile("exit;"); }
[[noreturn]] OFA_INLINE void end_thread() {
    exit_thread();
    for (;;) asm volatile("");
}

}  // namespace ofa

extern "C" __global__ void __launch_bounds__(384, 1) megakernel(const __grid_constant__ ofa::Launch launch) {
    extern __shared__ uint8_t shared[];
    static_assert(sizeof(ofa::Pipeline) <= ofa::SHARED_BYTES);
    ofa::Pipeline& pipeline = ofa::shared_pipeline();
    if (ofa::fresh_thread() == 0) {
        if (ofa::sm90::shared_address(shared) != ofa::SHARED_START) __trap();
        pipeline.open();
        pipeline.block.open(blockIdx.x, pipeline.a[0], sizeof pipeline.a + sizeof pipeline.b, launch.scratch,
                            launch.scratch_bytes);
    }
    __syncthreads();
    if (ofa::fresh_thread() >= ofa::WARPGROUP) {
        ofa::sm90::take_registers_to<ofa::CONSUMER_REGISTERS>();
        ofa::consume_tasks(pipeline);
        ofa::end_thread();
    }
    ofa::sm90::give_up_registers_to<ofa::PRODUCER_REGISTERS>();
    const int warp = ofa::fresh_thread() / 32;
    if (warp != 1 && ofa::fresh_thread() % 32 != 0) ofa::end_thread();
    if (warp == 0) ofa::load_tasks(pipeline);
    if (warp == 1) ofa::claim_tasks(pipeline, launch);
    if (warp >= 2) ofa::store_tasks(pipeline, warp - 2);
}
