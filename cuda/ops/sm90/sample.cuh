// From logits to the next token, as ops/sample.h, with the weights in shared memory: those of `share` neighbouring ids for
// each thread, an odd number, so that threads that walk through theirs together meet in no bank.
//
// A threshold is found by bisection over the bits of floats. Once few weights lie between its bounds, each thread keeps
// its own in registers, and the rest of the steps looks at no others.
#pragma once

#include "ops/sample.h"
#include "ops/sm90/rows.cuh"

namespace ofa::sm90 {

constexpr int CANDIDATES = 16;
// Weights for which `bytes` have room, beside what shares are rounded up by, their sums and the lists.
OFA_INLINE constexpr int64_t weights_in(int64_t bytes) { return bytes / 4 - (CANDIDATES + 4) * BLOCK_THREADS; }
// The near memory of a Hopper block's bodies and what products stage behind it. Whoever samples a token has worked on it
// (tile/token.cuh): storers have nothing left to do.
constexpr int64_t MOST_WEIGHTS = weights_in((4 * 48 + 32) * 1024);

struct Weights {
    float* all;
    int share;

    OFA_INLINE Weights(Block& block, int64_t n)
        : all(block.near<float>()), share(int((n + BLOCK_THREADS - 1) / BLOCK_THREADS) | 1) {}
    OFA_INLINE float* own(const Block& block) const { return all + block.thread() * share; }
    OFA_INLINE float* sums() const { return all + BLOCK_THREADS * share; }
    OFA_INLINE float* lists() const { return sums() + BLOCK_THREADS; }
};

// The likeliest id; of equals the lowest. f(first id, logits of four ids) is told of all, those behind the last negative
// infinity.
template <class F>
OFA_INLINE int32_t look_through(Block& block, const float* logits, int n, int all, F f) {
    constexpr int BATCH = 13, STRIDE = 4 * BLOCK_THREADS;  // four batches make up 50,257 logits
    float largest = -INFINITY;
    int32_t id = all;
    for (int first = 4 * block.thread(); first < all; first += STRIDE * BATCH) {
        float4 got[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int at = first + STRIDE * i;
            got[i] = at + 3 < n ? *reinterpret_cast<const float4*>(logits + at)
                                : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
            if (at < n && at + 3 >= n) {
                got[i].x = logits[at];
                if (at + 1 < n) got[i].y = logits[at + 1];
                if (at + 2 < n) got[i].z = logits[at + 2];
            }
        }
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const float four[4] = {got[i].x, got[i].y, got[i].z, got[i].w};
#pragma unroll
            for (int c = 0; c < 4; ++c)
                if (four[c] > largest) {
                    largest = four[c];
                    id = first + STRIDE * i + c;
                }
            if (first + STRIDE * i < all) f(first + STRIDE * i, got[i]);
        }
    }
    const float most = block.max(BLOCK_THREADS, -INFINITY, [=](int64_t) { return largest; });
    const int32_t best = all - block.max(BLOCK_THREADS, 0, [=](int64_t) { return largest == most ? all - id : 0; });
    return best < n ? best : n - 1;  // where no logit is a number
}

// f(weight) for the thread's own, eight loads at a time.
template <class F>
OFA_INLINE void for_each_own(Block& block, const Weights& weights, F f) {
    constexpr int BATCH = 8;
    const float* const own = weights.own(block);
    int i = 0;
    for (; i + BATCH <= weights.share; i += BATCH) {
        float w[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) w[j] = own[i + j];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) f(i + j, w[j]);
    }
    for (; i < weights.share; ++i) f(i, own[i]);
}

// Largest t such that the measures of all weights from t on add up to `wanted`, which those from `enough` on do.
// measure(w) is what a weight counts for.
template <class Measure>
OFA_INLINE float threshold(Block& block, const Weights& weights, float enough, float wanted, Measure measure) {
    uint32_t low = math::bits_of(enough), high = math::bits_of(1.0f) + 1;
    float above = 0.0f;             // of the weights from `high` on
    int between = weights.share;    // how many of the thread's own lie from `low` to `high`, at most
    float few[CANDIDATES] = {};
    bool listed = false;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        const float from = math::float_of(middle), to = math::float_of(high), least = math::float_of(low);
        float sum = 0.0f;
        int upper = 0, lower = 0;
        if (listed) {
#pragma unroll
            for (int i = 0; i < CANDIDATES; ++i) sum += few[i] >= from && few[i] < to ? measure(few[i]) : 0.0f;
        } else {
            for_each_own(block, weights, [&](int, float w) {
                if (w >= from && w < to) {
                    sum += measure(w);
                    ++upper;
                }
                lower += w >= least && w < from ? 1 : 0;
            });
        }
        const float more = block.sum(BLOCK_THREADS, [=](int64_t) { return sum; });
        const bool up = above + more >= wanted;
        if (up) {
            low = middle;
        } else {
            high = middle;
            above += more;
        }
        if (listed) continue;
        between = up ? upper : lower;
        if (block.max(BLOCK_THREADS, 0, [=](int64_t) { return between; }) > CANDIDATES) continue;
        listed = true;
        float* const list = weights.lists() + block.thread() * (CANDIDATES + 1);
        const float first = math::float_of(low), last = math::float_of(high);
        int count = 0;
        for_each_own(block, weights, [&](int, float w) {
            if (w >= first && w < last) list[count++] = w;
        });
#pragma unroll
        for (int i = 0; i < CANDIDATES; ++i) few[i] = i < count ? list[i] : -1.0f;
    }
    return math::float_of(low);
}

// First id at which the sum of the weights from `least` on passes u times their total. By a warp; the sums of shares are
// there.
OFA_INLINE int32_t pick(const Weights& weights, float least, float u) {
    constexpr int EACH = BLOCK_THREADS / 32;
    const int lane = lane_of_thread();
    const auto up_to = [&](float value) {
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const float before = __shfl_up_sync(0xFFFFFFFFu, value, distance);
            if (lane >= distance) value += before;
        }
        return value;
    };
    float own = 0.0f;
    for (int i = 0; i < EACH; ++i) own += weights.sums()[EACH * lane + i];
    const float running = up_to(own);
    float left = u * __shfl_sync(0xFFFFFFFFu, running, 31);
    const uint32_t past = __ballot_sync(0xFFFFFFFFu, running > left);
    const int chosen = past == 0 ? 31 : __ffs(int(past)) - 1;
    left -= __shfl_sync(0xFFFFFFFFu, running - own, chosen);
    int share = EACH * chosen;
    for (; share + 1 < EACH * (chosen + 1) && left >= weights.sums()[share]; ++share) left -= weights.sums()[share];
    int32_t last = -1;  // the last id with a weight, should rounding leave nothing over
    for (int first = 0; first < weights.share; first += 32) {
        const int id = share * weights.share + first + lane;
        float w = first + lane < weights.share ? weights.all[id] : 0.0f;
        w = w >= least ? w : 0.0f;
        const float sum = up_to(w);
        const uint32_t kept = __ballot_sync(0xFFFFFFFFu, w > 0.0f);
        const uint32_t beyond = __ballot_sync(0xFFFFFFFFu, w > 0.0f && sum > left);
        if (beyond != 0) return share * weights.share + first + __ffs(int(beyond)) - 1;
        if (kept != 0) last = share * weights.share + first + 31 - __clz(int(kept));
        left -= __shfl_sync(0xFFFFFFFFu, sum, 31);
    }
    return last;
}

OFA_INLINE int32_t sample_near(Block& block, const TaskContext& ctx, int64_t row, const Stream& stream) {
    const int64_t n = ctx.launch->serve->vocab_used;
    const Weights weights(block, n);
    const float* const logits = ctx.operand<const float>(0).row(row);
    const int all = BLOCK_THREADS * weights.share;
    if (!(stream.temperature > 0.0f)) return look_through(block, logits, int(n), all, [](int, float4) {});

    const int32_t best = look_through(block, logits, int(n), all, [=](int first, float4 four) {
        *reinterpret_cast<float4*>(weights.all + first) = four;
    });
    const float largest = weights.all[best];
    float* const own = weights.own(block);
    const float factor = LOG2_E / stream.temperature;
    float sum = 0.0f, least = 0.0f;
    for_each_own(block, weights, [&](int i, float logit) {
        const float w = exp2_of((logit - largest) * factor);
        own[i] = w;
        sum += w;
    });
    const auto sum_from_least = [&] {
        sum = 0.0f;
        for_each_own(block, weights, [&](int, float w) { sum += w >= least ? w : 0.0f; });
    };
    if (stream.top_k > 0 && stream.top_k < n) {
        least = threshold(block, weights, 0.0f, float(stream.top_k), [](float) { return 1.0f; });
        sum_from_least();
    }
    if (stream.top_p < 1.0f) {
        const float total = block.sum(BLOCK_THREADS, [=](int64_t) { return sum; }), kept = least;
        // What is below this adds up to less than what may be left out, with some room for rounding.
        const float enough = fmaxf(kept, 0.9f * (1.0f - stream.top_p) * total / float(n));
        least = threshold(block, weights, enough, stream.top_p * total, [=](float w) { return w >= kept ? w : 0.0f; });
        sum_from_least();
    }
    weights.sums()[block.thread()] = sum;
    block.sync();
    if (warp_of_block() != 0) return best;
    const int32_t drawn = pick(weights, least, float(draw_of_row(ctx, row, stream)));
    return drawn < 0 ? best : drawn;
}

// As the bodies of ops/sample.h; more than `most` weights do not fit into near memory.
OFA_INLINE int32_t sample_token_near(Block& block, const TaskContext& ctx, int64_t row, const Stream& stream, int64_t most) {
    if (int64_t(ctx.launch->serve->vocab_used) > most) return sample_token(block, ctx, row, stream);
    return sample_near(block, ctx, row, stream);
}

OFA_INLINE void sample_or_row(Block& block, const TaskContext& ctx, int64_t most) {
    const auto sampled = [&](int64_t r, const Stream& stream) { return sample_token_near(block, ctx, r, stream, most); };
    if (int64_t(ctx.launch->serve->vocab_used) > most && !can_sample(block, ctx)) return;
    if (ctx.task->opcode == OPCODE_SAMPLE_ROW)
        sample_row(block, ctx, sampled);
    else
        ofa::sample(block, ctx, sampled);
}

OFA_NOINLINE void op_sample(Block& block, const TaskContext& ctx) { sample_or_row(block, ctx, MOST_WEIGHTS); }

}  // namespace ofa::sm90
