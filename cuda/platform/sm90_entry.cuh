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

// Whether the task after it is claimed before it ends: in its midst (a product, attention) or when it begins.
OFA_INLINE bool claims_ahead(const Slot& slot) {
    return slot.kind == SLOT_PRODUCT || claims_early(slot) ||
           (slot.kind == SLOT_BODY && sm90::is_attention(slot.task.opcode));
}

// A lane of a producer: who is done with a slot says so.
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

// wait_for_inputs, a counter a lane: a weight's gradient waits for 64, and one after the other they would take longer than
// most tasks. For one that is not there yet the first lane waits.
OFA_INLINE bool wait_together(const TaskContext& ctx, const Task& task) {
    const uint32_t lane = threadIdx.x % 32, waits = task.n_waits;
    for (uint32_t w = 0; w < waits; ++w) {
        const TaskWait wait = task.waits[w];
        const uint64_t expected = expected_count(ctx, wait);
        for (uint32_t first = 0; first < wait.n; first += 32) {
            const uint32_t mine = first + lane < wait.n ? first + lane : first;
            const uint64_t* const counter = counter_at(*ctx.launch, wait.first + mine);
            while (const uint32_t missing = __ballot_sync(0xFFFFFFFFu, load_acquire(counter) < expected)) {
                uint32_t there = 0;
                if (lane == 0) there = wait_for_counter(ctx, wait.first + first + __ffs(int(missing)) - 1, expected);
                if (from_first_lane(there) == 0) return false;
            }
        }
    }
    __syncwarp();
    return true;
}

// From memory, at once.
OFA_INLINE void copy_task(Task& to, const Task* from) {
    static_assert(sizeof(Task) % 16 == 0 && sizeof(Task) <= 512);
    const uint32_t lane = threadIdx.x % 32;
    if (lane < sizeof(Task) / 16) reinterpret_cast<uint4*>(&to)[lane] = reinterpret_cast<const uint4*>(from)[lane];
}

// The next task that can start. By the warp.
OFA_INLINE uint32_t next_turn(Turn& turn, Task& task) {
    const bool lane0 = threadIdx.x % 32 == 0;
    for (;;) {
        uint32_t next = TURN_LEAVE;
        if (lane0) next = claim_turn(turn);
        next = from_first_lane(next);
        __syncwarp();
        if (next == TURN_RUN) copy_task(task, turn.ctx.task);
        __syncwarp();
        if (next == TURN_RUN && !wait_together(turn.ctx, task)) next = TURN_PASS;
        if (next == TURN_RUN && lane0) next = start_turn(turn);
        next = from_first_lane(next);
        if (next != TURN_PASS) return next;
    }
}

// What a slot is for, and the task in it.
OFA_INLINE uint32_t fill_slot(Pipeline& pipeline, Slot& slot, uint32_t next, uint64_t waited_ns) {
    Turn& turn = pipeline.turn;
    slot.ctx = turn.ctx;
    slot.ctx.ahead = false;  // waits of its body are the SM's
    slot.ahead = turn.ctx.ahead;
    slot.waited_ns = slot.ahead ? 0 : waited_ns;
    slot.kind = next == TURN_LEAVE ? SLOT_LEAVE : SLOT_BODY;
    slot.parts = CONSUMERS;
    if (next == TURN_RUN) {
        if (is_product(slot.task.opcode)) slot.kind = SLOT_PRODUCT;
        if (is_token(turn.ctx)) slot.kind = SLOT_TOKEN;
    }
    turn.ahead = claims_ahead(slot);
    return slot.kind;
}

// The next task is claimed when the product before it has been loaded; when a body begins or ends. By a warp, of which one
// lane does all but the waits, and the steps of a token.
OFA_INLINE void claim_tasks(Pipeline& pipeline, const Launch& launch) {
    const bool lane0 = threadIdx.x % 32 == 0;
    Position<SLOTS> slots;
    Position<STEP_SLOTS> steps;
    Position<1> claims;
    if (lane0) enter(pipeline.turn, launch, blockIdx.x);
    for (;; slots.advance(), claims.advance()) {
        uint32_t kind = SLOT_LEAVE;
        if (lane0) wait_for_slot(&pipeline.slot_empty[slots.stage()], slots.parity() ^ 1);
        const uint64_t waited_ns = pipeline.turn.waits_ns;
        __syncwarp();
        const uint32_t next = next_turn(pipeline.turn, pipeline.slots[slots.stage()].task);
        if (lane0) {
            kind = fill_slot(pipeline, pipeline.slots[slots.stage()], next, pipeline.turn.waits_ns - waited_ns);
            if (kind == SLOT_TOKEN && slots.count > 0) {
                const Position<SLOTS> before{slots.count - 1};
                wait_for_slot(&pipeline.slot_empty[before.stage()], before.parity());
            }
        }
        kind = from_first_lane(kind);
        __syncwarp();
        if (kind == SLOT_PRODUCT) find_operands(pipeline.slots[slots.stage()]);
        __syncwarp();
        if (lane0) sm90::arrive(&pipeline.slot_full[slots.stage()]);
        if (kind == SLOT_LEAVE) return;
        if (kind == SLOT_TOKEN) claim_steps(pipeline, pipeline.turn.ctx, pipeline.turn.place, steps);
        if (lane0) wait_for_slot(&pipeline.claim_next, claims.parity());
        __syncwarp();
    }
}

// How long the SM waited before the slot.
OFA_INLINE uint64_t wait_before(const Pipeline& pipeline, const Slot& slot) {
    if (!slot.ahead) return slot.waited_ns;
    const uint64_t claimed_ns = slot.ctx.claimed_ns, ready_ns = slot.ctx.ready_ns;
    const uint64_t free_ns = pipeline.ended_ns > claimed_ns ? pipeline.ended_ns : claimed_ns;
    return ready_ns > free_ns ? ready_ns - free_ns : 0;
}

// After the consumers, who go on meanwhile: what they and the storers wrote is made visible by the signal.
OFA_INLINE void close_books(Pipeline& pipeline, Slot& slot) {
    const TaskContext& ctx = slot.ctx;
    const uint64_t waited_ns = wait_before(pipeline, slot);
    if (slot.kind == SLOT_PRODUCT) finish_part(slot);
    if (slot.kind == SLOT_BODY && !is_over(ctx)) signal(ctx);
    if (slot.kind != SLOT_TOKEN) pipeline.timer.record(ctx, slot.began_ns, slot.ended_ns, slot.held_ns, waited_ns);
    if (slot.ahead) add_relaxed(&status_of(ctx).wait_ns, waited_ns);
    store_relaxed(&status_of(ctx).phase, uint32_t(PHASE_WAITING));
    pipeline.ended_ns = slot.ended_ns;
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
        const bool keeps_books = consumer == 0;
        if (slot.kind == SLOT_LEAVE) {
            if (keeps_books) pipeline.timer.publish(slot.ctx);
            return;
        }
        if (keeps_books) show_task(slot.ctx, PHASE_RUNNING);
        if (slot.kind == SLOT_PRODUCT) {
            if (slot.task.opcode == OPCODE_MATMUL_DW_ADAMW)
                store_update(pipeline, slot, consumer, changed, buffers);
            else if (slot.task.opcode == OPCODE_MATMUL_RESIDUAL)
                store_residual(pipeline, slot, consumer, changed);
            else
                store_outputs(pipeline, slot, consumer, buffers);
            sm90::wait_until_stored();
            sm90::fence_proxy_global();
            if (!keeps_books) finish_part(slot);
        }
        if (keeps_books) {
            wait_for_slot(&pipeline.slot_consumed[slots.stage()], slots.parity());
            close_books(pipeline, slot);
        }
        release_slot(pipeline, slots);
    }
}

OFA_INLINE void sum_products(Pipeline& pipeline, const Slot& slot, Position<STAGES>& stages, float (&sums)[128]) {
    const int thread = fresh_thread(), consumer = consumer_of(thread);
    const bool lane0 = thread % 32 == 0;
    const Task& task = slot.task;
    const uint32_t blocks = (slot.depth + TILE_DEPTH - 1) / TILE_DEPTH;
    if (OFA_CONSUMED(task) == OPCODE_MATMUL_DW_ADAMW)
        multiply_tile<true, true>(pipeline, consumer, lane0, blocks, stages, sums);
    else if (b_by_k(OFA_CONSUMED(task)))
        multiply_tile<false, true>(pipeline, consumer, lane0, blocks, stages, sums);
    else
        multiply_tile<false, false>(pipeline, consumer, lane0, blocks, stages, sums);
}

// What becomes of the sums. The task type is looked up at each question: a register that kept it would be spilled.
OFA_INLINE void store_sums(Pipeline& pipeline, float (&sums)[128]) {
    const auto is = [&](uint32_t opcode) {
        return OFA_CONSUMED(static_cast<const volatile Task&>(current_slot(pipeline).task)) == opcode;
    };
    if (is(OPCODE_MATMUL_DW_ADAMW))
        update_tile(pipeline, sums);
    else if (is(OPCODE_MATMUL_DX_GELU))
        store_through_gelu(pipeline, sums);
    else if (is(OPCODE_MATMUL_RESIDUAL))
        add_tile_to_skip(pipeline, sums);
    else if (is(OPCODE_MATMUL_GELU))
        store_gelu(pipeline, sums);
    else if (is(OPCODE_MATMUL_STATISTICS))
        store_with_statistics(pipeline, sums);
    else
        store_tile(pipeline, sums);
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

// By the leader. Before a token the storers have nothing left to do, and the consumers keep its books.
OFA_INLINE void begin(Pipeline& pipeline, Slot& slot) {
    slot.held_ns = *slot.ctx.waits_ns;
    slot.began_ns = now_ns();
    if (slot.kind == SLOT_TOKEN) pipeline.timer.begin_parts(wait_before(pipeline, slot));
    if (claims_early(slot)) sm90::arrive(&pipeline.claim_next);
}

// By every warp, after the consumers' barrier where the slot was no product.
OFA_INLINE void finish(Pipeline& pipeline) {
    const int thread = fresh_thread();
    volatile Places& places = pipeline.places[thread / 32];
    const Position<SLOTS> slots{places.slots};
    Slot& slot = pipeline.slots[slots.stage()];
    if (pipeline.block.leader()) {
        slot.ended_ns = now_ns();
        slot.held_ns = *slot.ctx.waits_ns - slot.held_ns;
        if (slot.kind == SLOT_BODY) {
            sm90::arrive(&pipeline.body_ended);
            if (!claims_ahead(slot)) sm90::arrive(&pipeline.claim_next);
        }
    }
    __syncwarp();
    if (thread % 32 == 0) {
        places.slots = slots.count + 1;
        sm90::arrive(&pipeline.slot_consumed[slots.stage()]);
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
    for (;;) {
        next_slot(pipeline, Position<SLOTS>{places_of_warp(pipeline).slots});
        if (current_slot(pipeline).kind == SLOT_LEAVE) return;
        if (block.leader()) begin(pipeline, current_slot(pipeline));
        // One place that calls, and for every slot: with two, or under a condition, ptxas spills.
        run_slot(pipeline, current_slot(pipeline));
        if (sm90::is_attention(current_slot(pipeline).task.opcode))
            finish_attention(pipeline, current_slot(pipeline).task);
        if (current_slot(pipeline).kind == SLOT_PRODUCT) {
            consume_product(pipeline);
        } else {
            sm90::fence_proxy_shared();  // the copy engine writes next where the body has been
            block.sync();
        }
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
        pipeline.launch = launch;
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
    if (warp == 1) ofa::claim_tasks(pipeline, pipeline.launch);
    if (warp >= 2) ofa::store_tasks(pipeline, warp - 2);
}
