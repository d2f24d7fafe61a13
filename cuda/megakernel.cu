// The kernel: every SM runs run_block until the run is over. This file is its table of contents.
//
//   platform/  what a block can do, on a CPU thread and on an SM        task.h   what a body sees
//   sched/     roles, tickets, waits, boundaries, events, abort         ops/     the task types, one file per subject
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

#include "ofa_dispatch.h"

namespace ofa {

// One task: its body, then, unless the run ended inside it, the signal that others wait for.
OFA_INLINE void run_task(Block& block, TaskContext& ctx) {
    ctx.version = weight_version(ctx);
    TaskTimer timer(ctx);
    if (block.leader()) show_task(ctx, PHASE_RUNNING);
    const bool known = run_body(block, ctx);
    block.sync();
    if (!block.leader()) return;
    if (!known) record_abort(ctx, ABORT_OPCODE, NONE_U32, OPCODE_COUNT, ctx.task->opcode);
    timer.stop();
    if (!aborted(*ctx.launch) && !past_end(ctx)) signal(ctx);
}

// Part of the entry itself, so that the report on the entry's registers is a report on this loop.
OFA_INLINE void run_block(Block& block, const Launch& launch) {
    const uint32_t sm = block.sm();
    if (block.leader()) fetch_add_relaxed(&launch.telemetry->blocks_running, 1u);
    uint32_t role = launch.roles[sm];
    for (;;) {
        role = block.broadcast([&] { return choose_role(launch, sm, role); });
        const uint64_t ticket = block.broadcast([&] { return claim_ticket(launch, sm, role); });
        if (ticket == TICKET_LEAVE) break;
        TaskContext ctx;
        if (ticket == TICKET_NONE || !locate_task(launch, sm, role, ticket, &ctx)) {
            if (block.leader()) rest(launch, sm, role);
            continue;
        }
        if (block.leader()) store_relaxed(&launch.telemetry->sms[sm].role, role);
        if (block.broadcast([&] {
                show_task(ctx, PHASE_WAITING);
                return wait_for_inputs(ctx);
            }))
            run_task(block, ctx);
    }
    if (block.leader()) {
        show_no_task(launch, sm, role);
        fetch_add_relaxed(&launch.telemetry->blocks_running, ~0u);
    }
}

}  // namespace ofa

#include "platform/entry.h"
