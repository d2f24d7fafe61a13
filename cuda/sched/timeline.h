// The timeline: what an SM has run and when, a ring of entries in memory that the host copies at leisure. An SM has one
// writer. Nothing that is computed depends on it.
#pragma once

#include "task.h"

namespace ofa {

OFA_INLINE bool keeps_timeline(const TaskContext& ctx) { return ctx.launch->timeline_entries != 0; }

OFA_INLINE uint32_t task_of(const TaskContext& ctx) {
    return uint32_t(ctx.task - ctx.launch->programs[ctx.program].tasks);
}

// In the memory of its writer. Without a constructor, so that it can lie in shared memory.
class Timeline {
public:
    OFA_INLINE void open() { written_ = 0; }

    // `tasks` tasks of the context's iteration, the first of which is `task`; the fields of abi.TIMELINE_ENTRY.
    OFA_INLINE void add(const TaskContext& ctx, uint32_t task, uint32_t tasks, uint64_t began_ns, uint64_t ended_ns,
                        uint64_t held_ns, uint64_t waited_ns) {
        const Launch& launch = *ctx.launch;
        const uint64_t entries = launch.timeline_entries;
        const uint32_t what = (ctx.program * TIMELINE_TOGETHER + tasks - 1) * TIMELINE_TASKS + task;
        launch.timeline[ctx.sm * entries + (written_ & (entries - 1))] = {
            began_ns,
            limited(ended_ns - began_ns),
            limited(held_ns),
            limited(waited_ns),
            limited(began_ns - ctx.claimed_ns),
            uint32_t(ctx.iteration),
            what,
        };
        if (++written_ % TIMELINE_BATCH == 0) publish(launch, ctx.sm);
    }

    OFA_INLINE void publish(const Launch& launch, uint32_t sm) const {
        release_to_blocks(&launch.telemetry->timeline[sm], written_);
    }

private:
    static OFA_INLINE uint32_t limited(uint64_t ns) { return ns < NONE_U32 ? uint32_t(ns) : NONE_U32; }

    uint64_t written_;
};

}  // namespace ofa
