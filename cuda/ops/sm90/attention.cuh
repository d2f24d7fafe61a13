// Attention of one sequence and one head of 64 columns on Hopper; the formulas are those of ops/attention.h.
//
// A task has two halves. The first, a body that is called, brings matrices into shared memory and turns queries and keys by
// their positions. The second are products of 64 x 64 blocks by the matrix instructions of a warpgroup: they stand in the
// kernel's entry, as in a called function the assembler would let each of them wait for the one before.
//
// A warpgroup owns 64 rows of the result at a time and walks over the lines that they see: forward and for dq it owns queries
// and walks over keys, for dk and dv it owns keys and walks over queries, everything transposed. So the backward pass computes
// the weights twice; no two threads ever add to the same sum, and weights go from one product's sums to the next one's left
// operand without leaving the registers.
//
// A product is waited for before the next block of scores begins. Only so do left operands lie where sums have lain; if both
// are in use at a time, the assembler keeps 16 registers apart for each product of this kind in the whole entry, and the
// epilogues of tile products spill.
#pragma once

#include "ops/rotary.h"
#include "sched/abort.h"
#include "tile/mma.cuh"
#include "tile/sm90.cuh"

namespace ofa::sm90 {

constexpr int HEAD_DIM = 64, STEPS = HEAD_DIM / 16, COLUMN_TILES = HEAD_DIM / 8;
constexpr int ATTENTION_BLOCK = 64, BLOCK_BYTES = ATTENTION_BLOCK * LINE_BYTES;
constexpr int MOST_POSITIONS = 512, MATRIX_BYTES = MOST_POSITIONS * LINE_BYTES;
constexpr int NEAR_POSITIONS = 16;       // a position's turn is that of a multiple of this, then that of the rest
constexpr int PAIRS = HEAD_DIM / 2;      // columns c and c + 32 turn together
constexpr float SCORE_SCALE = 0.125f;    // 1 / sqrt(64)
constexpr float SCORE_LOG2 = SCORE_SCALE * LOG2_E;
constexpr float NEVER = -1e30f;          // score of a key after the query

// The task's rows and columns of a bf16 matrix.
struct Rows {
    bf16* data;
    int pitch, rows;

    OFA_INLINE bf16* at(int row) const { return data + int64_t(row) * pitch; }
};

// Looked up once: in the second half a chain of loads would cost more than a block of products.
enum AttentionPart {
    QUERIES, KEYS, VALUES, OUTPUTS, OUTPUT_GRADIENTS, QUERY_GRADIENTS, KEY_GRADIENTS, VALUE_GRADIENTS, PARTS
};
struct AttentionViews {
    Rows of[PARTS];
    float* lse;
    int lse_pitch;
};

// What lies beside the three matrices.
struct AttentionNumbers {
    uint8_t rows[2][BLOCK_BYTES];  // of each group, backward: the values or output gradients of the rows that it owns
    float lse2[MOST_POSITIONS];    // base 2
    float mean[MOST_POSITIONS];    // rowsum(do o)
    float2 far_turn[MOST_POSITIONS / NEAR_POSITIONS][PAIRS];  // cosine, sine
    float2 near_turn[NEAR_POSITIONS][PAIRS];
};

// Shared memory. Lines of a matrix are swizzled as the matrix instructions read them, and zero past the last row.
struct AttentionMemory {
    uint8_t* queries;  // turned
    uint8_t* others;   // forward values; backward gradients of the outputs, then values
    uint8_t* keys;     // turned
    AttentionNumbers* numbers;
    AttentionViews* views;

    OFA_INLINE AttentionMemory(uint8_t* matrices, void* beside, AttentionViews* views)
        : queries(matrices), others(matrices + MATRIX_BYTES), keys(matrices + 2 * MATRIX_BYTES),
          numbers(static_cast<AttentionNumbers*>(beside)), views(views) {}
};

OFA_INLINE bool is_attention(uint32_t opcode) {
    return opcode == OPCODE_ATTENTION || opcode == OPCODE_ATTENTION_BACKWARD;
}

OFA_INLINE bool can_attend(const Task& task) { return task.tile[3] == HEAD_DIM && task.tile[1] <= MOST_POSITIONS; }

OFA_INLINE int blocks_of(const Task& task) { return int(task.tile[1] + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK; }

// --- the first half ----------------------------------------------------------------------------------------------

// A thread for each part.
OFA_INLINE void look_up(const TaskContext& ctx, int part, AttentionViews& views) {
    const int operand = part <= VALUES ? 0 : part == OUTPUTS ? 1 : part == OUTPUT_GRADIENTS ? 3 : part < PARTS ? 4 : 2;
    if (!ctx.present(operand)) return;
    if (part == PARTS) {
        const Matrix<float> lse = ctx.operand<float>(2);
        views.lse = lse.row(ctx.row0()) + ctx.col0() / HEAD_DIM;
        views.lse_pitch = int(lse.pitch);
        return;
    }
    const Matrix<bf16> all = ctx.operand<bf16>(operand);
    const int third = part <= VALUES ? part : part >= QUERY_GRADIENTS ? part - QUERY_GRADIENTS : 0;
    views.of[part] = {all.row(ctx.row0()) + third * (int(all.cols) / 3) + ctx.col0(), int(all.pitch), int(ctx.rows())};
}

// The whole turns are taken off in double; the unit's error is below 5e-7 for what is left.
OFA_INLINE float2 turn_of(double turns) {
    const float radians = float(turns - rint(turns)) * 6.2831853f;
    return make_float2(__cosf(radians), __sinf(radians));
}

// One turn after the other.
OFA_INLINE float2 both_turns(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y); }

OFA_INLINE void fill_turns(Block& block, const TaskContext& ctx, AttentionNumbers& numbers, int blocks) {
    static_assert(BLOCK_THREADS % PAIRS == 0);
    const int pair = block.thread() % PAIRS;
    const double frequency = rotary_frequency(pair, HEAD_DIM, double(ctx.launch->model.rope_base));
    const int far = blocks * (ATTENTION_BLOCK / NEAR_POSITIONS);
    for (int i = block.thread() / PAIRS; i < NEAR_POSITIONS + far; i += BLOCK_THREADS / PAIRS) {
        const bool near = i < NEAR_POSITIONS;
        const int position = near ? i : (i - NEAR_POSITIONS) * NEAR_POSITIONS;
        float2* const to = near ? numbers.near_turn[i] : numbers.far_turn[i - NEAR_POSITIONS];
        to[pair] = turn_of(double(position) * frequency);
    }
}

// 16 bytes on their way into shared memory, or zeros.
OFA_INLINE void copy_piece(uint32_t to, const void* from, bool present) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(present ? 16 : 0) : "memory");
}
OFA_INLINE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

OFA_INLINE void copy_lines(int thread, const Rows& from, int blocks, uint8_t* to) {
    constexpr int ROWS = BLOCK_THREADS / 8;  // at a time
    static_assert(ROWS % 8 == 0);
    const int row0 = thread / 8, piece = thread % 8;
    uint32_t place = piece_at(shared_address(to), row0, piece);
    const bf16* line = from.at(row0) + 8 * piece;
#pragma unroll 4
    for (int row = row0; row < blocks * ATTENTION_BLOCK; row += ROWS) {
        copy_piece(place, row < from.rows ? line : from.data, row < from.rows);
        place += ROWS * LINE_BYTES;
        line += int64_t(ROWS) * from.pitch;
    }
}

OFA_INLINE void turn_eight(uint4& low, uint4& high, const float2 (&turns)[8]) {
    Eight first = unpack(low), second = unpack(high);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        rotate(first.at[i], second.at[i], turns[i].x, turns[i].y, first.at[i], second.at[i]);
    low = pack(first);
    high = pack(second);
}

// Queries and keys where they lie. A thread has eight column pairs of every 64th row; the eight threads that read at a time
// have four rows apart, whose pieces do not meet in the same banks.
OFA_INLINE void turn_lines(Block& block, const AttentionMemory& memory, int blocks) {
    const int lane = block.thread() % 32, piece = lane % 4;
    const int row0 = block.thread() / 32 * 8 + lane / 4 % 2 * 4 + lane / 8;
    const uint32_t low = piece_at(0, row0, piece), high = piece_at(0, row0, piece + 4);
    uint32_t queries = shared_address(memory.queries), keys = shared_address(memory.keys);
    const float2* far = memory.numbers->far_turn[row0 / NEAR_POSITIONS] + 8 * piece;
    float2 near[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) near[i] = memory.numbers->near_turn[row0 % NEAR_POSITIONS][8 * piece + i];
    for (int i = 0; i < blocks; ++i) {
        uint4 q[2] = {load_shared(queries + low), load_shared(queries + high)};
        uint4 k[2] = {load_shared(keys + low), load_shared(keys + high)};
        float2 turns[8];
#pragma unroll
        for (int c = 0; c < 8; ++c) turns[c] = both_turns(far[c], near[c]);
        turn_eight(q[0], q[1], turns);
        turn_eight(k[0], k[1], turns);
        store_shared(queries + low, q[0]);
        store_shared(queries + high, q[1]);
        store_shared(keys + low, k[0]);
        store_shared(keys + high, k[1]);
        queries += BLOCK_BYTES;
        keys += BLOCK_BYTES;
        far += ATTENTION_BLOCK / NEAR_POSITIONS * PAIRS;
    }
}

// Of every row do . o. Eight lanes a row.
struct RowProducts {
    static constexpr int MOST = MOST_POSITIONS * 8 / BLOCK_THREADS, ROWS = BLOCK_THREADS / 8;
    uint4 outputs[MOST];

    OFA_INLINE void load(Block& block, const Rows& o) {
#pragma unroll
        for (int i = 0; i < MOST; ++i) {
            const int row = block.thread() / 8 + ROWS * i;
            outputs[i] = row < o.rows ? load_words(o.at(row) + block.thread() % 8 * 8) : make_uint4(0, 0, 0, 0);
        }
    }
    // Past the lines that were copied for nothing.
    OFA_INLINE void multiply(Block& block, const uint8_t* gradients, float* products) const {
        const int piece = block.thread() % 8, row0 = block.thread() / 8;
        const uint32_t place = piece_at(shared_address(gradients), row0, piece);
#pragma unroll
        for (int i = 0; i < MOST; ++i) {
            const Eight a = unpack(outputs[i]), b = unpack(load_shared(place + i * ROWS * LINE_BYTES));
            float dot = 0.0f;
#pragma unroll
            for (int c = 0; c < 8; ++c) dot += a.at[c] * b.at[c];
#pragma unroll
            for (int distance = 1; distance < 8; distance *= 2) dot += __shfl_xor_sync(0xFFFFFFFFu, dot, distance);
            if (piece == 0) products[row0 + ROWS * i] = dot;
        }
    }
};

OFA_INLINE void begin_attention(Block& block, const TaskContext& ctx, const AttentionMemory& memory) {
    const bool forward = ctx.task->opcode == OPCODE_ATTENTION;
    if (block.thread() <= PARTS) look_up(ctx, block.thread(), *memory.views);
    const bool fits = block.broadcast([&] { return check(ctx, 1, can_attend(*ctx.task) ? 1 : 0); });
    if (!fits) return;
    const int blocks = blocks_of(*ctx.task), thread = block.thread();
    const AttentionViews& views = *memory.views;
    copy_lines(thread, views.of[QUERIES], blocks, memory.queries);
    copy_lines(thread, views.of[KEYS], blocks, memory.keys);
    copy_lines(thread, views.of[forward ? VALUES : OUTPUT_GRADIENTS], blocks, memory.others);
    if (forward) {
        fill_turns(block, ctx, *memory.numbers, blocks);
        wait_for_copies();
        block.sync();
    } else {
        RowProducts products;
        products.load(block, views.of[OUTPUTS]);
        for (int row = thread; row < blocks * ATTENTION_BLOCK; row += BLOCK_THREADS)
            memory.numbers->lse2[row] = row < int(ctx.rows()) ? views.lse[int64_t(row) * views.lse_pitch] * LOG2_E : 0.0f;
        fill_turns(block, ctx, *memory.numbers, blocks);
        wait_for_copies();
        block.sync();
        products.multiply(block, memory.others, memory.numbers->mean);
    }
    turn_lines(block, memory, blocks);
    fence_proxy_shared();
    block.sync();
}

// --- the second half ---------------------------------------------------------------------------------------------

// A thread of a warpgroup: in a block of 64 rows it has row `row` and the eighth after it, columns 8 j + column + {0, 1}.
struct AttentionPlace {
    int lane, group, row, column;  // group: of two warpgroups

    OFA_INLINE AttentionPlace() {
        const int thread = fresh_thread() - FIRST_THREAD;
        lane = thread % 32;
        group = __shfl_sync(0xFFFFFFFFu, thread / 128, 0);  // the same in all lanes, as the assembler sees it
        row = thread % 128 / 32 * 16 + lane / 4;
        column = lane % 4 * 2;
    }
    OFA_INLINE int thread() const { return row / 16 * 32 + lane; }  // of the group
    // The group's `turn`-th block of rows: to and fro, so that long and short rows come together.
    OFA_INLINE int block_of_turn(int turn) const { return 2 * turn + (group ^ (turn % 2)); }
};

using BlockSums = float[32];  // 64 x 64: of row half h and column 8 j + column + c of a thread, [4 j + 2 h + c]
using BlockLeft = Left[STEPS];

OFA_INLINE uint32_t block_at(const uint8_t* matrix, int block) {
    return tile_place(matrix) + uint32_t(block) * (BLOCK_BYTES >> 4);
}

// sums = a b^T, the lines of both being 64 rows.
OFA_INLINE void multiply_by_lines(BlockSums& sums, uint32_t a, uint32_t b) {
    multiply_64_first(sums, descriptor(a), descriptor(b));
#pragma unroll
    for (int step = 1; step < STEPS; ++step)
        multiply_64(sums, descriptor(a + step * K_STEP<false>), descriptor(b + step * K_STEP<false>));
}

// sums += a b
OFA_INLINE void add_product(BlockSums& sums, const BlockLeft& a, uint32_t b) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) multiply_64<true>(sums, a[step].at, descriptor(b + step * K_STEP<true>));
}

// Sums as the left operand of the next product.
OFA_INLINE void pack_sums(const BlockSums& sums, BlockLeft& to) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const int i = 8 * step + 4 * (word / 2) + 2 * (word % 2);
            to[step].at[word] = pack(sums[i], sums[i + 1]);
        }
}

OFA_INLINE void sync_group(const AttentionPlace& place) {
    asm volatile("bar.sync %0, 128;" ::"r"(2 + place.group) : "memory");
}
// Rows that the group owns, into shared memory of its own, when all of it is done with those before.
OFA_INLINE void begin_rows(const AttentionPlace& place, const AttentionMemory& memory, AttentionPart part, int block,
                           int blocks) {
    if (block >= blocks) return;
    sync_group(place);
    const Rows from = memory.views->of[part];
    const int thread = place.thread(), piece = thread % 8;
    const uint32_t to = shared_address(memory.numbers->rows[place.group]);
#pragma unroll
    for (int i = 0; i < ATTENTION_BLOCK; i += 16) {
        const int line = i + thread / 8, row = block * ATTENTION_BLOCK + line;
        copy_piece(piece_at(to, line, piece), from.at(row < from.rows ? row : 0) + 8 * piece, row < from.rows);
    }
}
OFA_INLINE void wait_for_rows(const AttentionPlace& place) {
    wait_for_copies();
    fence_proxy_shared();
    sync_group(place);
}

// Lane l of four has words of column l for four rows; afterwards the words of row l.
OFA_INLINE uint4 across_quad(int lane, uint4 words) {
    const bool odd = lane & 1, high = lane & 2;
    const uint32_t xy = __shfl_xor_sync(0xFFFFFFFFu, odd ? words.x : words.y, 1);
    const uint32_t zw = __shfl_xor_sync(0xFFFFFFFFu, odd ? words.z : words.w, 1);
    const uint4 pairs = odd ? make_uint4(xy, words.y, zw, words.w) : make_uint4(words.x, xy, words.z, zw);
    const uint32_t xz = __shfl_xor_sync(0xFFFFFFFFu, high ? pairs.x : pairs.z, 2);
    const uint32_t yw = __shfl_xor_sync(0xFFFFFFFFu, high ? pairs.y : pairs.w, 2);
    return high ? make_uint4(xz, yw, pairs.z, pairs.w) : make_uint4(pairs.x, pairs.y, xz, yw);
}

// Sums into bf16, rows past the end left out.
OFA_INLINE void store_sums(const AttentionPlace& place, const Rows& to, int block, const BlockSums& sums, float low,
                           float high) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = block * ATTENTION_BLOCK + place.row + 8 * half;
        const float factor = half == 0 ? low : high;
#pragma unroll
        for (int four = 0; four < COLUMN_TILES; four += 4) {
            const auto word = [&](int j) {
                const int i = 4 * (four + j) + 2 * half;
                return pack(sums[i] * factor, sums[i + 1] * factor);
            };
            const uint4 words = across_quad(place.lane, make_uint4(word(0), word(1), word(2), word(3)));
            if (row < to.rows) store_words(to.at(row) + 8 * (four + place.lane % 4), words);
        }
    }
}

// Turns the rows of sums back by their positions.
OFA_INLINE void turn_sums_back(const AttentionPlace& place, const AttentionNumbers& numbers, int block, BlockSums& sums) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = block * ATTENTION_BLOCK + place.row + 8 * half;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES / 2; ++j) {
            const float4 far = *reinterpret_cast<const float4*>(&numbers.far_turn[row / NEAR_POSITIONS][8 * j + place.column]);
            const float4 near = *reinterpret_cast<const float4*>(&numbers.near_turn[row % NEAR_POSITIONS][8 * j + place.column]);
            const float2 turns[2] = {both_turns(make_float2(far.x, far.y), make_float2(near.x, near.y)),
                                     both_turns(make_float2(far.z, far.w), make_float2(near.z, near.w))};
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const int i = 4 * j + 2 * half + c;
                rotate(sums[i], sums[i + PAIRS / 2], turns[c].x, -turns[c].y, sums[i], sums[i + PAIRS / 2]);
            }
        }
    }
}

OFA_INLINE float over_quad(float value, bool largest) {
#pragma unroll
    for (int distance = 1; distance < 4; distance *= 2) {
        const float other = __shfl_xor_sync(0xFFFFFFFFu, value, distance);
        value = largest ? fmaxf(value, other) : value + other;
    }
    return value;
}

// Running softmax of the rows of a thread.
struct Softmax {
    float largest[2], total[2];  // in units of log2; total of the thread's own columns
};

// Scores become weights; what was summed before is worth less by `keep`.
OFA_INLINE void weigh(BlockSums& scores, Softmax& softmax, float (&keep)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float most = scores[2 * half];
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j) most = fmaxf(most, fmaxf(scores[4 * j + 2 * half], scores[4 * j + 2 * half + 1]));
        most = fmaxf(softmax.largest[half], over_quad(most, true) * SCORE_LOG2);
        keep[half] = exp2_of(softmax.largest[half] - most);
        softmax.largest[half] = most;
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j)
#pragma unroll
            for (int i = 4 * j + 2 * half; i < 4 * j + 2 * half + 2; ++i) {
                scores[i] = exp2_of(scores[i] * SCORE_LOG2 - most);
                sum += scores[i];
            }
        softmax.total[half] = softmax.total[half] * keep[half] + sum;
    }
}

OFA_INLINE void attend(const AttentionMemory& memory, const AttentionPlace& place, int block) {
    BlockLeft weights;
    BlockSums scores, out;
#pragma unroll
    for (float& sum : out) sum = 0.0f;
    Softmax softmax = {{NEVER, NEVER}, {0.0f, 0.0f}};
    const uint32_t queries = block_at(memory.queries, block);
    for (int keys = 0; keys <= block; ++keys) {
        begin_multiply();
        multiply_by_lines(scores, queries, block_at(memory.keys, keys));
        commit_multiply();
        wait_multiply<0>();
        if (keys == block)
#pragma unroll
            for (int i = 0; i < 32; ++i)
                if (i / 4 * 8 + i % 2 + place.column > place.row + i / 2 % 2 * 8) scores[i] = NEVER;
        float keep[2];
        weigh(scores, softmax, keep);
#pragma unroll
        for (int i = 0; i < 32; ++i) out[i] *= keep[i / 2 % 2];
        pack_sums(scores, weights);
        begin_multiply();
        add_product(out, weights, block_at(memory.others, keys));
        commit_multiply();
        wait_multiply<0>();
    }
    const Rows o = memory.views->of[OUTPUTS];
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float sum = over_quad(softmax.total[half], false);
        const int row = block * ATTENTION_BLOCK + place.row + 8 * half;
        inverse[half] = __fdividef(1.0f, sum);
        if (place.lane % 4 == 0 && row < o.rows)
            memory.views->lse[int64_t(row) * memory.views->lse_pitch] = (softmax.largest[half] + __log2f(sum)) * LN_2;
    }
    store_sums(place, o, block, out, inverse[0], inverse[1]);
}

// dk and dv of 64 keys; rows are keys, columns queries.
OFA_INLINE void key_gradients(const AttentionMemory& memory, const AttentionPlace& place, int block, int next, int blocks) {
    BlockLeft packed;
    const uint32_t key = block_at(memory.keys, block), value = block_at(memory.numbers->rows[place.group], 0);
    wait_for_rows(place);
    BlockSums key_sums, value_sums;
#pragma unroll
    for (float& sum : key_sums) sum = 0.0f;
#pragma unroll
    for (float& sum : value_sums) sum = 0.0f;
    for (int queries = block; queries < blocks; ++queries) {
        BlockSums weight, change;
        const uint32_t q = block_at(memory.queries, queries), d_o = block_at(memory.others, queries);
        begin_multiply();
        multiply_by_lines(weight, key, q);
        commit_multiply();
        multiply_by_lines(change, value, d_o);
        commit_multiply();
        wait_multiply<1>();
        const int first = queries * ATTENTION_BLOCK + place.column;
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j) {
            const float2 lse2 = *reinterpret_cast<const float2*>(memory.numbers->lse2 + first + 8 * j);
#pragma unroll
            for (int i = 4 * j; i < 4 * j + 4; ++i) weight[i] = exp2_of(weight[i] * SCORE_LOG2 - (i % 2 == 0 ? lse2.x : lse2.y));
        }
        if (queries == block)
#pragma unroll
            for (int i = 0; i < 32; ++i)
                if (i / 4 * 8 + i % 2 + place.column < place.row + i / 2 % 2 * 8) weight[i] = 0.0f;
        pack_sums(weight, packed);
        begin_multiply();
        add_product(value_sums, packed, d_o);
        commit_multiply();
        wait_multiply<1>();
#pragma unroll
        for (int j = 0; j < COLUMN_TILES; ++j) {
            const float2 mean = *reinterpret_cast<const float2*>(memory.numbers->mean + first + 8 * j);
#pragma unroll
            for (int i = 4 * j; i < 4 * j + 4; ++i) weight[i] *= change[i] - (i % 2 == 0 ? mean.x : mean.y);
        }
        wait_multiply<0>();
        pack_sums(weight, packed);
        begin_multiply();
        add_product(key_sums, packed, q);
        commit_multiply();
        wait_multiply<0>();
    }
    begin_rows(place, memory, VALUES, next, blocks);
    store_sums(place, memory.views->of[VALUE_GRADIENTS], block, value_sums, 1.0f, 1.0f);
    turn_sums_back(place, *memory.numbers, block, key_sums);
    store_sums(place, memory.views->of[KEY_GRADIENTS], block, key_sums, SCORE_SCALE, SCORE_SCALE);
}

// dq of 64 queries.
OFA_INLINE void query_gradients(const AttentionMemory& memory, const AttentionPlace& place, int block, int next, int blocks) {
    BlockLeft changes;
    const uint32_t query = block_at(memory.queries, block), output = block_at(memory.numbers->rows[place.group], 0);
    float lse2[2], mean[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        lse2[half] = memory.numbers->lse2[block * ATTENTION_BLOCK + place.row + 8 * half];
        mean[half] = memory.numbers->mean[block * ATTENTION_BLOCK + place.row + 8 * half];
    }
    BlockSums sums;
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    wait_for_rows(place);
    for (int keys = 0; keys <= block; ++keys) {
        BlockSums weight, change;
        const uint32_t k = block_at(memory.keys, keys);
        begin_multiply();
        multiply_by_lines(weight, query, k);
        commit_multiply();
        multiply_by_lines(change, output, block_at(memory.others, keys));
        commit_multiply();
        wait_multiply<1>();
#pragma unroll
        for (int i = 0; i < 32; ++i) weight[i] = exp2_of(weight[i] * SCORE_LOG2 - lse2[i / 2 % 2]);
        if (keys == block)
#pragma unroll
            for (int i = 0; i < 32; ++i)
                if (i / 4 * 8 + i % 2 + place.column > place.row + i / 2 % 2 * 8) weight[i] = 0.0f;
        wait_multiply<0>();
#pragma unroll
        for (int i = 0; i < 32; ++i) weight[i] *= change[i] - mean[i / 2 % 2];
        pack_sums(weight, changes);
        begin_multiply();
        add_product(sums, changes, k);
        commit_multiply();
        wait_multiply<0>();
    }
    begin_rows(place, memory, OUTPUT_GRADIENTS, next, blocks);
    turn_sums_back(place, *memory.numbers, block, sums);
    store_sums(place, memory.views->of[QUERY_GRADIENTS], block, sums, SCORE_SCALE, SCORE_SCALE);
}

// last_turn() is told when a group begins with the last rows that it owns.
template <class LastTurn>
OFA_INLINE void finish_attention(Block& block, const Task& task, const AttentionMemory& memory, LastTurn last_turn) {
    const AttentionPlace place;
    const int blocks = can_attend(task) ? blocks_of(task) : 0;
    const auto begin_turn = [&](int turn) {
        if (place.block_of_turn(turn + 1) >= blocks) last_turn();
    };
    if (blocks == 0) return last_turn();
    if (task.opcode == OPCODE_ATTENTION) {
        for (int turn = 0; place.block_of_turn(turn) < blocks; ++turn) {
            begin_turn(turn);
            attend(memory, place, place.block_of_turn(turn));
        }
        return;
    }
    begin_rows(place, memory, VALUES, place.block_of_turn(0), blocks);
    for (int turn = 0; place.block_of_turn(turn) < blocks; ++turn)
        key_gradients(memory, place, place.block_of_turn(turn), place.block_of_turn(turn + 1), blocks);
    block.sync();
    copy_lines(fresh_thread() - FIRST_THREAD, memory.views->of[VALUES], blocks, memory.others);
    begin_rows(place, memory, OUTPUT_GRADIENTS, place.block_of_turn(0), blocks);
    wait_for_copies();
    fence_proxy_shared();
    block.sync();
    for (int turn = 0; place.block_of_turn(turn) < blocks; ++turn) {
        begin_turn(turn);
        query_gradients(memory, place, place.block_of_turn(turn), place.block_of_turn(turn + 1), blocks);
    }
}

}  // namespace ofa::sm90
