// Causal attention of one sequence and one head: T queries, keys and values of D columns.
//
//   forward    S = q k^T / sqrt(D) with rotated q, k;  o = softmax(S) v;  lse = ln sum exp S
//   backward   P = exp(S - lse);  dv = P^T do;  dS = P (do v^T - rowsum(do o));  dq = dS k / sqrt(D);
//              dk = dS^T q / sqrt(D);  then dq and dk turned back
//
// Both walk over blocks of KEYS keys and take only the queries that see them, so that the upper triangle is not computed.
// Queries are scaled by 1 / sqrt(D) when they are rotated.
#pragma once

#include "ops/rotary.h"
#include "ops/matmul.h"

namespace ofa {

constexpr int ATTENTION_KEYS = 32;     // keys per block: the width of a panel of the tile product
constexpr int ATTENTION_QUERIES = 128;  // queries of the forward pass whose scores are held at a time

// Scratch memory of a sequence of `length` positions, in floats. Every part starts at a multiple of 16 floats.
struct AttentionScratch {
  float* product;     // of the tile products
  double* frequency;  // [D / 2]
  float* cosine;      // [T, D / 2]
  float* sine;        // [T, D / 2]
  float* q;           // [T, D] rotated and scaled
  float* k;           // [T, D] rotated
  float* dq;          // [T, D] backward only
  float* delta;       // [T] backward only
  float* scores;      // forward [QUERIES, T], backward [T, KEYS]
  float* dscores;     // backward [T, KEYS]

  static OFA_INLINE int64_t padded(int64_t floats) { return (floats + 15) / 16 * 16; }

  // Also gives the number of bytes in all.
  OFA_INLINE uint64_t divide(float* memory, int64_t length, int64_t head_dim) {
    int64_t used = 0;
    auto take = [&](int64_t floats) {
      float* const part = memory + used;
      used += padded(floats);
      return part;
    };
    product = take(tile::SCRATCH_FLOATS);
    frequency = reinterpret_cast<double*>(take(head_dim));
    cosine = take(length * head_dim / 2);
    sine = take(length * head_dim / 2);
    q = take(length * head_dim);
    k = take(length * head_dim);
    dq = take(length * head_dim);
    delta = take(length);
    scores = take(length * (ATTENTION_QUERIES > ATTENTION_KEYS ? ATTENTION_QUERIES : ATTENTION_KEYS));
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
  int length, head_dim, half;
  float scale;
  Matrix<float> q, k, v;  // [T, D] views of qkv
  AttentionScratch scratch;

  OFA_INLINE AttentionHead(Block& block, const TaskContext& context)
      : length(int(context.rows())),
        head_dim(int(context.cols())),
        half(head_dim / 2),
        scale(1.0f / sqrtf(float(head_dim))),
        q(head_of(context, 0, 0)),
        k(head_of(context, 0, 1)),
        v(head_of(context, 0, 2)) {
    scratch.divide(block.scratch<float>(), length, head_dim);
  }

  // Part `part` (0 q, 1 k, 2 v) of operand i, an array [rows, 3 * width].
  static OFA_INLINE Matrix<float> head_of(const TaskContext& context, int i, int64_t part) {
    const Matrix<float> all = context.operand<float>(i);
    return {all.row(context.row0()) + part * (all.cols / 3) + context.col0(), all.pitch, context.rows(),
            context.cols()};
  }

  OFA_INLINE tile::Source rotated_q(int row) const { return tile::Source{scratch.q, head_dim}.from(row, 0); }
  OFA_INLINE tile::Source rotated_k(int row) const { return tile::Source{scratch.k, head_dim}.from(row, 0); }

  OFA_INLINE void rotate_queries_and_keys(Block& block, float rope_base) const {
    const AttentionHead self = *this;
    block.for_each(half, [=](int64_t i) {
      self.scratch.frequency[i] = rotary_frequency(i, self.head_dim, double(rope_base));
    });
    block.sync();
    for (int t = 0; t < length; ++t) {
      float* const cosines = scratch.cosine + t * half;
      float* const sines = scratch.sine + t * half;
      const double* const frequency = scratch.frequency;
      block.for_each(half, [=](int64_t i) {
        const math::SineCosine angle = math::sine_cosine_of_turns(double(t) * frequency[i]);
        cosines[i] = angle.cosine;
        sines[i] = angle.sine;
      });
      turn_row(block, q.row(t), scratch.q + t * head_dim, t, 1.0f, scale);
      turn_row(block, k.row(t), scratch.k + t * head_dim, t, 1.0f, 1.0f);
    }
    block.sync();
  }

  // to = scale * (from turned to position t, or back where direction is -1).
  OFA_INLINE void turn_row(Block& block, const float* from, float* to, int t, float direction, float factor) const {
    const float* const cosines = scratch.cosine + t * half;
    const float* const sines = scratch.sine + t * half;
    const int h = half;
    block.for_each(half, [=](int64_t i) {
      const float first = from[i] * factor, second = from[i + h] * factor;
      const float cosine = cosines[i], sine = sines[i] * direction;
      to[i] = first * cosine - second * sine;
      to[i + h] = second * cosine + first * sine;
    });
  }
};

OFA_OP void op_attention(Block& block, const TaskContext& context) {
  const AttentionHead head(block, context);
  const Matrix<float> o = tile_of(context, 1), all_lse = context.operand<float>(2);
  const int length = head.length, head_dim = head.head_dim;
  float* const scores = head.scratch.scores;
  head.rotate_queries_and_keys(block, context.launch->model.rope_base);
  for (int begin = 0; begin < length; begin += ATTENTION_QUERIES) {
    const int end = begin + ATTENTION_QUERIES < length ? begin + ATTENTION_QUERIES : length;
    for (int key = 0; key < end; key += ATTENTION_KEYS) {
      const int keys = key + ATTENTION_KEYS < end ? ATTENTION_KEYS : end - key;
      const int first = key > begin ? key : begin;
      float* const out = scores + int64_t(first - begin) * length + key;
      tile::multiply_nt(block, end - first, keys, head_dim, head.rotated_q(first), head.rotated_k(key),
                        head.scratch.product, Store{{out, length, end - first, keys}});
    }
    block.sync();
    for (int i = begin; i < end; ++i) {
      float* const OFA_RESTRICT row = scores + int64_t(i - begin) * length;
      const float largest = block.max(i + 1, row[0], [=](int64_t c) { return row[c]; });
      const float total = block.sum(i + 1, [=](int64_t c) {
        row[c] = math::exp(row[c] - largest);
        return row[c];
      });
      const float inverse = 1.0f / total;
      const int block_end = (i / ATTENTION_KEYS + 1) * ATTENTION_KEYS < end ? (i / ATTENTION_KEYS + 1) * ATTENTION_KEYS : end;
      block.for_each(block_end, [=](int64_t c) { row[c] = c <= i ? row[c] * inverse : 0.0f; });
      if (block.leader()) *(all_lse.row(context.row0() + i) + context.col0() / context.cols()) = largest + logf(total);
    }
    block.sync();
    for (int first = begin; first < end; first += ATTENTION_KEYS) {
      const int next = first + ATTENTION_KEYS < end ? first + ATTENTION_KEYS : end;
      tile::multiply_nn(block, next - first, head_dim, next,
                        tile::Source{scores, length}.from(first - begin, 0), {head.v.data, head.v.pitch},
                        head.scratch.product, Store{{o.row(first), o.pitch, next - first, head_dim}});
    }
    block.sync();
  }
}

OFA_OP void op_attention_backward(Block& block, const TaskContext& context) {
  const AttentionHead head(block, context);
  const Matrix<float> o = tile_of(context, 1), all_lse = context.operand<float>(2), d_o = tile_of(context, 3);
  const Matrix<float> dq = AttentionHead::head_of(context, 4, 0), dk = AttentionHead::head_of(context, 4, 1),
                      dv = AttentionHead::head_of(context, 4, 2);
  const float* const lse = all_lse.row(context.row0()) + context.col0() / context.cols();
  const int64_t lse_pitch = all_lse.pitch;
  const int length = head.length, head_dim = head.head_dim;
  const AttentionScratch& scratch = head.scratch;
  head.rotate_queries_and_keys(block, context.launch->model.rope_base);
  for (int i = 0; i < length; ++i) {
    const float* const o_row = o.row(i);
    const float* const do_row = d_o.row(i);
    float* const dq_row = scratch.dq + int64_t(i) * head_dim;
    block.for_each(head_dim, [=](int64_t c) { dq_row[c] = 0.0f; });
    const float dot = block.sum(head_dim, [=](int64_t c) { return o_row[c] * do_row[c]; });
    if (block.leader()) scratch.delta[i] = dot;
  }
  block.sync();
  for (int key = 0; key < length; key += ATTENTION_KEYS) {
    const int keys = key + ATTENTION_KEYS < length ? ATTENTION_KEYS : length - key;
    const int queries = length - key;  // those from `key` on see at least one of these keys
    float* const scores = scratch.scores;
    float* const dscores = scratch.dscores;
    const float* const delta = scratch.delta + key;
    // Query key + i sees keys key .. key + i.
    tile::multiply_nt(block, queries, keys, head_dim, head.rotated_q(key), head.rotated_k(key), scratch.product,
                      [=](int i, int j, const float* values, int count) {
                        float* const OFA_RESTRICT row = scores + i * ATTENTION_KEYS + j;
                        const float row_lse = lse[(key + i) * lse_pitch];
                        for (int c = 0; c < count; ++c)
                          row[c] = j + c <= i ? math::exp(values[c] - row_lse) : 0.0f;
                      });
    block.sync();
    tile::multiply_nt(block, queries, keys, head_dim, {d_o.row(key), d_o.pitch}, {head.v.row(key), head.v.pitch},
                      scratch.product, [=](int i, int j, const float* values, int count) {
                        const float* const OFA_RESTRICT row = scores + i * ATTENTION_KEYS + j;
                        float* const OFA_RESTRICT drow = dscores + i * ATTENTION_KEYS + j;
                        const float row_delta = delta[i];
                        for (int c = 0; c < count; ++c) drow[c] = row[c] * (values[c] - row_delta);
                      });
    block.sync();
    tile::multiply_tn(block, keys, head_dim, queries, {scores, ATTENTION_KEYS}, {d_o.row(key), d_o.pitch},
                      scratch.product, Store{{dv.row(key), dv.pitch, keys, head_dim}});
    tile::multiply_tn(block, keys, head_dim, queries, {dscores, ATTENTION_KEYS}, head.rotated_q(key), scratch.product,
                      Store{{dk.row(key), dk.pitch, keys, head_dim}});
    float* const dq_sums = scratch.dq + int64_t(key) * head_dim;
    tile::multiply_nn(block, queries, head_dim, keys, {dscores, ATTENTION_KEYS}, head.rotated_k(key), scratch.product,
                      [=](int i, int j, const float* values, int count) {
                        float* const OFA_RESTRICT row = dq_sums + int64_t(i) * head_dim + j;
                        for (int c = 0; c < count; ++c) row[c] += values[c];
                      });
    block.sync();
  }
  for (int t = 0; t < length; ++t) {
    head.turn_row(block, scratch.dq + int64_t(t) * head_dim, dq.row(t), t, -1.0f, head.scale);
    head.turn_row(block, dk.row(t), dk.row(t), t, -1.0f, 1.0f);
  }
}

}  // namespace ofa
