// What a block says about itself while it runs; one writer per entry, read by the host at any time.
#pragma once

#include "sched/timeline.h"
#include "task.h"

namespace ofa {

OFA_INLINE SmStatus& status_of(const TaskContext& ctx) { return ctx.launch->telemetry->sms[ctx.sm]; }

OFA_INLINE void show_task(const TaskContext& ctx, uint32_t phase) {
    SmStatus& status = status_of(ctx);
    store_relaxed(&status.opcode, uint32_t(ctx.task->opcode));
    store_relaxed(&status.task, uint32_t(ctx.task - ctx.launch->programs[ctx.program].tasks));
    store_relaxed(&status.iteration, ctx.iteration);
    store_relaxed(&status.phase, phase);
    store_relaxed(&status.heartbeat_ns, now_ns());
}

OFA_INLINE void show_no_task(const Launch& launch, uint32_t sm, uint32_t role) {
    SmStatus& status = launch.telemetry->sms[sm];
    store_relaxed(&status.role, role);
    store_relaxed(&status.opcode, NONE_U32);
    store_relaxed(&status.phase, PHASE_IDLE);
    store_relaxed(&status.heartbeat_ns, now_ns());
}

// Waiting of the SM.
OFA_INLINE void add_wait(const TaskContext& ctx, uint64_t ns) {
    *ctx.waits_ns += ns;
    add_relaxed(&status_of(ctx).wait_ns, ns);
}

// Time in a wait counts as waiting, not as work of the task around it.
class WaitTimer {
public:
    OFA_INLINE explicit WaitTimer(const TaskContext& ctx)
        : ctx_(ctx), phase_(status_of(ctx).phase), started_ns_(now_ns()) {
        if (!ctx.ahead) store_relaxed(&status_of(ctx).phase, uint32_t(PHASE_WAITING));
    }
    OFA_INLINE ~WaitTimer() {
        if (ctx_.ahead) return;
        const uint64_t now = now_ns();
        add_wait(ctx_, now - started_ns_);
        store_relaxed(&status_of(ctx_).heartbeat_ns, now);
        store_relaxed(&status_of(ctx_).phase, phase_);
    }

private:
    const TaskContext& ctx_;
    uint32_t phase_;
    uint64_t started_ns_;
};

// Time inside a body, less the waits it made. Without a constructor, so that it can lie in shared memory.
class TaskTimer {
public:
    // Before the SM's first task.
    OFA_INLINE void open() {
        ended_with_wait_ns_ = 0;
        timeline_.open();
    }
    OFA_INLINE void start(const TaskContext& ctx) {
        started_ns_ = now_ns();
        waited_ns_ = *ctx.waits_ns;
    }
    OFA_INLINE void stop(const TaskContext& ctx) {
        const uint64_t wait_ns = *ctx.waits_ns;
        record(ctx, started_ns_, now_ns(), wait_ns - waited_ns_, waited_ns_ - ended_with_wait_ns_);
        ended_with_wait_ns_ = wait_ns;
    }

    // Instead of both, where others have kept the times: `held_ns` it waited itself, `waited_ns` the SM before it.
    OFA_INLINE void record(const TaskContext& ctx, uint64_t began_ns, uint64_t ended_ns, uint64_t held_ns,
                           uint64_t waited_ns) {
        SmStatus& status = status_of(ctx);
        const uint32_t opcode = ctx.task->opcode;
        if (opcode < OPCODE_COUNT) add_relaxed(&status.op_ns[opcode], ended_ns - began_ns - held_ns);
        add_relaxed(&status.tasks_done, 1);
        store_relaxed(&status.heartbeat_ns, ended_ns);
        if (keeps_timeline(ctx)) timeline_.add(ctx, task_of(ctx), 1, began_ns, ended_ns, held_ns, waited_ns);
    }

    // Of tasks that are done together, before which the SM waited: one part after the other.
    OFA_INLINE void begin_parts(uint64_t waited_ns) { waited_ns_ = waited_ns; }
    OFA_INLINE void add_part(const TaskContext& ctx, uint32_t task, uint32_t tasks, uint64_t began_ns, uint64_t ended_ns,
                             uint64_t held_ns) {
        timeline_.add(ctx, task, tasks, began_ns, ended_ns, held_ns, waited_ns_);
        waited_ns_ = 0;
    }

    // When the SM has nothing to do.
    OFA_INLINE void publish(const TaskContext& ctx) const {
        if (keeps_timeline(ctx)) timeline_.publish(*ctx.launch, ctx.sm);
    }

private:
    uint64_t started_ns_;
    uint64_t waited_ns_, ended_with_wait_ns_;  // the SM's waits by the start of this task, by the end of the one before
    Timeline timeline_;
};

}  // namespace ofa
