// Attention of one sequence and one head of 64 columns by the matrix instructions of warps; the formulas are those of
// ops/attention.h.
//
// A warp owns rows of the result and walks over the lines that they see, which lie in shared memory: forward and for dq
// it owns queries and walks over keys, for dk and dv it owns keys and walks over queries. So the backward pass computes
// the weights twice, and no two warps ever add to the same sum.
#pragma once

#include "ops/rotary.h"
#include "sched/abort.h"
#include "tile/mma.cuh"

namespace ofa::sm90 {

constexpr int HEAD_DIM = 64, STEPS = HEAD_DIM / 16, COLUMN_TILES = HEAD_DIM / 8, COLUMN_PAIRS = HEAD_DIM / 16;
constexpr int WARPS = BLOCK_THREADS / 32;
constexpr float NEVER = -1e30f;  // score of a key after the query

// Rows of a bf16 matrix that belong to the task: `rows` from `data` on.
struct Rows {
    bf16* data;
    int64_t pitch;
    int rows;

    OFA_INLINE bf16* at(int row) const { return data + int64_t(row) * pitch; }
};

OFA_INLINE Rows head_rows(const TaskContext& ctx, int i, int part) {
    const Matrix<bf16> all = ctx.operand<bf16>(i);
    const int64_t column = part < 0 ? ctx.col0() : part * (all.cols / 3) + ctx.col0();
    return {all.row(ctx.row0()) + column, all.pitch, int(ctx.rows())};
}

// Shared memory: two matrices of `lines` lines, two numbers a line, turns per position of each column pair.
struct AttentionMemory {
    uint8_t* first;
    uint8_t* second;
    float* lse2;  // base 2
    float* mean;  // rowsum(do o)
    double* frequency;
    int lines;

    OFA_INLINE AttentionMemory(const Block& block, int length) {
        lines = (length + 31) / 32 * 32;
        first = block.near<uint8_t>();
        second = first + lines * LINE_BYTES;
        lse2 = reinterpret_cast<float*>(second + lines * LINE_BYTES);
        mean = lse2 + lines;
        frequency = reinterpret_cast<double*>(mean + lines);
    }
    static OFA_INLINE uint64_t bytes(int64_t length) {
        return uint64_t(length + 31) / 32 * 32 * (2 * LINE_BYTES + 8) + HEAD_DIM / 2 * sizeof(double);
    }
};

struct Angle {
    float sine, cosine;
};

// The whole turns are taken off in double; the unit's error is below 5e-7 for what is left.
OFA_INLINE Angle angle_of(double turns) {
    const float radians = float(turns - rint(turns)) * 6.2831853f;
    return {__sinf(radians), __cosf(radians)};
}

OFA_INLINE bool can_attend(Block& block, const TaskContext& ctx) {
    return block.broadcast([&] {
        return check(ctx, 1, ctx.cols() == HEAD_DIM ? 1 : 0) && check(ctx, AttentionMemory::bytes(ctx.rows()), block.near_bytes());
    });
}

OFA_INLINE void fill_frequencies(Block& block, const TaskContext& ctx, const AttentionMemory& memory) {
    block.for_each(HEAD_DIM / 2, [&](int64_t i) {
        memory.frequency[i] = rotary_frequency(i, HEAD_DIM, double(ctx.launch->model.rope_base));
    });
}

// Pairs (first, second) of eight columns turned by their position, times `factor`.
OFA_INLINE void turn_eight(Eight& first, Eight& second, const double* frequency, int position, float factor) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const Angle angle = angle_of(double(position) * frequency[i]);
        rotate(first.at[i] * factor, second.at[i] * factor, angle.cosine, angle.sine, first.at[i], second.at[i]);
    }
}

// Lines past the last row are zero.
OFA_INLINE void load_lines(Block& block, const Rows& from, int lines, uint8_t* to) {
    const uint32_t base = shared_address(to);
#pragma unroll 4
    for (int i = block.thread(); i < lines * 8; i += BLOCK_THREADS) {
        const int row = i / 8, piece = i % 8;
        const uint4 words = row < from.rows ? load_words(from.at(row) + 8 * piece) : make_uint4(0, 0, 0, 0);
        store_words(to + (piece_at(base, row, piece) - base), words);
    }
}

OFA_INLINE void load_turned_lines(Block& block, const Rows& from, const AttentionMemory& memory, float factor,
                                  uint8_t* to) {
    const uint32_t base = shared_address(to);
#pragma unroll 2
    for (int i = block.thread(); i < memory.lines * 4; i += BLOCK_THREADS) {
        const int row = i / 4, piece = i % 4;
        Eight first = unpack(make_uint4(0, 0, 0, 0)), second = first;
        if (row < from.rows) {
            first = unpack(load_words(from.at(row) + 8 * piece));
            second = unpack(load_words(from.at(row) + 8 * piece + HEAD_DIM / 2));
            turn_eight(first, second, memory.frequency + 8 * piece, row, factor);
        }
        store_words(to + (piece_at(base, row, piece) - base), pack(first));
        store_words(to + (piece_at(base, row, piece + 4) - base), pack(second));
    }
}

// Sixteen rows as the left operand of a product over the head's columns.
OFA_INLINE void load_left(const Rows& from, int row0, Left (&to)[STEPS]) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        const int row = row0 + lane / 4 + word % 2 * 8, column = lane % 4 * 2 + word / 2 * 8;
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
            to[step].at[word] = row < from.rows
                                    ? *reinterpret_cast<const uint32_t*>(from.at(row) + 16 * step + column) : 0u;
    }
}

// The same, turned by the position of the row and times `factor`. Columns c and c + 32 are two steps apart.
OFA_INLINE void load_turned_left(const Rows& from, int row0, const double* frequency, float factor,
                                 Left (&to)[STEPS]) {
    load_left(from, row0, to);
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        const int row = row0 + lane / 4 + word % 2 * 8, column = lane % 4 * 2 + word / 2 * 8;
#pragma unroll
        for (int step = 0; step < STEPS / 2; ++step) {
            uint32_t& first = to[step].at[word];
            uint32_t& second = to[step + STEPS / 2].at[word];
            const Angle low = angle_of(double(row) * frequency[16 * step + column]);
            const Angle high = angle_of(double(row) * frequency[16 * step + column + 1]);
            float a, b, c, d;
            rotate(low_of(first) * factor, low_of(second) * factor, low.cosine, low.sine, a, b);
            rotate(high_of(first) * factor, high_of(second) * factor, high.cosine, high.sine, c, d);
            first = pack(a, c);
            second = pack(b, d);
        }
    }
}

// Sums of sixteen rows into bf16, rows past the end left out.
OFA_INLINE void store_sums(const Rows& to, int row0, const Sums (&sums)[COLUMN_TILES], float low, float high) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = row0 + lane / 4 + 8 * half;
        if (row >= to.rows) continue;
        const float factor = half == 0 ? low : high;
#pragma unroll
        for (int tile = 0; tile < COLUMN_TILES; ++tile)
            *reinterpret_cast<uint32_t*>(to.at(row) + 8 * tile + lane % 4 * 2) =
                pack(sums[tile].at[2 * half] * factor, sums[tile].at[2 * half + 1] * factor);
    }
}

// Turns the rows of sums back by their positions.
OFA_INLINE void turn_sums_back(Sums (&sums)[COLUMN_TILES], int row0, const double* frequency) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int tile = 0; tile < COLUMN_TILES / 2; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + lane / 4 + i / 2 * 8;
            const Angle angle = angle_of(double(row) * frequency[8 * tile + lane % 4 * 2 + i % 2]);
            rotate(sums[tile].at[i], sums[tile + COLUMN_TILES / 2].at[i], angle.cosine, -angle.sine, sums[tile].at[i],
                   sums[tile + COLUMN_TILES / 2].at[i]);
        }
}

// The warp's `turn`-th block of rows: to and fro, so that long and short rows come together.
OFA_INLINE int block_of_turn(int turn) {
    const int warp = (int(threadIdx.x) - FIRST_THREAD) / 32;
    return turn % 2 == 0 ? turn * WARPS + warp : turn * WARPS + WARPS - 1 - warp;
}

OFA_INLINE float over_quad(float value, bool largest) {
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2) {
        const float other = __shfl_xor_sync(0xFFFFFFFFu, value, distance);
        value = largest ? fmaxf(value, other) : value + other;
    }
    return value;
}

// --- forward -----------------------------------------------------------------------------------------------------

constexpr int QUERY_TILES = 2, QUERIES = 16 * QUERY_TILES;  // of a warp at a time
constexpr int KEY_TILES = 4, KEYS = 8 * KEY_TILES;
static_assert(QUERIES == KEYS);

OFA_INLINE void attend(const TaskContext& ctx, const AttentionMemory& memory, const Rows& q, const Rows& o,
                       int block_row) {
    const int lane = int(threadIdx.x) % 32, row0 = QUERIES * block_row;
    const uint32_t keys = shared_address(memory.first), values = shared_address(memory.second);
    const float factor = 1.0f / sqrtf(float(HEAD_DIM));
    Left query[QUERY_TILES][STEPS];
    Sums out[QUERY_TILES][COLUMN_TILES];
    float largest[QUERY_TILES][2], total[QUERY_TILES][2];  // in units of log2; of the lane's own columns
#pragma unroll
    for (int m = 0; m < QUERY_TILES; ++m) {
        load_turned_left(q, row0 + 16 * m, memory.frequency, factor, query[m]);
        largest[m][0] = largest[m][1] = NEVER;
        total[m][0] = total[m][1] = 0.0f;
#pragma unroll
        for (int tile = 0; tile < COLUMN_TILES; ++tile) out[m][tile] = {};
    }
    for (int key0 = 0; key0 <= row0; key0 += KEYS) {
        Sums scores[QUERY_TILES][KEY_TILES] = {};
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int pair = 0; pair < KEY_TILES / 2; ++pair) {
                const RightPair b = right_of_lines(keys, key0 + 16 * pair, step);
#pragma unroll
                for (int m = 0; m < QUERY_TILES; ++m) {
                    multiply_add(scores[m][2 * pair], query[m][step], b.at[0]);
                    multiply_add(scores[m][2 * pair + 1], query[m][step], b.at[1]);
                }
            }
        Left weights[QUERY_TILES][KEY_TILES / 2];
#pragma unroll
        for (int m = 0; m < QUERY_TILES; ++m) {
#pragma unroll
            for (int tile = 0; tile < KEY_TILES; ++tile)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int key = 8 * tile + lane % 4 * 2 + i % 2, row = 16 * m + lane / 4 + i / 2 * 8;
                    const float score = scores[m][tile].at[i] * LOG2_E;
                    scores[m][tile].at[i] = key0 == row0 && key > row ? NEVER : score;
                }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float most = largest[m][half];
#pragma unroll
                for (int tile = 0; tile < KEY_TILES; ++tile)
                    most = fmaxf(most, fmaxf(scores[m][tile].at[2 * half], scores[m][tile].at[2 * half + 1]));
                most = over_quad(most, true);
                const float keep = exp2_of(largest[m][half] - most);
                largest[m][half] = most;
                float sum = 0.0f;
#pragma unroll
                for (int tile = 0; tile < KEY_TILES; ++tile)
#pragma unroll
                    for (int i = 2 * half; i < 2 * half + 2; ++i) {
                        scores[m][tile].at[i] = exp2_of(scores[m][tile].at[i] - most);
                        sum += scores[m][tile].at[i];
                    }
                total[m][half] = total[m][half] * keep + sum;
#pragma unroll
                for (int tile = 0; tile < COLUMN_TILES; ++tile) {
                    out[m][tile].at[2 * half] *= keep;
                    out[m][tile].at[2 * half + 1] *= keep;
                }
            }
#pragma unroll
            for (int i = 0; i < KEY_TILES / 2; ++i) weights[m][i] = left_of(scores[m][2 * i], scores[m][2 * i + 1]);
        }
#pragma unroll
        for (int i = 0; i < KEY_TILES / 2; ++i)
#pragma unroll
            for (int pair = 0; pair < COLUMN_PAIRS; ++pair) {
                const RightPair b = right_of_columns(values, key0 + 16 * i, pair);
#pragma unroll
                for (int m = 0; m < QUERY_TILES; ++m) {
                    multiply_add(out[m][2 * pair], weights[m][i], b.at[0]);
                    multiply_add(out[m][2 * pair + 1], weights[m][i], b.at[1]);
                }
            }
    }
    const Matrix<float> lse = ctx.operand<float>(2);
    float* const column = lse.row(ctx.row0()) + ctx.col0() / HEAD_DIM;
#pragma unroll
    for (int m = 0; m < QUERY_TILES; ++m) {
        float inverse[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float sum = over_quad(total[m][half], false);
            const int row = row0 + 16 * m + lane / 4 + 8 * half;
            inverse[half] = 1.0f / sum;
            if (lane % 4 == 0 && row < o.rows) column[row * lse.pitch] = largest[m][half] * LN_2 + logf(sum);
        }
        store_sums(o, row0 + 16 * m, out[m], inverse[0], inverse[1]);
    }
}

OFA_NOINLINE void op_attention(Block& block, const TaskContext& ctx) {
    if (!can_attend(block, ctx)) return;
    const AttentionMemory memory(block, int(ctx.rows()));
    fill_frequencies(block, ctx, memory);
    load_lines(block, head_rows(ctx, 0, 2), memory.lines, memory.second);
    block.sync();
    load_turned_lines(block, head_rows(ctx, 0, 1), memory, 1.0f, memory.first);
    block.sync();
    const Rows q = head_rows(ctx, 0, 0), o = head_rows(ctx, 1, -1);
    for (int turn = 0; turn * WARPS < memory.lines / QUERIES; ++turn) {
        const int block_row = block_of_turn(turn);
        if (block_row < memory.lines / QUERIES) attend(ctx, memory, q, o, block_row);
    }
}

// --- backward ----------------------------------------------------------------------------------------------------

// Of every row: the logarithm of its softmax's sum in base 2, and do . o. Eight lanes a row.
OFA_INLINE void load_row_numbers(Block& block, const TaskContext& ctx, const AttentionMemory& memory, const Rows& o,
                                 const Rows& d_o) {
    const Matrix<float> lse = ctx.operand<float>(2);
    const float* const column = lse.row(ctx.row0()) + ctx.col0() / HEAD_DIM;
    for (int i = block.thread(); i < memory.lines * 8; i += BLOCK_THREADS) {
        const int row = i / 8, piece = i % 8;
        float dot = 0.0f;
        if (row < o.rows) {
            const Eight a = unpack(load_words(o.at(row) + 8 * piece)), b = unpack(load_words(d_o.at(row) + 8 * piece));
#pragma unroll
            for (int c = 0; c < 8; ++c) dot += a.at[c] * b.at[c];
        }
#pragma unroll
        for (int distance = 1; distance < 8; distance *= 2) dot += __shfl_xor_sync(0xFFFFFFFFu, dot, distance);
        if (piece != 0) continue;
        memory.mean[row] = dot;
        memory.lse2[row] = row < o.rows ? column[row * lse.pitch] * LOG2_E : 0.0f;
    }
}

// dk and dv of sixteen keys. Queries, turned and scaled, and gradients of the outputs lie in shared memory; everything is
// transposed: rows are keys.
OFA_INLINE void key_gradients(const AttentionMemory& memory, const Rows& k, const Rows& v, const Rows& dk,
                              const Rows& dv, int block_row) {
    const int lane = int(threadIdx.x) % 32, row0 = 16 * block_row;
    const uint32_t queries = shared_address(memory.first), outputs = shared_address(memory.second);
    Left key[STEPS], value[STEPS];
    load_turned_left(k, row0, memory.frequency, 1.0f, key);
    load_left(v, row0, value);
    Sums key_sums[COLUMN_TILES] = {}, value_sums[COLUMN_TILES] = {};
    for (int query0 = row0; query0 < memory.lines; query0 += 16) {
        Sums weight[2] = {}, score[2] = {};
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const RightPair q = right_of_lines(queries, query0, step), d = right_of_lines(outputs, query0, step);
#pragma unroll
            for (int tile = 0; tile < 2; ++tile) {
                multiply_add(weight[tile], key[step], q.at[tile]);
                multiply_add(score[tile], value[step], d.at[tile]);
            }
        }
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) {
            const int column = 8 * tile + lane % 4 * 2;
            const float2 lse2 = *reinterpret_cast<const float2*>(memory.lse2 + query0 + column);
            const float2 mean = *reinterpret_cast<const float2*>(memory.mean + query0 + column);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const bool hidden = query0 == row0 && lane / 4 + i / 2 * 8 > column + i % 2;
                const float p = exp2_of(weight[tile].at[i] * LOG2_E - (i % 2 == 0 ? lse2.x : lse2.y));
                weight[tile].at[i] = hidden ? 0.0f : p;
                score[tile].at[i] = weight[tile].at[i] * (score[tile].at[i] - (i % 2 == 0 ? mean.x : mean.y));
            }
        }
        const Left weights = left_of(weight[0], weight[1]), scores = left_of(score[0], score[1]);
#pragma unroll
        for (int pair = 0; pair < COLUMN_PAIRS; ++pair) {
            const RightPair d = right_of_columns(outputs, query0, pair), q = right_of_columns(queries, query0, pair);
#pragma unroll
            for (int tile = 0; tile < 2; ++tile) {
                multiply_add(value_sums[2 * pair + tile], weights, d.at[tile]);
                multiply_add(key_sums[2 * pair + tile], scores, q.at[tile]);
            }
        }
    }
    store_sums(dv, row0, value_sums, 1.0f, 1.0f);
    turn_sums_back(key_sums, row0, memory.frequency);
    store_sums(dk, row0, key_sums, 1.0f, 1.0f);
}

// dq of sixteen queries. Turned keys and values lie in shared memory.
OFA_INLINE void query_gradients(const AttentionMemory& memory, const Rows& q, const Rows& d_o, const Rows& dq,
                                int block_row) {
    const int lane = int(threadIdx.x) % 32, row0 = 16 * block_row;
    const uint32_t keys = shared_address(memory.first), values = shared_address(memory.second);
    const float factor = 1.0f / sqrtf(float(HEAD_DIM));
    Left query[STEPS], output[STEPS];
    load_turned_left(q, row0, memory.frequency, factor, query);
    load_left(d_o, row0, output);
    float lse2[2], mean[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        lse2[half] = memory.lse2[row0 + lane / 4 + 8 * half];
        mean[half] = memory.mean[row0 + lane / 4 + 8 * half];
    }
    Sums sums[COLUMN_TILES] = {};
    for (int key0 = 0; key0 <= row0; key0 += 16) {
        Sums weight[2] = {}, score[2] = {};
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const RightPair k = right_of_lines(keys, key0, step), v = right_of_lines(values, key0, step);
#pragma unroll
            for (int tile = 0; tile < 2; ++tile) {
                multiply_add(weight[tile], query[step], k.at[tile]);
                multiply_add(score[tile], output[step], v.at[tile]);
            }
        }
#pragma unroll
        for (int tile = 0; tile < 2; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const bool hidden = key0 == row0 && 8 * tile + lane % 4 * 2 + i % 2 > lane / 4 + i / 2 * 8;
                const float p = exp2_of(weight[tile].at[i] * LOG2_E - lse2[i / 2]);
                score[tile].at[i] = hidden ? 0.0f : p * (score[tile].at[i] - mean[i / 2]);
            }
        const Left scores = left_of(score[0], score[1]);
#pragma unroll
        for (int pair = 0; pair < COLUMN_PAIRS; ++pair) {
            const RightPair k = right_of_columns(keys, key0, pair);
            multiply_add(sums[2 * pair], scores, k.at[0]);
            multiply_add(sums[2 * pair + 1], scores, k.at[1]);
        }
    }
    turn_sums_back(sums, row0, memory.frequency);
    store_sums(dq, row0, sums, factor, factor);
}

OFA_NOINLINE void op_attention_backward(Block& block, const TaskContext& ctx) {
    if (!can_attend(block, ctx)) return;
    const AttentionMemory memory(block, int(ctx.rows()));
    const Rows q = head_rows(ctx, 0, 0), k = head_rows(ctx, 0, 1), v = head_rows(ctx, 0, 2);
    const Rows d_o = head_rows(ctx, 3, -1);
    fill_frequencies(block, ctx, memory);
    load_lines(block, d_o, memory.lines, memory.second);
    load_row_numbers(block, ctx, memory, head_rows(ctx, 1, -1), d_o);
    block.sync();
    load_turned_lines(block, q, memory, 1.0f / sqrtf(float(HEAD_DIM)), memory.first);
    block.sync();
    for (int turn = 0; turn * WARPS < memory.lines / 16; ++turn) {
        const int block_row = block_of_turn(turn);
        if (block_row < memory.lines / 16)
            key_gradients(memory, k, v, head_rows(ctx, 4, 1), head_rows(ctx, 4, 2), block_row);
    }
    block.sync();
    load_lines(block, v, memory.lines, memory.second);
    load_turned_lines(block, k, memory, 1.0f, memory.first);
    block.sync();
    for (int turn = 0; turn * WARPS < memory.lines / 16; ++turn) {
        const int block_row = block_of_turn(turn);
        if (block_row < memory.lines / 16) query_gradients(memory, q, d_o, head_rows(ctx, 4, 0), block_row);
    }
}

}  // namespace ofa::sm90
