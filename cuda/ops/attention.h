// Causal attention of one sequence and one head: T queries, keys and values of D columns.
//
//   forward    S = q k^T / sqrt(D) with rotated q, k;  o = softmax(S) v;  lse = ln sum exp S
//   backward   P = exp(S - lse);  dv = P^T do;  dS = P (do v^T - rowsum(do o));  dq = dS k / sqrt(D);
//              dk = dS^T q / sqrt(D);  then dq and dk turned back
//
// Both walk over blocks of KEYS keys and take only the queries that see them, so that the upper triangle is
// not computed. Queries are scaled by 1 / sqrt(D) when they are rotated.
#pragma once

#include "ops/matmul.h"
#include "ops/prefetch.h"
#include "ops/rotary.h"

namespace ofa {

constexpr int ATTENTION_KEYS = 32;      // keys per block: the width of a panel of the tile product
constexpr int ATTENTION_QUERIES = 128;  // queries of the forward pass whose scores are held at a time
constexpr float HIDDEN_SCORE = -1e30f;  // of a key after the query

// Scratch memory for a sequence of T positions. Every part starts at a multiple of 64 bytes.
struct AttentionScratch {
    float* product;  // of the tile products
    double* turn;    // [4, D / 2] cosine and sine of one position's turn, and of all turns so far
    float* cosine;   // [T, D / 2]
    float* sine;     // [T, D / 2]
    float* q;        // [T, D] rotated and scaled
    float* k;        // [T, D] rotated
    float* dq;       // [T, D] backward only
    float* dk;       // [KEYS, D] backward only
    float* row;      // [T] forward 1 / sum exp, backward rowsum(do o)
    float* scores;   // forward [QUERIES, T], backward [T, KEYS]
    float* dscores;  // [T, KEYS] backward only

    // Divides `memory`, or nothing where it is null, into the parts; returns the number of bytes in all.
    OFA_INLINE uint64_t divide(float* memory, int64_t length, int64_t head_dim) {
        int64_t used = 0;
        auto take = [&](int64_t floats) {
            float* const part = memory == nullptr ? nullptr : memory + used;
            used += (floats + 15) / 16 * 16;
            return part;
        };
        product = take(tile::SCRATCH_FLOATS);
        turn = reinterpret_cast<double*>(take(4 * head_dim));
        cosine = take(length * head_dim / 2);
        sine = take(length * head_dim / 2);
        q = take(length * head_dim);
        k = take(length * head_dim);
        dq = take(length * head_dim);
        dk = take(ATTENTION_KEYS * head_dim);
        row = take(length);
        scores = take(length * ATTENTION_QUERIES);
        dscores = take(length * ATTENTION_KEYS);
        return uint64_t(used) * sizeof(float);
    }
};

// Scratch memory that the bodies of the training and sweep programs need, in bytes.
OFA_FUNCTION uint64_t training_scratch_bytes(const Model& model) {
    AttentionScratch parts;
    return parts.divide(nullptr, model.context, model.head_dim);
}

// What both passes see of one sequence and head.
struct AttentionHead {
    int length, head_dim;
    float scale;
    Matrix<float> q, k, v;  // [T, D] parts of qkv
    AttentionScratch scratch;

    OFA_INLINE AttentionHead(Block& block, const TaskContext& ctx)
        : length(int(ctx.rows())),
          head_dim(int(ctx.cols())),
          scale(1.0f / sqrtf(float(head_dim))),
          q(part_of(ctx, 0, 0)),
          k(part_of(ctx, 0, 1)),
          v(part_of(ctx, 0, 2)) {
        scratch.divide(block.scratch<float>(), length, head_dim);
    }

    // The head's part 0 (q), 1 (k) or 2 (v) of operand i, a matrix [rows, 3 * width].
    static OFA_INLINE Matrix<float> part_of(const TaskContext& ctx, int i, int64_t part) {
        const Matrix<float> all = ctx.operand<float>(i);
        return {all.row(ctx.row0()) + part * (all.cols / 3) + ctx.col0(), all.pitch, ctx.rows(), ctx.cols()};
    }

    static OFA_INLINE tile::Source rows_of(Matrix<float> matrix, int row) {
        return {matrix.row(row), matrix.pitch};
    }
    OFA_INLINE tile::Source rotated_q(int row) const { return tile::Source{scratch.q, head_dim}.from(row, 0); }
    OFA_INLINE tile::Source rotated_k(int row) const { return tile::Source{scratch.k, head_dim}.from(row, 0); }
};

// A head's column of lse [rows, H], from the task's first row on.
struct Column {
    float* data;
    int64_t pitch;

    OFA_INLINE float* at(int row) const { return data + row * pitch; }
};

OFA_INLINE Column lse_column(const TaskContext& ctx, int i) {
    const Matrix<float> lse = ctx.operand<float>(i);
    return {lse.row(ctx.row0()) + ctx.col0() / ctx.cols(), lse.pitch};
}

// Fills scratch.q, k, cosine and sine. The angle of a position is that of the one before and one more turn:
// in double the error of a long sequence is far below that of the floats which are stored. Column pair i
// belongs to one thread.
OFA_NOINLINE void rotate_queries_and_keys(Block& block, const AttentionHead& head, float rope_base) {
    const int64_t half = head.head_dim / 2;
    double* const OFA_RESTRICT step_cosine = head.scratch.turn;
    double* const OFA_RESTRICT step_sine = step_cosine + half;
    double* const OFA_RESTRICT angle_cosine = step_sine + half;
    double* const OFA_RESTRICT angle_sine = angle_cosine + half;
    double* const radians = angle_sine;
    if (block.leader()) {
        const double ratio = rotary_ratio(head.head_dim, double(rope_base));
        radians[0] = 1.0;
        for (int64_t i = 1; i < half; ++i) radians[i] = radians[i - 1] * ratio;
    }
    block.sync();
    block.for_each(half, [=](int64_t i) {
        step_cosine[i] = cosine_of_small(radians[i]);
        step_sine[i] = sine_of_small(radians[i]);
        angle_cosine[i] = 1.0;
        angle_sine[i] = 0.0;
    });
    for (int64_t t = 0; t < head.length; ++t) {
        const float* const OFA_RESTRICT q = head.q.row(t);
        const float* const OFA_RESTRICT k = head.k.row(t);
        float* const OFA_RESTRICT rotated_q = head.scratch.q + t * head.head_dim;
        float* const OFA_RESTRICT rotated_k = head.scratch.k + t * head.head_dim;
        float* const OFA_RESTRICT cosines = head.scratch.cosine + t * half;
        float* const OFA_RESTRICT sines = head.scratch.sine + t * half;
        const float scale = head.scale;
        prefetch_row(head.q, t + ROWS_AHEAD);
        prefetch_row(head.k, t + ROWS_AHEAD);
        block.for_each(half, [=](int64_t i) {
            const double c = angle_cosine[i], s = angle_sine[i];
            const float cosine = float(c), sine = float(s);
            cosines[i] = cosine;
            sines[i] = sine;
            rotate(q[i] * scale, q[i + half] * scale, cosine, sine, rotated_q[i], rotated_q[i + half]);
            rotate(k[i], k[i + half], cosine, sine, rotated_k[i], rotated_k[i + half]);
            angle_cosine[i] = c * step_cosine[i] - s * step_sine[i];
            angle_sine[i] = s * step_cosine[i] + c * step_sine[i];
        });
    }
    block.sync();
}

// to[first + i] = from[i] times `factor`, turned back from position first + i.
OFA_NOINLINE void turn_back(Block& block, const AttentionHead& head, Matrix<float> from, float factor, int64_t first,
                            Matrix<float> to) {
    const int64_t half = head.head_dim / 2;
    for (int64_t i = 0; i < from.rows; ++i) {
        const float* const OFA_RESTRICT in = from.row(i);
        float* const OFA_RESTRICT out = to.row(first + i);
        const float* const OFA_RESTRICT cosines = head.scratch.cosine + (first + i) * half;
        const float* const OFA_RESTRICT sines = head.scratch.sine + (first + i) * half;
        prefetch_row(to, first + i + ROWS_AHEAD);
        block.for_each(half, [=](int64_t c) {
            rotate(in[c] * factor, in[c + half] * factor, cosines[c], -sines[c], out[c], out[c + half]);
        });
    }
}

// A row's largest score, and the sum of exp(score - largest).
struct RowSum {
    float largest, total;
};

// Softmax weights of a row before division by their sum: row[c] = exp(row[c] - largest), 0 where the score is hidden.
OFA_NOINLINE RowSum exponentiate_row(Block& block, float* OFA_RESTRICT row, int columns) {
    const float largest = block.max(columns, row[0], [=](int64_t c) { return row[c]; });
    const float total = block.sum(columns, [=](int64_t c) {
        row[c] = row[c] == HIDDEN_SCORE ? 0.0f : math::exp(row[c] - largest);
        return row[c];
    });
    return {largest, total};
}

// An epilogue during whose product the rows of another matrix are fetched that lie beside its outputs.
template <class Epilogue>
struct Fetching {
    Epilogue epilogue;
    Matrix<float> rows;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        if (j > 0 || i >= rows.rows) return;
        for (int64_t c = 0; c < rows.cols; c += ATTENTION_KEYS) f(rows.row(i) + c, rows.pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* values, int count) const { epilogue(i, j, values, count); }
};

// Softmax weights, not yet divided by their sums, of queries [begin, end) for all keys before `end`.
OFA_INLINE void attention_weights(Block& block, const AttentionHead& head, int begin, int end, Column lse) {
    const int length = head.length;
    float* const scores = head.scratch.scores;
    float* const sums = head.scratch.row;
    for (int key = 0; key < end; key += ATTENTION_KEYS) {
        const int first = key > begin ? key : begin;
        const int diagonal = first - key;
        float* const out = scores + int64_t(first - begin) * length + key;
        const auto hide_future = [=](int i, int j, const float* values, int count) {
            float* const OFA_RESTRICT to = out + int64_t(i) * length + j;
            for (int c = 0; c < count; ++c) to[c] = j + c <= diagonal + i ? values[c] : HIDDEN_SCORE;
        };
        const Matrix<float> v_rows = {head.v.row(first), head.v.pitch, key == 0 ? end - first : 0, head.head_dim};
        tile::multiply_nt(block, end - first, smaller(ATTENTION_KEYS, end - key), head.head_dim,
                          head.rotated_q(first), head.rotated_k(key), head.scratch.product,
                          Fetching<decltype(hide_future)>{hide_future, v_rows});
    }
    block.sync();
    for (int i = begin; i < end; ++i) {
        const int columns = smaller((i / ATTENTION_KEYS + 1) * ATTENTION_KEYS, end);
        const RowSum sum = exponentiate_row(block, scores + int64_t(i - begin) * length, columns);
        if (!block.leader()) continue;
        *lse.at(i) = sum.largest;
        sums[i] = sum.total;
    }
    block.sync();
    block.for_each(end - begin, [=](int64_t i) {
        const float total = sums[begin + i];
        *lse.at(begin + int(i)) += math::log(total);
        sums[begin + i] = 1.0f / total;
    });
    block.sync();
}

OFA_OP void op_attention(Block& block, const TaskContext& ctx) {
    const AttentionHead head(block, ctx);
    const Matrix<float> o = tile_of(ctx, 1);
    const float* const inverse_sums = head.scratch.row;
    rotate_queries_and_keys(block, head, ctx.launch->model.rope_base);
    for (int begin = 0; begin < head.length; begin += ATTENTION_QUERIES) {
        const int end = smaller(begin + ATTENTION_QUERIES, head.length);
        attention_weights(block, head, begin, end, lse_column(ctx, 2));
        for (int first = begin; first < end; first += ATTENTION_KEYS) {
            const int next = smaller(first + ATTENTION_KEYS, end);
            const auto divide_by_sum = [=](int i, int j, const float* values, int count) {
                float* const OFA_RESTRICT to = o.row(first + i) + j;
                const float inverse = inverse_sums[first + i];
                for (int c = 0; c < count; ++c) to[c] = values[c] * inverse;
            };
            const tile::Source weights = {head.scratch.scores, head.length};
            tile::multiply_nn(block, next - first, head.head_dim, next, weights.from(first - begin, 0),
                              head.rows_of(head.v, 0), head.scratch.product, divide_by_sum);
        }
        block.sync();
    }
}

// scratch.row[i] = o[i] . do[i], and zero in scratch.dq.
OFA_INLINE void start_backward(Block& block, const AttentionHead& head, Matrix<float> o, Matrix<float> d_o) {
    for (int i = 0; i < head.length; ++i) {
        const float* const o_row = o.row(i);
        const float* const do_row = d_o.row(i);
        float* const dq_row = head.scratch.dq + int64_t(i) * head.head_dim;
        prefetch_row(o, i + ROWS_AHEAD);
        prefetch_row(d_o, i + ROWS_AHEAD);
        block.for_each(head.head_dim, [=](int64_t c) { dq_row[c] = 0.0f; });
        const float dot = block.sum(head.head_dim, [=](int64_t c) { return o_row[c] * do_row[c]; });
        if (block.leader()) head.scratch.row[i] = dot;
    }
    block.sync();
}

// P and dS of keys [key, key + keys) and the queries that see at least one of them, those from `key` on.
// Query key + i sees keys key .. key + i.
OFA_INLINE void score_gradients(Block& block, const AttentionHead& head, int key, int keys, Column lse,
                                Matrix<float> d_o) {
    float* const weights = head.scratch.scores;
    float* const dscores = head.scratch.dscores;
    const float* const do_dot_o = head.scratch.row + key;
    const int queries = head.length - key;
    const auto recompute_weights = [=](int i, int j, const float* values, int count) {
        float* const OFA_RESTRICT to = weights + i * ATTENTION_KEYS + j;
        const float row_lse = *lse.at(key + i);
        for (int c = 0; c < count; ++c) to[c] = j + c <= i ? math::exp(values[c] - row_lse) : 0.0f;
    };
    const Matrix<float> v_rows = {head.v.row(key), head.v.pitch, key == 0 ? queries : 0, head.head_dim};
    tile::multiply_nt(block, queries, keys, head.head_dim, head.rotated_q(key), head.rotated_k(key),
                      head.scratch.product, Fetching<decltype(recompute_weights)>{recompute_weights, v_rows});
    block.sync();
    const auto through_softmax = [=](int i, int j, const float* values, int count) {
        const float* const OFA_RESTRICT weight = weights + i * ATTENTION_KEYS + j;
        float* const OFA_RESTRICT to = dscores + i * ATTENTION_KEYS + j;
        const float mean = do_dot_o[i];
        for (int c = 0; c < count; ++c) to[c] = weight[c] * (values[c] - mean);
    };
    tile::multiply_nt(block, queries, keys, head.head_dim, head.rows_of(d_o, key), head.rows_of(head.v, key),
                      head.scratch.product, through_softmax);
    block.sync();
}

OFA_OP void op_attention_backward(Block& block, const TaskContext& ctx) {
    const AttentionHead head(block, ctx);
    const Matrix<float> o = tile_of(ctx, 1), d_o = tile_of(ctx, 3);
    const Matrix<float> dq = head.part_of(ctx, 4, 0), dk = head.part_of(ctx, 4, 1), dv = head.part_of(ctx, 4, 2);
    const int length = head.length, head_dim = head.head_dim;
    float* const product = head.scratch.product;
    float* const dk_turned = head.scratch.dk;
    const tile::Source weights = {head.scratch.scores, ATTENTION_KEYS};
    const tile::Source dscores = {head.scratch.dscores, ATTENTION_KEYS};
    rotate_queries_and_keys(block, head, ctx.launch->model.rope_base);
    start_backward(block, head, o, d_o);
    for (int key = 0; key < length; key += ATTENTION_KEYS) {
        const int keys = smaller(ATTENTION_KEYS, length - key), queries = length - key;
        score_gradients(block, head, key, keys, lse_column(ctx, 2), d_o);
        tile::multiply_tn(block, keys, head_dim, queries, weights, head.rows_of(d_o, key), product,
                          Store{{dv.row(key), dv.pitch, keys, head_dim}});
        tile::multiply_tn(block, keys, head_dim, queries, dscores, head.rotated_q(key), product,
                          Store{{dk_turned, head_dim, keys, head_dim}});
        float* const dq_sums = head.scratch.dq + int64_t(key) * head_dim;
        const auto add = [=](int i, int j, const float* values, int count) {
            float* const OFA_RESTRICT to = dq_sums + int64_t(i) * head_dim + j;
            for (int c = 0; c < count; ++c) to[c] += values[c];
        };
        tile::multiply_nn(block, queries, head_dim, keys, dscores, head.rotated_k(key), product, add);
        block.sync();
        turn_back(block, head, {dk_turned, head_dim, keys, head_dim}, 1.0f, key, dk);
        block.sync();
    }
    turn_back(block, head, {head.scratch.dq, head_dim, length, head_dim}, head.scale, 0, dq);
}

}  // namespace ofa
