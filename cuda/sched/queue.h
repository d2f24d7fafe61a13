// Roles and tickets: which task a block does next.
#pragma once

#include "sched/abort.h"
#include "sched/events.h"
#include "sched/jitter.h"
#include "sched/schedule.h"
#include "sched/seats.h"
#include "sched/status.h"

namespace ofa {

constexpr uint64_t TICKET_NONE = NONE_U64 - 1;   // nothing to do now
constexpr uint64_t TICKET_LEAVE = NONE_U64;      // the run is over for this block

OFA_INLINE uint32_t first_program(uint32_t role) {
    return role == ROLE_SERVE ? PROGRAM_DECODE : role == ROLE_DOOM ? PROGRAM_DOOM : PROGRAM_TRAIN;
}

OFA_INLINE uint64_t train_tickets(const Launch& launch) {
    const Schedule& s = launch.schedule;
    return s.steps * launch.programs[PROGRAM_TRAIN].n_tasks +
           all_sweep_batches(s) * launch.programs[PROGRAM_SWEEP].n_tasks;
}

// Whether no further ticket of this role will be run.
OFA_INLINE bool exhausted(const Launch& launch, uint32_t role) {
    if (role == ROLE_IDLE || launch.programs[first_program(role)].n_tasks == 0) return true;
    const Queue& queue = launch.queues[role];
    const uint64_t end = load_acquire(&queue.end);
    const uint64_t next = load_relaxed(&queue.next);
    return (end != 0 && next >= end - 1) || (role == ROLE_TRAIN && next >= train_tickets(launch));
}

// The role that a block takes up now. A program of whole iterations is left between two of them only: then every
// task of the iteration before is in somebody's hands, so that a token in flight is always finished. One of owned tasks
// is left when the block's seat ends.
OFA_INLINE uint32_t choose_role(const Launch& launch, uint32_t sm, uint32_t role, Place& place) {
    const uint32_t wanted = load_acquire(&launch.roles[sm]);
    if (wanted == role || exhausted(launch, role)) return wanted;
    const Program& program = launch.programs[first_program(role)];
    if (is_owned(program)) return gives_up_seat(launch, sm, program, place) ? wanted : role;
    const bool between = load_relaxed(&launch.queues[role].next) % program.n_tasks == 0;
    return program.claims != CLAIM_WHOLE || between ? wanted : role;
}

// The next ticket of a block with a seat: token * tasks + task.
OFA_INLINE uint64_t next_owned_ticket(const Launch& launch, uint32_t sm, const Program& program, Place& place) {
    const bool seated = has_seat(program, place) || (take_seat(launch, sm, place) && has_seat(program, place));
    return seated ? place.token * program.n_tasks + place.task++ : TICKET_NONE;
}

// The next of the queue's tickets or, of owned tasks, of the block's own.
OFA_INLINE uint64_t claim_ticket(const Launch& launch, uint32_t sm, uint32_t role, Place& place) {
    jitter(launch, sm);
    if (aborted(launch)) return TICKET_LEAVE;
    if (exhausted(launch, role)) return load_acquire(&launch.control->stop) != 0 ? TICKET_LEAVE : TICKET_NONE;
    const Program& program = launch.programs[first_program(role)];
    return is_owned(program) ? next_owned_ticket(launch, sm, program, place)
                             : fetch_add_relaxed(&launch.queues[role].next, uint64_t(1));
}

// Waits for better times, and in the place of the step that will not come applies step events after the last one.
OFA_INLINE void rest(const Launch& launch, uint32_t sm, uint32_t role) {
    show_no_task(launch, sm, role);
    if (load_acquire(&launch.telemetry->finished) != 0) apply_step_events(launch, launch.schedule.steps);
    sleep_ns(2000000);
}

// The task of a ticket; false for a ticket past the end of the schedule.
OFA_INLINE bool locate_task(const Launch& launch, uint32_t sm, uint32_t role, uint64_t ticket,
                            TaskContext* ctx) {
    TrainPlace place;
    if (role == ROLE_TRAIN) {
        place = train_place(launch.schedule, launch.programs[PROGRAM_TRAIN].n_tasks,
                            launch.programs[PROGRAM_SWEEP].n_tasks, ticket);
        if (place.program == NONE_U32) return false;
    } else {
        const uint32_t program = first_program(role);
        const uint64_t n_tasks = launch.programs[program].n_tasks;
        place = {program, uint32_t(ticket % n_tasks), ticket / n_tasks};
    }
    const Task* task = launch.programs[place.program].tasks + place.task;
    *ctx = {&launch, task, place.program, sm, place.iteration, 0, ticket, false, 0, 0, ctx->waits_ns};
    return true;
}

// The weight version a task reads; for a token the pinned one, known once the task's waits are over.
OFA_INLINE uint64_t weight_version(const TaskContext& ctx) {
    if (ctx.program == PROGRAM_TRAIN) return ctx.iteration;
    if (ctx.program == PROGRAM_SWEEP) return steps_before_sweep(ctx.launch->schedule, ctx.iteration);
    return ctx.program == PROGRAM_DECODE ? load_relaxed(&ctx.launch->serve->pin) : 0;
}

}  // namespace ofa
