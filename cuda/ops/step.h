// The frame around a training step and a held-out batch: open, loss, publish.
#pragma once

#include "sched/boundary.h"
#include "sched/events.h"

namespace ofa {

OFA_FUNCTION void open_train_iteration(Block& block, const TaskContext& ctx) {
    if (!block.leader()) return;
    uint64_t at_once = 0;
    const auto apply = [&] {
        apply_step_events(*ctx.launch, ctx.version);
        return false;
    };
    if (pass_boundary(ctx, &at_once, apply)) apply();
}

OFA_OP void op_step_begin(Block& block, const TaskContext& ctx) { open_train_iteration(block, ctx); }

OFA_OP void op_sweep_begin(Block& block, const TaskContext& ctx) { open_train_iteration(block, ctx); }

OFA_FUNCTION double sum_of_counted(Block& block, const TaskContext& ctx) {
    const Matrix<const float> losses = ctx.operand<const float>(0);
    return block.sum(losses.rows, [&](int64_t r) { return ctx.target(r) >= 0 ? double(*losses.row(r)) : 0.0; });
}

// losses [BT, 1] -> the step's entry of the loss log, nats per counted token.
OFA_OP void op_loss(Block& block, const TaskContext& ctx) {
    const double sum = sum_of_counted(block, ctx);
    if (block.leader()) ctx.launch->losses[ctx.row_of_iteration()] = float(sum / double(ctx.counted_rows()));
}

OFA_FUNCTION void finish_after(const TaskContext& ctx, uint64_t steps, uint64_t batches) {
    const Schedule& s = ctx.launch->schedule;
    if (steps == s.steps && batches == all_sweep_batches(s)) store_release(&ctx.launch->telemetry->finished, 1u);
}

OFA_OP void op_sweep_loss(Block& block, const TaskContext& ctx) {
    const double sum = sum_of_counted(block, ctx);
    if (!block.leader()) return;
    const Launch& launch = *ctx.launch;
    launch.sweep_sums[ctx.row_of_iteration()] = sum;
    launch.sweep_counts[ctx.row_of_iteration()] = uint64_t(ctx.counted_rows());
    store_release(&launch.telemetry->sweep_batches_done, ctx.iteration + 1);
    finish_after(ctx, ctx.version, ctx.iteration + 1);
}

// Version s + 1 is complete: say so, then wait until the server does not read version s - 1, whose copy the next step
// overwrites. Both sides store before they load, in one total order, so that either this block sees the server's pin
// or the server sees that its version has become too old.
OFA_OP void op_publish(Block& block, const TaskContext& ctx) {
    if (!block.leader()) return;
    const Launch& launch = *ctx.launch;
    const uint64_t step = ctx.iteration;
    launch.step_end_ns[ctx.row_of_iteration()] = now_ns() - launch.telemetry->started_ns;
    exchange_seq_cst(&launch.serve->published, step + 1);
    if (!wait_until(ctx, NONE_U32, step, [&] { return load_seq_cst(&launch.serve->pin); })) return;
    store_release(&launch.telemetry->steps_done, step + 1);
    finish_after(ctx, step + 1, load_acquire(&launch.telemetry->sweep_batches_done));
}

}  // namespace ofa
