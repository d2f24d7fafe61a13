// From logits to the next token: temperature, the k likeliest, the likeliest that make up p, one draw.
#pragma once

#include "platform/math.h"
#include "random.h"
#include "sched/abort.h"
#include "serve/serve_state.h"

namespace ofa {

constexpr int64_t DRAW_CHUNK = 256;

OFA_INLINE int64_t draw_chunks(int64_t n) { return (n + DRAW_CHUNK - 1) / DRAW_CHUNK; }

// Scratch memory that the bodies of the decode program need, in bytes.
OFA_FUNCTION uint64_t serving_scratch_bytes(const Model& model) {
    const uint64_t sampling = uint64_t(model.vocab) + uint64_t(draw_chunks(model.vocab));
    const uint64_t attention = uint64_t(model.head_dim) + model.context;
    const uint64_t larger = sampling > attention ? sampling : attention;
    return sizeof(float) * (larger > model.width ? larger : model.width);
}

// Largest weight t such that enough(t) holds, by bisection over the bits of floats in [0, 1]: their order is that of
// the numbers. enough(0) must hold, and must not hold again above a t for which it fails.
template <class Enough>
OFA_INLINE float largest_threshold(Enough enough) {
    uint32_t low = 0, high = math::bits_of(1.0f) + 1;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (enough(math::float_of(middle)))
            low = middle;
        else
            high = middle;
    }
    return math::float_of(low);
}

// First id, in order, at which the sum of the weights passes u times their total. The weights are summed in chunks
// that are independent of each other, so that a block shares the work and one thread only walks over chunks.
OFA_FUNCTION int32_t draw(Block& block, const float* weights, float* chunk_sums, int64_t n, double u) {
    const int64_t chunks = draw_chunks(n);
    block.for_each(chunks, [&](int64_t chunk) {
        const int64_t end = (chunk + 1) * DRAW_CHUNK < n ? (chunk + 1) * DRAW_CHUNK : n;
        float sum = 0.0f;
        for (int64_t i = chunk * DRAW_CHUNK; i < end; ++i) sum += weights[i];
        chunk_sums[chunk] = sum;
    });
    block.sync();
    return block.broadcast([&] {
        double total = 0.0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk) total += double(chunk_sums[chunk]);
        double left = u * total;
        int64_t chunk = 0;
        while (chunk + 1 < chunks && left >= double(chunk_sums[chunk])) left -= double(chunk_sums[chunk++]);
        int64_t chosen = -1;  // the last id with a weight, should rounding leave nothing over
        for (int64_t i = chunk * DRAW_CHUNK; i < n && (chosen < 0 || left >= 0.0); ++i) {
            if (weights[i] <= 0.0f) continue;
            chosen = i;
            left -= double(weights[i]);
            if (left < 0.0) break;
        }
        return int32_t(chosen < 0 ? 0 : chosen);
    });
}

// The likeliest id; of equals the lowest.
OFA_FUNCTION int32_t greedy(Block& block, const float* logits, int64_t n, float largest) {
    return int32_t(n) - 1 - block.max(n, int32_t(0), [=](int64_t i) {
        return logits[i] == largest ? int32_t(n - 1 - i) : int32_t(0);
    });
}

// The random number that the row's next token is drawn by. Rows before it are of the stream, too.
OFA_INLINE double draw_of_row(const TaskContext& ctx, int64_t row, const Stream& stream) {
    const uint32_t before = ctx.launch->serve->rows[row].position - stream.position;
    return random_unit(stream.random_seed, stream.tokens + before);
}

// Ids past `vocab_used` are padding of the matrix and are never chosen. Ties with the k-th likeliest all stay.
OFA_FUNCTION int32_t sample_token(Block& block, const TaskContext& ctx, int64_t row, const Stream& stream) {
    const float* logits = ctx.operand<const float>(0).row(row);
    const int64_t n = ctx.launch->serve->vocab_used;
    const float largest = block.max(n, -INFINITY, [=](int64_t i) { return logits[i]; });
    if (!(stream.temperature > 0.0f)) return greedy(block, logits, n, largest);

    float* weights = block.scratch<float>();
    const float inverse = 1.0f / stream.temperature;
    block.for_each(n, [&](int64_t i) { weights[i] = math::exp((logits[i] - largest) * inverse); });
    block.sync();
    const int64_t k = stream.top_k;
    if (k > 0 && k < n) {
        const float least = largest_threshold([&](float t) {
            return block.sum(n, [=](int64_t i) { return weights[i] >= t ? 1 : 0; }) >= k;
        });
        block.for_each(n, [&](int64_t i) { weights[i] = weights[i] >= least ? weights[i] : 0.0f; });
        block.sync();
    }
    if (stream.top_p < 1.0f) {
        const float wanted = stream.top_p * block.sum(n, [=](int64_t i) { return weights[i]; });
        const float least = largest_threshold([&](float t) {
            return block.sum(n, [=](int64_t i) { return weights[i] >= t ? weights[i] : 0.0f; }) >= wanted;
        });
        block.for_each(n, [&](int64_t i) { weights[i] = weights[i] >= least ? weights[i] : 0.0f; });
        block.sync();
    }
    return draw(block, weights, weights + n, n, draw_of_row(ctx, row, stream));
}

// The token that follows a row of the pass; sampled(row, stream) is asked for it by all threads where that is not still
// the prompt.
template <class Sampled>
OFA_INLINE int32_t next_of_row(Block& block, const TaskContext& ctx, int64_t r, Sampled sampled) {
    const ServeState& serve = *ctx.launch->serve;
    const PassRow& row = serve.rows[r];
    const int32_t next = row.prompt_token >= 0 ? row.prompt_token : sampled(r, serve.streams[row.stream]);
    block.sync();
    return next;
}

// A row of logits [PASS_ROWS, V] -> next [PASS_ROWS, 1], i4. A pass of one row leaves that to the task that ends it, which
// saves a hand-off.
template <class Sampled>
OFA_INLINE void sample_row(Block& block, const TaskContext& ctx, Sampled sampled) {
    const int64_t r = ctx.row0(), n = ctx.launch->serve->n_rows;
    if (n == 1 || r >= n) return;
    const int32_t next = next_of_row(block, ctx, r, sampled);
    if (block.leader()) *ctx.operand<int32_t>(1).row(r) = next;
}

// Ends a pass.
template <class Sampled>
OFA_INLINE void sample(Block& block, const TaskContext& ctx, Sampled sampled) {
    const bool alone = ctx.launch->serve->n_rows == 1;
    const int32_t first = alone ? next_of_row(block, ctx, 0, sampled) : 0;
    if (!block.leader()) return;
    const Matrix<const int32_t> next = ctx.operand<const int32_t>(1);
    end_pass(ctx, [&](uint32_t r) { return alone ? first : *next.row(r); });
}

OFA_INLINE bool can_sample(Block& block, const TaskContext& ctx) {
    const uint64_t needed = serving_scratch_bytes(ctx.launch->model);
    return block.broadcast([&] { return check(ctx, needed, block.scratch_bytes()); });
}

OFA_OP void op_sample_row(Block& block, const TaskContext& ctx) {
    if (!can_sample(block, ctx)) return;
    sample_row(block, ctx, [&](int64_t r, const Stream& stream) { return sample_token(block, ctx, r, stream); });
}

OFA_OP void op_sample(Block& block, const TaskContext& ctx) {
    if (!can_sample(block, ctx)) return;
    sample(block, ctx, [&](int64_t r, const Stream& stream) { return sample_token(block, ctx, r, stream); });
}

}  // namespace ofa
