// One token through the model: begin, products of a vector with a weight, attention to the cache.
#pragma once

#include "ops/rotary.h"
#include "platform/math.h"
#include "sched/boundary.h"
#include "serve/serve_state.h"

namespace ofa {

// Waits for the token's turn, applies what a person asked for, and pins a weight version. False when the run ends.
OFA_FUNCTION bool open_token(const TaskContext& ctx) {
    const Launch& launch = *ctx.launch;
    ServeState& serve = *launch.serve;
    const uint64_t interval_ns = load_relaxed(&launch.control->token_interval_ns);
    if (!pass_boundary(ctx, &serve.next_token_ns, [] { return false; })) return false;
    const uint64_t now = now_ns();
    serve.next_token_ns += interval_ns;
    if (serve.next_token_ns < now) serve.next_token_ns = now;  // a token that came late is not made up for
    apply_events(launch, CLOCK_TOKEN, serve.tokens, [&](const Event& event) {
        apply_token_event(serve, event);
        return true;
    });
    pin_version(serve);
    return true;
}

// table [V, C] -> x [1, C], the row of the input token.
OFA_OP void op_token_begin(Block& block, const TaskContext& ctx) {
    if (!block.broadcast([&] { return open_token(ctx); })) return;
    TaskContext pinned = ctx;
    pinned.version = load_relaxed(&ctx.launch->serve->pin);
    const float* row = pinned.operand<const float>(0).row(ctx.launch->serve->input_token);
    const Matrix<float> x = pinned.operand<float>(1);
    block.for_each(x.cols, [&](int64_t c) { x.data[c] = row[c]; });
}

// RMSNorm of x [1, C] with a gain, into scratch memory.
OFA_FUNCTION const float* norm_to_scratch(Block& block, const TaskContext& ctx) {
    const Matrix<const float> x = ctx.operand<const float>(0);
    const Matrix<const float> gain = ctx.operand<const float>(1);
    float* normed = block.scratch<float>();
    const float squares = block.sum(x.cols, [&](int64_t c) { return x.data[c] * x.data[c]; });
    const float scale = 1.0f / sqrtf(squares / float(x.cols) + ctx.launch->model.norm_epsilon);
    block.for_each(x.cols, [&](int64_t c) { normed[c] = x.data[c] * scale * gain.data[c]; });
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
    const float* x = norm_to_scratch(block, ctx);
    float* y = ctx.operand<float>(3).data;
    multiply_vector(block, ctx, x, ctx.operand<const float>(2), [=](int64_t c, float sum) { y[c] = sum; });
}

OFA_OP void op_decode_norm_matmul_gelu(Block& block, const TaskContext& ctx) {
    const float* x = norm_to_scratch(block, ctx);
    float* a = ctx.operand<float>(3).data;
    multiply_vector(block, ctx, x, ctx.operand<const float>(2),
                    [=](int64_t c, float sum) { a[c] = math::gelu(sum); });
}

OFA_OP void op_decode_matmul_residual(Block& block, const TaskContext& ctx) {
    const float* x = ctx.operand<const float>(0).data;
    const float* skip = ctx.operand<const float>(2).data;
    float* y = ctx.operand<float>(3).data;
    multiply_vector(block, ctx, x, ctx.operand<const float>(1),
                    [=](int64_t c, float sum) { y[c] = skip[c] + sum; });
}

// One head at the current position. Scratch: the rotated query, then a score per cache row.
OFA_OP void op_decode_attention(Block& block, const TaskContext& ctx) {
    const Model& model = ctx.launch->model;
    const int64_t width = model.width, size = model.head_dim, half = size / 2, first = ctx.col0();
    const int64_t position = ctx.launch->serve->position;
    const float* q = ctx.operand<const float>(0).data + first;
    const float* k = q + width;
    const float* v = k + width;
    const Matrix<float> keys = ctx.operand<float>(1), values = ctx.operand<float>(2);
    float* o = ctx.operand<float>(3).data + first;
    float* query = block.scratch<float>();
    float* scores = query + size;

    const float scale = 1.0f / sqrtf(float(size));
    float* new_key = keys.row(position) + first;
    float* new_value = values.row(position) + first;
    block.for_each(half, [&](int64_t i) {
        const double turns = double(position) * rotary_frequency(i, size, double(model.rope_base));
        const math::SineCosine angle = math::sine_cosine_of_turns(turns);
        rotate(q[i] * scale, q[i + half] * scale, angle.cosine, angle.sine, query[i], query[i + half]);
        rotate(k[i], k[i + half], angle.cosine, angle.sine, new_key[i], new_key[i + half]);
        new_value[i] = v[i];
        new_value[i + half] = v[i + half];
    });
    block.sync();

    const int64_t rows = position + 1;
    block.sum_rows(
        rows, size, [=](int64_t r, int64_t i) { return query[i] * keys.row(r)[first + i]; },
        [=](int64_t r, float sum) { scores[r] = sum; });
    block.sync();
    const float largest = block.max(rows, -INFINITY, [&](int64_t r) { return scores[r]; });
    block.for_each(rows, [&](int64_t r) { scores[r] = math::exp(scores[r] - largest); });
    block.sync();
    const float inverse = 1.0f / block.sum(rows, [&](int64_t r) { return scores[r]; });
    block.for_each(size, [&](int64_t c) { o[c] = 0.0f; });
    for (int64_t r = 0; r < rows; ++r) {
        const float weight = scores[r] * inverse;
        const float* value = values.row(r) + first;
        block.for_each(size, [&](int64_t c) { o[c] += weight * value[c]; });
    }
}

}  // namespace ofa
