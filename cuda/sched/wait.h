// Waiting for counters. Every wait ends: by its condition, by a deadline that is recorded, or because the run ends.
// One thread of a block waits; the block's barrier passes what it acquired on to the others.
#pragma once

#include "sched/abort.h"
#include "sched/jitter.h"
#include "sched/status.h"

namespace ofa {

constexpr uint32_t POLLS_PER_CHECK = 32;
constexpr uint64_t LONGEST_GAP_NS = 1000000000;  // between two checks of a thread that runs

// A task at or after the end of its queue is not run, and nobody will signal what it waits for.
OFA_INLINE bool past_end(const TaskContext& ctx) {
    const uint64_t end = load_acquire(&ctx.launch->queues[role_of_program(ctx.program)].end);
    return end != 0 && ctx.ticket >= end - 1;
}

// Whether the run has ended, for all or at this task. Both are looked at together.
OFA_INLINE bool is_over(const TaskContext& ctx) {
    const uint64_t end = load_relaxed(&ctx.launch->queues[role_of_program(ctx.program)].end);
    const bool ended = aborted(*ctx.launch);
    return ended || (end != 0 && ctx.ticket >= end - 1);
}

// Whether the run, or with Doom alone its games, is held.
OFA_INLINE bool held(const TaskContext& ctx) {
    const Control& control = *ctx.launch->control;
    if (load_acquire(&control.pause) != 0) return true;
    return role_of_program(ctx.program) == ROLE_DOOM && load_acquire(&control.hold_games) != 0;
}

// Waits until read() >= expected; false when the block must give the task up. Neither a pause of the run nor time in
// which this thread did not run (a stopped process, a machine asleep) uses up the deadline. `counter` names what is
// waited for in the abort record (abi.ABORT).
template <class Read>
OFA_INLINE bool wait_until(const TaskContext& ctx, uint32_t counter, uint64_t expected, Read read) {
    if (read() >= expected) return true;
    WaitTimer timer(ctx);
    const Launch& launch = *ctx.launch;
    uint64_t started_ns = now_ns(), checked_ns = started_ns;
    for (uint32_t attempt = 1;; ++attempt) {
        const uint64_t seen = read();
        if (seen >= expected) return true;
        if (attempt % POLLS_PER_CHECK == 0) {
            if (aborted(launch) || past_end(ctx)) return false;
            const uint64_t now = now_ns();
            store_relaxed(&status_of(ctx).heartbeat_ns, now);
            if (ctx.ahead && load_relaxed(&status_of(ctx).phase) != PHASE_RUNNING) show_task(ctx, PHASE_WAITING);
            if (held(ctx))
                started_ns = now;
            else if (now - checked_ns > LONGEST_GAP_NS)
                started_ns += now - checked_ns;
            checked_ns = now;
            if (now - started_ns > load_relaxed(&launch.control->deadline_ns)) {
                record_abort(ctx, ABORT_DEADLINE, counter, expected, seen);
                return false;
            }
        }
        back_off(attempt);
    }
}

OFA_INLINE const uint64_t* counter_at(const Launch& launch, uint32_t counter) {
    return launch.counters + uint64_t(counter) * COUNTER_STRIDE;
}

// The waits that a program cannot express because they follow from the schedule: a step starts after the held-out
// sweep before it, and a sweep batch after the steps and batches before it. They share the activations.
OFA_INLINE bool wait_for_schedule(const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    uint64_t steps, batches;
    if (ctx.task->opcode == OPCODE_STEP_BEGIN) {
        steps = ctx.iteration;
        batches = sweep_batches_before_step(launch.schedule, ctx.iteration);
    } else if (ctx.task->opcode == OPCODE_SWEEP_BEGIN) {
        steps = steps_before_sweep(launch.schedule, ctx.iteration);
        batches = ctx.iteration;
    } else {
        return true;
    }
    const Telemetry* telemetry = launch.telemetry;
    return wait_until(ctx, NONE_U32, steps, [&] { return load_acquire(&telemetry->steps_done); }) &&
           wait_until(ctx, NONE_U32, batches, [&] { return load_acquire(&telemetry->sweep_batches_done); });
}

// What the counters of a wait have to reach.
OFA_INLINE uint64_t expected_count(const TaskContext& ctx, const TaskWait& wait) {
    return ctx.iteration + 1 < wait.lag ? 0 : uint64_t(wait.count) * (ctx.iteration + 1 - wait.lag);
}

OFA_INLINE bool wait_for_counter(const TaskContext& ctx, uint32_t counter, uint64_t expected) {
    const uint64_t* value = counter_at(*ctx.launch, counter);
    return wait_until(ctx, counter, expected, [&] { return load_acquire(value); });
}

OFA_INLINE bool wait_for_inputs(const TaskContext& ctx) {
    jitter(*ctx.launch, ctx.sm);
    for (uint32_t w = 0; w < ctx.task->n_waits; ++w) {
        const TaskWait& wait = ctx.task->waits[w];
        const uint64_t expected = expected_count(ctx, wait);
        for (uint32_t i = 0; i < wait.n; ++i)
            if (!wait_for_counter(ctx, wait.first + i, expected)) return false;
    }
    return true;
}

// Says that a task is done. The block's barrier before it makes this one release cover all its writes.
OFA_INLINE void signal(const TaskContext& ctx) {
    jitter(*ctx.launch, ctx.sm);
    if (ctx.task->signal == NONE_U32) return;
    add_release(ctx.launch->counters + uint64_t(ctx.task->signal) * COUNTER_STRIDE, uint64_t(1));
}

}  // namespace ofa
