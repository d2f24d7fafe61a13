// A pass of a few tokens through the model: begin, products of rows with a weight, attention to the caches.
#pragma once

#include "ops/rotary.h"
#include "platform/math.h"
#include "sched/boundary.h"
#include "serve/serve_state.h"

namespace ofa {

// Waits for the pass's turn, applies what a person asked for, chooses its tokens and pins a weight version. False when the
// run ends.
OFA_FUNCTION bool open_token(const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    ServeState& serve = *launch.serve;
    const uint64_t interval_ns = load_relaxed(&launch.control->token_interval_ns);
    if (!pass_boundary(ctx, &serve.next_token_ns, [] { return false; })) return false;
    const uint64_t now = now_ns();
    serve.next_token_ns += interval_ns;
    if (serve.next_token_ns < now) serve.next_token_ns = now;  // what came late is not made up for
    apply_events(launch, CLOCK_TOKEN, serve.tokens, [&](const Event& event) {
        apply_token_event(serve, event);
        return true;
    });
    choose_rows(launch);
    pin_version(serve);
    return true;
}

// table [V, C] -> x [PASS_ROWS, C], the rows of the input tokens.
OFA_OP void op_token_begin(Block& block, const TaskContext& ctx) {
    if (!block.broadcast([&] { return open_token(ctx); })) return;
    TaskContext pinned = ctx;
    pinned.version = load_relaxed(&ctx.launch->serve->pin);
    const Matrix<const float> table = pinned.operand<const float>(0);
    const Matrix<float> x = pinned.operand<float>(1);
    for_each_row(block, ctx, [&](int64_t r) {
        const float* from = table.row(ctx.launch->serve->rows[r].token);
        float* to = x.row(r);
        block.for_each(x.cols, [=](int64_t c) { to[c] = from[c]; });
    });
}

// RMSNorm of a row of x [PASS_ROWS, C] with a gain, into scratch memory.
OFA_FUNCTION const float* norm_to_scratch(Block& block, const TaskContext& ctx, int64_t row) {
    const Matrix<const float> x = ctx.operand<const float>(0);
    const float* from = x.row(row);
    const Matrix<const float> gain = ctx.operand<const float>(1);
    float* normed = block.scratch<float>();
    const float squares = block.sum(x.cols, [&](int64_t c) { return from[c] * from[c]; });
    const float scale = 1.0f / sqrtf(squares / float(x.cols) + ctx.launch->model.norm_epsilon);
    block.for_each(x.cols, [&](int64_t c) { normed[c] = from[c] * scale * gain.data[c]; });
    block.sync();
    return normed;
}

// store(c, x w[c]) for the output columns c of the task; w [out, in].
template <class Store>
OFA_INLINE void multiply_vector(Block& block, const TaskContext& ctx, const float* x, const Matrix<const float>& w,
                                Store store) {
    const int64_t first = ctx.col0();
    const float* weights = w.row(first);
    block.sum_rows(
        ctx.cols(), w.cols, [=](int64_t c, int64_t k) { return x[k] * weights[c * w.pitch + k]; },
        [=](int64_t c, float sum) { store(first + c, sum); });
}

OFA_OP void op_decode_norm_matmul(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t r) {
        const float* x = norm_to_scratch(block, ctx, r);
        float* y = ctx.operand<float>(3).row(r);
        multiply_vector(block, ctx, x, ctx.operand<const float>(2), [=](int64_t c, float sum) { y[c] = sum; });
    });
}

OFA_OP void op_decode_norm_matmul_gelu(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t r) {
        const float* x = norm_to_scratch(block, ctx, r);
        float* a = ctx.operand<float>(3).row(r);
        multiply_vector(block, ctx, x, ctx.operand<const float>(2),
                        [=](int64_t c, float sum) { a[c] = math::gelu(sum); });
    });
}

OFA_OP void op_decode_matmul_residual(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t r) {
        const float* x = ctx.operand<const float>(0).row(r);
        const float* skip = ctx.operand<const float>(2).row(r);
        float* y = ctx.operand<float>(3).row(r);
        multiply_vector(block, ctx, x, ctx.operand<const float>(1),
                        [=](int64_t c, float sum) { y[c] = skip[c] + sum; });
    });
}

// One head of a row of the pass. Scratch: the rotated query, then a score per cache row.
OFA_FUNCTION void attend_row(Block& block, const TaskContext& ctx, int64_t row) {
    const Model& model = ctx.launch->model;
    const int64_t width = model.width, size = model.head_dim, half = size / 2, first = ctx.col0();
    const Where where(ctx, row);
    const float* q = ctx.operand<const float>(0).row(row) + first;
    const float* k = q + width;
    const float* v = k + width;
    const Matrix<float> keys = ctx.operand<float>(1), values = ctx.operand<float>(2);
    float* o = ctx.operand<float>(3).row(row) + first;
    float* query = block.scratch<float>();
    float* scores = query + size;

    const float scale = 1.0f / sqrtf(float(size));
    float* new_key = keys.row(where.first + where.position) + first;
    float* new_value = values.row(where.first + where.position) + first;
    block.for_each(half, [&](int64_t i) {
        const double turns = double(where.position) * rotary_frequency(i, size, double(model.rope_base));
        const math::SineCosine angle = math::sine_cosine_of_turns(turns);
        rotate(q[i] * scale, q[i + half] * scale, angle.cosine, angle.sine, query[i], query[i + half]);
        rotate(k[i], k[i + half], angle.cosine, angle.sine, new_key[i], new_key[i + half]);
        new_value[i] = v[i];
        new_value[i + half] = v[i + half];
    });
    block.sync();

    const int64_t rows = where.position + 1;
    const float* const cached_keys = keys.row(where.first) + first;
    const float* const cached_values = values.row(where.first) + first;
    block.sum_rows(
        rows, size, [=](int64_t r, int64_t i) { return query[i] * cached_keys[r * keys.pitch + i]; },
        [=](int64_t r, float sum) { scores[r] = sum; });
    block.sync();
    const float largest = block.max(rows, -INFINITY, [&](int64_t r) { return scores[r]; });
    block.for_each(rows, [&](int64_t r) { scores[r] = math::exp(scores[r] - largest); });
    block.sync();
    const float inverse = 1.0f / block.sum(rows, [&](int64_t r) { return scores[r]; });
    block.for_each(size, [&](int64_t c) { o[c] = 0.0f; });
    for (int64_t r = 0; r < rows; ++r) {
        const float weight = scores[r] * inverse;
        const float* value = cached_values + r * values.pitch;
        block.for_each(size, [&](int64_t c) { o[c] += weight * value[c]; });
    }
}

OFA_OP void op_decode_attention(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t r) { attend_row(block, ctx, r); });
}

}  // namespace ofa
