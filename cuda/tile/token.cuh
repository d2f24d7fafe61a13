// The tasks between the one that opens a token and the one that samples it, as one slot: the claimer turns a block's own
// tasks into steps, the loader sends the weights of the steps through the stages of the ring, as far ahead as there are
// empty ones, and the consumers (ops/sm90/token.cuh) do what they say.
#pragma once

#include "sched/seats.h"
#include "tile/pipeline.cuh"

namespace ofa {

// --- the claimer -----------------------------------------------------------------------------------------------------

// The block's next task after `task`, which is one of its own.
OFA_INLINE uint32_t owned_after(const Program& program, uint32_t task, const Place& place) {
    const uint32_t next = task + place.blocks;
    if (next < program.n_tasks && program.tasks[next].lane == program.tasks[task].lane + place.blocks) return next;
    return next_owned(program, task + 1, place.rank, place.blocks);
}

OFA_INLINE bool same_operation(const Task& a, const Task& b) {
    if (a.opcode != b.opcode || a.signal != b.signal || b.n_waits != 0) return false;
    bool same = true;
    for (int i = 0; i < MAX_OPERANDS; ++i) same &= a.operands[i] == b.operands[i];
    return same;
}

OFA_INLINE uint32_t most_together(uint32_t opcode) {
    return opcode == OPCODE_STREAM_NORM_MATMUL_GELU || opcode == OPCODE_STREAM_NORM_MATMUL ? MOST_PAIRS : 1;
}

// Addresses of a step's operands. One thread.
struct Resolver {
    const TaskContext& ctx;
    const Task& task;

    OFA_INLINE const Operand& at(int i) const { return ctx.launch->operands[task.operands[i]]; }
    template <class T>
    OFA_INLINE T* base(int i) const {
        const Operand& o = at(i);
        return reinterpret_cast<T*>(o.base + ctx.copy_of(o) * o.copy_bytes);
    }
    OFA_INLINE uint32_t tag(int i) const {
        const Operand& o = at(i);
        return uint32_t(ctx.iteration) * o.generations + o.generation + 1;
    }
};

// Fills in the step that begins with `task`; returns the block's next task behind it.
OFA_INLINE uint32_t describe_step(Step& step, const TaskContext& ctx, const Program& program, const Place& place,
                                  uint32_t first) {
    const Task& task = program.tasks[first];
    const Resolver operand{ctx, task};
    const uint32_t opcode = task.opcode;
    step.opcode = uint16_t(opcode);
    step.task = first;
    step.signal = task.signal;
    step.pairs = 0;
    step.single = 0;
    step.apart = WEIGHT_BLOCK;
    step.in = operand.base<const uint64_t>(0);
    step.in_tag = operand.tag(0);
    step.in_name = task.operands[0];
    step.in_pitch = operand.at(0).pitch;
    step.gain = nullptr;
    step.skip = nullptr;
    int weight = 2, out = 3;
    switch (opcode) {
    case OPCODE_STREAM_QKV:
        step.keys = operand.base<bf16>(3);
        step.values = operand.base<bf16>(4);
        out = 5;
        [[fallthrough]];
    case OPCODE_STREAM_NORM_MATMUL_GELU:
    case OPCODE_STREAM_NORM_MATMUL:
        step.gain = operand.base<const float>(1);
        break;
    case OPCODE_STREAM_MATMUL_RESIDUAL:
        weight = 1;
        step.skip = operand.base<const uint64_t>(2);
        step.skip_tag = operand.tag(2);
        step.skip_name = task.operands[2];
        break;
    default:
        weight = -1;
        step.values = operand.base<bf16>(1);
        out = 2;
    }
    step.out = operand.base<void>(out);
    step.out_tag = operand.tag(out);
    uint32_t tasks = 1, next = owned_after(program, first, place);
    if (opcode == OPCODE_STREAM_QKV || opcode == OPCODE_STREAM_ATTENTION) {
        // Tile: part, parts, first column of the head, its columns.
        const uint32_t size = uint32_t(task.tile[3]), run = size / (2 * uint32_t(task.tile[1]));
        step.apart = uint16_t(size / 2);
        step.row[0] = uint32_t(task.tile[2]) + uint32_t(task.tile[0]) * run;
    }
    if (weight >= 0) {
        const Operand& w = operand.at(weight);
        step.weight = operand.base<const bf16>(weight);
        step.across = uint16_t(w.cols / WEIGHT_BLOCK);
        step.chunks = uint8_t((step.across + MOST_ACROSS - 1) / MOST_ACROSS);
        if (opcode == OPCODE_STREAM_QKV) {
            step.pairs = 3;
            step.row[1] = step.row[0] + w.rows / 3;
            step.row[2] = step.row[1] + w.rows / 3;
        } else {
            const uint32_t most = most_together(opcode);
            step.row[0] = uint32_t(task.tile[2]);
            step.single = task.tile[3] <= WEIGHT_BLOCK ? 1 : 0;
            while (tasks < most && next < program.n_tasks && same_operation(task, program.tasks[next])) {
                const Task& other = program.tasks[next];
                step.row[tasks] = uint32_t(other.tile[2]);
                if (other.tile[3] <= WEIGHT_BLOCK) step.single |= 1u << tasks;
                ++tasks;
                next = owned_after(program, next, place);
            }
            step.pairs = uint8_t(tasks);
        }
    }
    step.tasks = tasks;
    return next;
}

// The steps of the token whose first own task is `ctx`'s, up to the first task that waits for a counter.
OFA_INLINE void claim_steps(Pipeline& pipeline, const TaskContext& ctx, Place& place, Position<STEP_SLOTS>& steps) {
    const Program& program = ctx.launch->programs[PROGRAM_DECODE];
    uint32_t task = uint32_t(ctx.task - program.tasks);
    for (bool more = true; more; steps.advance()) {
        const uint32_t at = steps.stage();
        wait_for_slot(&pipeline.step_ring.empty[at], steps.parity() ^ 1);
        Step& step = pipeline.token().steps[at];
        more = task < program.n_tasks && program.tasks[task].n_waits == 0;
        if (more)
            task = describe_step(step, ctx, program, place, task);
        else
            step.opcode = STEP_END;
        sm90::arrive(&pipeline.step_ring.full[at]);
    }
    place.task = task;
}

// --- the loader ------------------------------------------------------------------------------------------------------

OFA_INLINE void load_weights(Pipeline& pipeline, const Step& step, Position<STAGES>& stages) {
    const uint32_t across = step.across, chunks = step.chunks;
    const uint8_t* const weight = reinterpret_cast<const uint8_t*>(step.weight);
    for (uint32_t pair = 0; pair < step.pairs; ++pair) {
        const uint8_t* const rows = weight + uint64_t(step.row[pair] / WEIGHT_BLOCK * across) * WEIGHT_BLOCK_BYTES;
        const bool both = (step.single >> pair & 1) == 0;
        for (uint32_t chunk = 0; chunk < chunks; ++chunk, stages.advance()) {
            const uint32_t begin = share_begin(across, chunk, chunks), end = share_begin(across, chunk + 1, chunks);
            const uint32_t bytes = (end - begin) * WEIGHT_BLOCK_BYTES, stage = stages.stage();
            const uint8_t* const from = rows + begin * WEIGHT_BLOCK_BYTES;
            uint8_t* const to = pipeline.a[0] + stage * STREAM_STAGE_BYTES;
            sm90::Barrier* const full = &pipeline.full[stage];
            wait_for(&pipeline.empty[stage], stages.parity() ^ 1);
            sm90::arrive_expecting(full, both ? 2 * bytes : bytes);
            sm90::load_bulk(to, from, bytes, full);
            if (both)
                sm90::load_bulk(to + bytes, from + step.apart / WEIGHT_BLOCK * across * WEIGHT_BLOCK_BYTES, bytes, full);
        }
    }
}

// The fence covers all weights of the token: their version was pinned before it was opened.
OFA_INLINE void load_steps(Pipeline& pipeline, Position<STEP_SLOTS>& steps, Position<STAGES>& stages) {
    sm90::fence_proxy_global();
    for (bool more = true; more; steps.advance()) {
        const uint32_t at = steps.stage();
        wait_for_slot(&pipeline.step_ring.full[at], steps.parity());
        const Step& step = pipeline.token().steps[at];
        more = step.opcode != STEP_END;
        if (more) load_weights(pipeline, step, stages);
        sm90::arrive(&pipeline.step_ring.empty[at]);
    }
}

}  // namespace ofa
