// A pass through the model by owned tasks that pass on messages. Weights are read in stream order.
//
// Every sum has an order of its own, whichever block computes it, so that tokens do not depend on how many serve. What
// is read of a message is in scratch memory of the block before anything is published: the buffer may be the same.
#pragma once

#include "ops/decode.h"
#include "ops/rotary.h"
#include "ops/stream_order.h"
#include "platform/math.h"
#include "sched/messages.h"
#include "sched/seats.h"
#include "serve/serve_state.h"

namespace ofa {

// Scratch memory that the bodies below need, in bytes.
OFA_FUNCTION uint64_t streaming_scratch_bytes(const Model& model) {
    const uint64_t input = model.width > model.feed_forward ? model.width : model.feed_forward;
    const uint64_t product = input + model.width;
    const uint64_t qkv = model.width + 3 * uint64_t(model.head_dim);
    const uint64_t attention = 2 * uint64_t(model.context) + model.head_dim;
    const uint64_t larger = product > qkv ? product : qkv;
    return sizeof(float) * (larger > attention ? larger : attention);
}

// A part of a head: two runs of columns, half a head apart, so that rotary partners stay together.
struct Unit {
    int64_t part, parts;  // of the head
    int64_t head, size;   // number of the head, its columns
    int64_t run, cols;    // columns of a run, of both

    OFA_INLINE explicit Unit(const TaskContext& ctx)
        : part(ctx.row0()),
          parts(ctx.rows()),
          head(ctx.col0() / ctx.cols()),
          size(ctx.cols()),
          run(size / (2 * parts)),
          cols(2 * run) {}

    // Element e of the unit as a column of its head. e and e + run are partners.
    OFA_INLINE int64_t in_head(int64_t e) const { return part * run + (e < run ? e : size / 2 + e - run); }
    // The same as a column of all heads.
    OFA_INLINE int64_t column(int64_t e) const { return head * size + in_head(e); }
    // In the message of scores [units, PASS_ROWS * context], where those of a row of the pass lie one behind the other.
    OFA_INLINE int64_t row_of_scores(int64_t of_part) const { return head * parts + of_part; }
};

OFA_INLINE int64_t first_score(const TaskContext& ctx, int64_t row) { return row * ctx.launch->model.context; }

// A row of message i of a task, whole, into `to`.
OFA_INLINE bool receive_all(Block& block, const TaskContext& ctx, int i, int64_t row, float* to) {
    const Message message = message_of(ctx, i);
    return receive(block, ctx, message, row, 0, message.packets.cols, to);
}

// RMSNorm of a row of message 0 with gain 1, into `normed`.
OFA_FUNCTION bool receive_normed(Block& block, const TaskContext& ctx, int64_t row, float* normed) {
    if (!receive_all(block, ctx, 0, row, normed)) return false;
    const Matrix<const float> gain = ctx.operand<const float>(1);
    const float squares = block.sum(gain.cols, [=](int64_t c) { return normed[c] * normed[c]; });
    const float scale = 1.0f / sqrtf(squares / float(gain.cols) + ctx.launch->model.norm_epsilon);
    block.for_each(gain.cols, [=](int64_t c) { normed[c] *= scale * gain.data[c]; });
    block.sync();
    return true;
}

// store(c, x w[c]) for the output columns c of the task; w [out, in] in stream order.
template <class Store>
OFA_INLINE void multiply_streamed(Block& block, const TaskContext& ctx, const float* x, int w, Store store) {
    const Streamed<const float> weight = streamed_operand<const float>(ctx, w);
    const int64_t first = ctx.col0();
    block.sum_rows(
        ctx.cols(), weight.cols, [=](int64_t c, int64_t k) { return x[k] * weight.at(first + c, k); },
        [=](int64_t c, float sum) { store(first + c, sum); });
}

// table [V, C] -> message x [PASS_ROWS, C], the rows of the input tokens.
OFA_OP void op_stream_begin(Block& block, const TaskContext& ctx) {
    const uint64_t needed = streaming_scratch_bytes(ctx.launch->model);
    const auto open = [&] {
        if (!check(ctx, needed, block.scratch_bytes()) || !open_token(ctx)) return false;
        open_to_blocks(ctx);
        return true;
    };
    if (!block.broadcast(open)) return;
    TaskContext pinned = ctx;
    pinned.version = load_relaxed(&ctx.launch->serve->pin);
    const Matrix<const float> table = pinned.operand<const float>(0);
    const Message x = message_of(ctx, 1);
    for_each_row(block, ctx, [&](int64_t r) {
        const float* const from = table.row(ctx.launch->serve->rows[r].token);
        block.for_each(x.packets.cols, [=](int64_t c) { publish(x, r, c, from[c]); });
    });
}

// Turns a unit's q, scaled, and k to their position; write(e, partner, ...) is given a pair of the new keys.
template <class Write>
OFA_INLINE void turn_pairs(Block& block, const TaskContext& ctx, const Unit& unit, int64_t position, float* q,
                           const float* k, Write write) {
    const float scale = 1.0f / sqrtf(float(unit.size));
    const double base = double(ctx.launch->model.rope_base);
    block.for_each(unit.run, [=](int64_t e) {
        const int64_t partner = e + unit.run;
        const double turns = double(position) * rotary_frequency(unit.in_head(e), unit.size, base);
        const math::SineCosine angle = math::sine_cosine_of_turns(turns);
        float key, partner_key;
        rotate(q[e] * scale, q[partner] * scale, angle.cosine, angle.sine, q[e], q[partner]);
        rotate(k[e], k[partner], angle.cosine, angle.sine, key, partner_key);
        write(e, partner, key, partner_key);
    });
    block.sync();
}

OFA_FUNCTION void stream_qkv_row(Block& block, const TaskContext& ctx, int64_t row) {
    const Unit unit(ctx);
    const int64_t width = ctx.launch->model.width, n = unit.cols;
    float* const x = block.scratch<float>();
    float* const q = x + width;
    float* const k = q + n;
    float* const v = k + n;
    if (!receive_normed(block, ctx, row, x)) return;
    const Streamed<const float> weight = streamed_operand<const float>(ctx, 2);
    block.sum_rows(
        3 * n, width,
        [=](int64_t j, int64_t i) { return x[i] * weight.at(j / n * width + unit.column(j % n), i); },
        [=](int64_t j, float sum) { q[j] = sum; });
    block.sync();

    const Where where(ctx, row);
    const Matrix<float> keys = ctx.operand<float>(3), values = ctx.operand<float>(4);
    float* const new_key = keys.row(where.first + where.position);
    float* const new_value = values.row(where.first + where.position);
    turn_pairs(block, ctx, unit, where.position, q, k, [=](int64_t e, int64_t partner, float key, float partner_key) {
        new_key[unit.column(e)] = key;
        new_key[unit.column(partner)] = partner_key;
        new_value[unit.column(e)] = v[e];
        new_value[unit.column(partner)] = v[partner];
    });

    const Message scores = message_of(ctx, 5);
    const int64_t of_unit = unit.row_of_scores(unit.part), first = first_score(ctx, row);
    const float* const cached = keys.row(where.first);
    block.sum_rows(
        where.position + 1, n, [=](int64_t r, int64_t e) { return q[e] * cached[r * keys.pitch + unit.column(e)]; },
        [=](int64_t r, float sum) { publish(scores, of_unit, first + r, sum); });
}

// The unit's columns of q, k and v at the position of each row; k and v join its cache. The part of q k^T that they make
// up, for every position so far.
OFA_OP void op_stream_qkv(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t row) { stream_qkv_row(block, ctx, row); });
}

OFA_FUNCTION void stream_attention_row(Block& block, const TaskContext& ctx, int64_t row) {
    const Unit unit(ctx);
    const Where where(ctx, row);
    const int64_t rows = where.position + 1, first = first_score(ctx, row);
    float* const scores = block.scratch<float>();
    float* const part = scores + rows;
    float* const o = part + rows;
    const Message parts = message_of(ctx, 0);
    if (!receive(block, ctx, parts, unit.row_of_scores(0), first, rows, scores)) return;
    for (int64_t other = 1; other < unit.parts; ++other) {
        if (!receive(block, ctx, parts, unit.row_of_scores(other), first, rows, part)) return;
        block.for_each(rows, [=](int64_t r) { scores[r] += part[r]; });
        block.sync();
    }
    const float largest = block.max(rows, -INFINITY, [=](int64_t r) { return scores[r]; });
    block.for_each(rows, [=](int64_t r) { scores[r] = math::exp(scores[r] - largest); });
    block.sync();
    const float inverse = 1.0f / block.sum(rows, [=](int64_t r) { return scores[r]; });
    const Matrix<const float> values = ctx.operand<const float>(1);
    block.for_each(unit.cols, [=](int64_t e) { o[e] = 0.0f; });
    for (int64_t r = 0; r < rows; ++r) {
        const float weight = scores[r] * inverse;
        const float* const value = values.row(where.first + r);
        block.for_each(unit.cols, [=](int64_t e) { o[e] += weight * value[unit.column(e)]; });
    }
    const Message attention = message_of(ctx, 2);
    block.for_each(unit.cols, [=](int64_t e) { publish(attention, row, unit.column(e), o[e]); });
}

// The parts of the head's scores added up, softmax, and the unit's columns of the weighted sum of values.
OFA_OP void op_stream_attention(Block& block, const TaskContext& ctx) {
    for_each_row(block, ctx, [&](int64_t row) { stream_attention_row(block, ctx, row); });
}

OFA_OP void op_stream_matmul_residual(Block& block, const TaskContext& ctx) {
    const int64_t first = ctx.col0();
    const Message skipped = message_of(ctx, 2), y = message_of(ctx, 3);
    float* const skip = block.scratch<float>();
    float* const x = skip + ctx.cols();
    for_each_row(block, ctx, [&](int64_t row) {
        if (!receive(block, ctx, skipped, row, first, ctx.cols(), skip) || !receive_all(block, ctx, 0, row, x)) return;
        multiply_streamed(block, ctx, x, 1, [=](int64_t c, float sum) { publish(y, row, c, skip[c - first] + sum); });
    });
}

OFA_OP void op_stream_norm_matmul_gelu(Block& block, const TaskContext& ctx) {
    float* const x = block.scratch<float>();
    const Message a = message_of(ctx, 3);
    for_each_row(block, ctx, [&](int64_t row) {
        if (!receive_normed(block, ctx, row, x)) return;
        multiply_streamed(block, ctx, x, 2, [=](int64_t c, float sum) { publish(a, row, c, math::gelu(sum)); });
    });
}

OFA_OP void op_stream_norm_matmul(Block& block, const TaskContext& ctx) {
    float* const x = block.scratch<float>();
    for_each_row(block, ctx, [&](int64_t row) {
        if (!receive_normed(block, ctx, row, x)) return;
        float* const y = ctx.operand<float>(3).row(row);
        multiply_streamed(block, ctx, x, 2, [=](int64_t c, float sum) { y[c] = sum; });
    });
}

}  // namespace ofa
