// Steering: events that the host posts, applied at the boundaries of the clock they belong to.
#pragma once

#include "sched/abort.h"
#include "task.h"

namespace ofa {

// Applies the events of `clock` that are due at `now`, in the order they were posted. `apply` returns false for an
// event that is not the caller's, such as one for another game: it stays open.
template <class Apply>
OFA_INLINE void apply_events(const Launch& launch, uint32_t clock, uint64_t now, Apply apply) {
    const Control& control = *launch.control;
    Telemetry& telemetry = *launch.telemetry;
    if (load_acquire(&control.posted[clock]) == load_relaxed(&telemetry.events_first_open[clock])) return;
    // Several games share the tic clock, and several idle blocks the step clock of a finished run. Who holds it is done
    // soon; to go on without a look would apply an event a tic late.
    uint32_t* held = &launch.queues[clock + ROLE_TRAIN].events_held;
    for (uint32_t attempt = 1; !compare_exchange(held, 0u, 1u); ++attempt) {
        if (aborted(launch)) return;
        back_off(attempt);
    }
    const uint64_t posted = load_acquire(&control.posted[clock]);
    uint64_t* applied = telemetry.applied[clock];
    for (uint64_t n = load_relaxed(&telemetry.events_taken[clock]); n < posted; ++n)
        store_relaxed(&applied[n % EVENT_RING], uint64_t(NONE_U64));
    store_release(&telemetry.events_taken[clock], posted);
    const uint64_t first = load_relaxed(&telemetry.events_first_open[clock]);
    uint64_t first_open = posted;
    for (uint64_t n = first; n < posted; ++n) {
        const Event& event = control.events[clock][n % EVENT_RING];
        uint64_t* at = &applied[n % EVENT_RING];
        if (load_relaxed(at) != NONE_U64) continue;
        if (event.when <= now && apply(event))
            store_release(at, now);
        else if (n < first_open)
            first_open = n;
    }
    store_release(&telemetry.events_first_open[clock], first_open);
    store_release(held, 0u);
}

// Step events move SMs between roles. Each block reads its entry before its next task.
OFA_INLINE void apply_step_events(const Launch& launch, uint64_t step) {
    apply_events(launch, CLOCK_STEP, step, [&](const Event& event) {
        if (event.action != ACTION_SET_ROLE) return true;
        store_release(&launch.roles[event.target], uint32_t(event.args[0]));
        exchange_seq_cst(&launch.serve->seats_asked, 1u);
        return true;
    });
}

}  // namespace ofa
