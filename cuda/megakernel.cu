// The kernel: every SM runs run_block until the run is over. This file is its table of contents.
//
//   platform/  what a block can do, on a CPU thread and on an SM        task.h   what a body sees
//   sched/     roles, tickets, seats, waits, messages, events, abort    ops/     the task types, one file per subject
//   tile/      matrix products                                          doom/    the game
//
// Everything shared with the host is in Launch (ofa_tui/abi.py). The CPU build compiles this same file as C++.

#include "platform/platform.h"

#include "ofa_abi.h"
#include "task.h"

#include "sched/boundary.h"
#include "sched/queue.h"
#include "sched/wait.h"

#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/decode.h"
#include "ops/doom_tic.h"
#include "ops/embed.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/sample.h"
#include "ops/step.h"
#include "ops/stream.h"

#include "platform/dispatch.h"

namespace ofa {

// What a block keeps while a body runs. Its memory is shared by the block's threads, so that nothing has to stay in
// registers across the call of a body; the leader alone writes it.
struct Turn {
    TaskContext ctx;
    TaskTimer timer;
    Place place;
    uint32_t role;
    bool ahead;  // of TaskContext: whether tasks are claimed while another runs
    uint64_t waits_ns;
};

// What a block does once its leader has looked for a task.
constexpr uint32_t TURN_LEAVE = 0, TURN_PASS = 1, TURN_RUN = 2;

OFA_INLINE void enter(Turn& turn, const Launch& launch, uint32_t sm) {
    turn.ctx.launch = &launch;
    turn.ctx.sm = sm;
    turn.ctx.waits_ns = &turn.waits_ns;
    turn.waits_ns = 0;
    turn.place = {};
    turn.timer.open();
    turn.ahead = false;
    turn.role = load_acquire(&launch.roles[sm]);
    fetch_add_relaxed(&launch.telemetry->blocks_running, 1u);
}

OFA_INLINE void leave(const Turn& turn) {
    const Launch& launch = *turn.ctx.launch;
    show_no_task(launch, turn.ctx.sm, turn.role);
    fetch_add_relaxed(&launch.telemetry->blocks_running, ~0u);
}

// The leader's way to a task: a role, and a ticket of its queue.
OFA_INLINE uint32_t claim_turn(Turn& turn) {
    TaskContext& ctx = turn.ctx;
    const Launch& launch = *ctx.launch;
    turn.role = choose_role(launch, ctx.sm, turn.role, turn.place);
    const bool timed = turn.ahead || launch.timeline_entries != 0;  // else nobody asks when
    const uint64_t claimed_ns = timed ? now_ns() : 0;
    const uint64_t ticket = claim_ticket(launch, ctx.sm, turn.role, turn.place);
    if (ticket == TICKET_LEAVE) {
        leave(turn);
        return TURN_LEAVE;
    }
    if (ticket == TICKET_NONE || !locate_task(launch, ctx.sm, turn.role, ticket, &ctx)) {
        rest(launch, ctx.sm, turn.role);
        return TURN_PASS;
    }
    ctx.ahead = turn.ahead;
    ctx.claimed_ns = claimed_ns;
    store_relaxed(&launch.telemetry->sms[ctx.sm].role, turn.role);
    if (!ctx.ahead) show_task(ctx, PHASE_WAITING);
    return TURN_RUN;
}

// When the task's inputs are there: whether it is to be run.
OFA_INLINE uint32_t start_turn(Turn& turn) {
    TaskContext& ctx = turn.ctx;
    if (!wait_for_schedule(ctx) || is_over(ctx)) return TURN_PASS;
    if (!wait_for_opening(ctx, turn.place)) return TURN_PASS;
    ctx.version = weight_version(ctx);
    ctx.ready_ns = ctx.claimed_ns != 0 ? now_ns() : 0;
    return TURN_RUN;
}

OFA_INLINE uint32_t take_turn(Turn& turn) {
    uint32_t next = claim_turn(turn);
    if (next == TURN_RUN) next = wait_for_inputs(turn.ctx) ? start_turn(turn) : TURN_PASS;
    if (next != TURN_RUN) turn.timer.publish(turn.ctx);
    return next;
}

OFA_INLINE void begin_task(TaskTimer& timer, const TaskContext& ctx) {
    show_task(ctx, PHASE_RUNNING);
    timer.start(ctx);
}

OFA_INLINE void refuse(const TaskContext& ctx) {
    record_abort(ctx, ABORT_OPCODE, NONE_U32, OPCODE_COUNT, ctx.task->opcode);
}

// After a body: unless the run ended inside it, the signal that others wait for, before what nobody waits for.
OFA_INLINE void end_task(TaskTimer& timer, const TaskContext& ctx) {
    if (!is_over(ctx)) signal(ctx);
    timer.stop(ctx);
}

// False where nobody knows the task.
OFA_NOINLINE bool run_turn(Block& block, const TaskContext& ctx, uint32_t next) {
    return next != TURN_RUN || run_body(block, ctx);
}

// Part of the entry itself, so that the report on the entry's registers is a report on this loop. Between the barrier
// after a body and the one that hands out the next task nobody but the leader looks at `turn`.
OFA_INLINE void run_block(Block& block, const Launch& launch, Turn& turn) {
    if (block.leader()) enter(turn, launch, block.sm());
    for (;;) {
        const uint32_t next = block.broadcast([&] { return take_turn(turn); });
        if (next == TURN_LEAVE) return;
        const bool leads = next == TURN_RUN && block.leader();
        if (leads) begin_task(turn.timer, turn.ctx);
        // Whatever the turn is: under a condition, ptxas spills where threads meet again behind the call.
        if (!run_turn(block, turn.ctx, next) && leads) refuse(turn.ctx);
        block.sync();
        if (leads) end_task(turn.timer, turn.ctx);
    }
}

}  // namespace ofa

#include "platform/entry.h"
