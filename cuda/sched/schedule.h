// Which step or sweep batch a ticket of the train role belongs to: pure arithmetic on abi.SCHEDULE.
#pragma once

#include "ofa_abi.h"
#include "platform/platform.h"

namespace ofa {

// Sweeps between steps; the one after the last step is not among them.
OFA_INLINE uint64_t intermediate_sweeps(const Schedule& s) {
    return s.sweep_every == 0 || s.steps == 0 ? 0 : (s.steps - 1) / s.sweep_every;
}

OFA_INLINE uint64_t all_sweep_batches(const Schedule& s) {
    return intermediate_sweeps(s) * s.sweep_batches + s.final_batches;
}

// Row of valid_windows that iteration `i` of the sweep program reads.
OFA_INLINE uint64_t sweep_batch(const Schedule& s, uint64_t i) {
    const uint64_t intermediate = intermediate_sweeps(s) * s.sweep_batches;
    return i < intermediate ? i % s.sweep_batches : i - intermediate;
}

// Steps that come before iteration `i` of the sweep program: the weight version it measures.
OFA_INLINE uint64_t steps_before_sweep(const Schedule& s, uint64_t i) {
    const uint64_t sweeps = intermediate_sweeps(s);
    return i < sweeps * s.sweep_batches ? (i / s.sweep_batches + 1) * s.sweep_every : s.steps;
}

// Iterations of the sweep program that come before step `step`.
OFA_INLINE uint64_t sweep_batches_before_step(const Schedule& s, uint64_t step) {
    return s.sweep_every == 0 ? 0 : step / s.sweep_every * s.sweep_batches;
}

struct TrainPlace {
    uint32_t program;  // PROGRAM_TRAIN, PROGRAM_SWEEP, or NONE_U32 past the end of the run
    uint32_t task;
    uint64_t iteration;
};

// `step_tasks` and `sweep_tasks`: tasks per iteration of the two programs.
OFA_INLINE TrainPlace train_place(const Schedule& s, uint64_t step_tasks, uint64_t sweep_tasks,
                                  uint64_t ticket) {
    const uint64_t sweeps = intermediate_sweeps(s);
    const uint64_t cycle_steps = s.sweep_every * step_tasks;
    const uint64_t cycle = cycle_steps + s.sweep_batches * sweep_tasks;
    if (sweeps > 0 && ticket < sweeps * cycle) {
        const uint64_t n = ticket / cycle;
        const uint64_t rest = ticket % cycle;
        if (rest < cycle_steps)
            return {PROGRAM_TRAIN, uint32_t(rest % step_tasks), n * s.sweep_every + rest / step_tasks};
        const uint64_t in_sweep = rest - cycle_steps;
        const uint64_t batch = n * s.sweep_batches + in_sweep / sweep_tasks;
        return {PROGRAM_SWEEP, uint32_t(in_sweep % sweep_tasks), batch};
    }
    const uint64_t first_step = sweeps * s.sweep_every;
    const uint64_t rest = ticket - sweeps * cycle;
    const uint64_t last_steps = (s.steps - first_step) * step_tasks;
    if (rest < last_steps)
        return {PROGRAM_TRAIN, uint32_t(rest % step_tasks), first_step + rest / step_tasks};
    const uint64_t in_sweep = rest - last_steps;
    if (in_sweep >= s.final_batches * sweep_tasks) return {NONE_U32, 0, 0};
    const uint64_t batch = sweeps * s.sweep_batches + in_sweep / sweep_tasks;
    return {PROGRAM_SWEEP, uint32_t(in_sweep % sweep_tasks), batch};
}

}  // namespace ofa
