// The abort record: the first failure is written down once, and every block leaves by the normal exit.
#pragma once

#include "task.h"

namespace ofa {

OFA_INLINE bool aborted(const Launch& launch) {
    const uint32_t asked = load_relaxed(&launch.control->abort), failed = load_relaxed(&launch.telemetry->abort.code);
    return (asked | failed) != 0;  // one way to memory and back, not two
}

OFA_INLINE uint32_t role_of_program(uint32_t program) {
    return program == PROGRAM_DECODE ? ROLE_SERVE : program == PROGRAM_DOOM ? ROLE_DOOM : ROLE_TRAIN;
}

// `counter` is NONE_U32 for a failure that is not a counter's; `expected` and `seen` explain it.
OFA_INLINE void record_abort(const TaskContext& ctx, uint32_t code, uint32_t counter, uint64_t expected,
                               uint64_t seen) {
    Abort& record = ctx.launch->telemetry->abort;
    if (!compare_exchange(&record.taken, 0u, 1u)) return;
    record.role = role_of_program(ctx.program);
    record.sm = ctx.sm;
    record.program = ctx.program;
    record.task = uint32_t(ctx.task - ctx.launch->programs[ctx.program].tasks);
    record.opcode = ctx.task->opcode;
    record.counter = counter;
    record.iteration = ctx.iteration;
    record.expected = expected;
    record.seen = seen;
    record.time_ns = now_ns();
    store_release(&record.code, code);
}

// For a task that cannot be done as described, such as one with too little scratch memory.
OFA_INLINE bool check(const TaskContext& ctx, uint64_t expected_at_least, uint64_t seen) {
    if (seen >= expected_at_least) return true;
    record_abort(ctx, ABORT_CHECK, NONE_U32, expected_at_least, seen);
    return false;
}

}  // namespace ofa
