// The beginning of an iteration: where a pause holds it, a stop ends the queue, and pacing lets it wait its turn.
#pragma once

#include "sched/wait.h"

namespace ofa {

// The role's queue ends before this task. Several games may say so at once: the earliest end counts.
OFA_INLINE void end_queue(const TaskContext& ctx) {
    uint64_t* end = &ctx.launch->queues[role_of_program(ctx.program)].end;
    for (;;) {
        const uint64_t seen = load_acquire(end);
        if ((seen != 0 && seen - 1 <= ctx.ticket) || compare_exchange(end, seen, ctx.ticket + 1)) return;
    }
}

// Whether the host holds this iteration while it copies what the ones before it left behind. They are done: the host is
// told, by its own word, which is read once so that the answer is to the hold in force. Batches of a sweep change nothing
// that is copied and go on, but a pause in their midst is as good a time as any.
OFA_INLINE bool held_for_copy(const TaskContext& ctx, bool paused) {
    if (ctx.program == PROGRAM_DOOM || (ctx.program == PROGRAM_SWEEP && !paused)) return false;
    const uint32_t clock = ctx.program == PROGRAM_DECODE ? CLOCK_TOKEN : CLOCK_STEP;
    const uint64_t now = ctx.program == PROGRAM_SWEEP ? ctx.version : ctx.iteration;
    const uint64_t hold = load_acquire(&ctx.launch->control->hold[clock]);
    if (hold == 0 || now < hold / HOLD_NUMBERS) return false;
    store_release(&ctx.launch->telemetry->held[clock], hold);
    return true;
}

// Whether nobody asks for anything, which is so most of the time: all is looked at together, not one after the other.
OFA_INLINE bool passes_at_once(const TaskContext& ctx, uint64_t not_before_ns) {
    const Control& control = *ctx.launch->control;
    const uint64_t stop = load_relaxed(&control.stop), games = load_relaxed(&control.hold_games);
    const uint64_t copies = load_relaxed(&control.hold[CLOCK_STEP]) | load_relaxed(&control.hold[CLOCK_TOKEN]);
    const bool ended = aborted(*ctx.launch);
    const uint64_t pause = load_acquire(&control.pause);  // last: what was posted in a pause is seen after it
    return (stop | pause | games | copies) == 0 && !ended && now_ns() >= not_before_ns;
}

// Holds the iteration until `*not_before_ns` and as long as it is `held`, which moves the time on. False when the run
// ends here. While held `let_through()` is asked again and again; true ends the hold.
template <class LetThrough>
OFA_INLINE bool pass_boundary(const TaskContext& ctx, uint64_t* not_before_ns, LetThrough let_through) {
    constexpr uint64_t LONGEST_SLEEP_NS = 2000000, COPY_SLEEP_NS = 50000;
    if (passes_at_once(ctx, *not_before_ns)) return true;
    const Control& control = *ctx.launch->control;
    WaitTimer timer(ctx);
    for (;;) {
        if (aborted(*ctx.launch)) return false;
        if (load_acquire(&control.stop) != 0) {
            end_queue(ctx);
            return false;
        }
        const uint64_t now = now_ns();
        store_relaxed(&status_of(ctx).heartbeat_ns, now);
        const bool paused = held(ctx), copied = held_for_copy(ctx, paused);
        if (paused || copied) {
            *not_before_ns = now;
            if (let_through()) return true;
            sleep_ns(copied ? COPY_SLEEP_NS : LONGEST_SLEEP_NS);
        } else if (now < *not_before_ns) {
            const uint64_t left = *not_before_ns - now;
            sleep_ns(left < LONGEST_SLEEP_NS ? left : LONGEST_SLEEP_NS);
        } else {
            return true;
        }
    }
}

}  // namespace ofa
