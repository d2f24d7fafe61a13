// What the consumers do for a pass of several rows: the work of ops/sm90/token.cuh for each of them, from one reading of the
// weights. A row is a column of the right operand, once with its values in bf16 and once with what they leave; sums are
// taken and added in the order in which they are for a row alone, so that a stream never shows in the text of another.
//
// Attention is a warp's own work for a row.
#pragma once

#include "ops/sm90/token.cuh"

namespace ofa::sm90 {

static_assert(PASS_ROWS == 8 && RowMemory::WARPS == 8);

OFA_INLINE RowsMemory& rows_memory() { return token_memory().several; }

// A pass as a warp sees it. `run.turn` says which copy of the parts is next, `squares_turn` which of the squares.
struct PassRun {
    TokenRun run;
    uint32_t rows, squares_turn;
    uint32_t feed_forward, vocab;
};

// A warp's slice of a chunk of all rows, as right operands.
struct Slices {
    Right near[SLICE], rest[SLICE];
};

// The warp's slice of chunk `chunk` of the step's input. Lane 4 n + q has of row n what it needs itself: pairs q and q + 4 of
// each block of columns. Returns the sum of the squares of the slice of its row, in every lane of the row.
OFA_INLINE float receive_chunk(const PassRun& pass, const Step& step, uint32_t chunk, bool normed, Slices& x) {
    const TokenRun& run = pass.run;
    const Share share(step, run.warp);
    const uint32_t across = share.blocks * step.chunks * WEIGHT_BLOCK, tag = step.tag[0];
    const uint32_t row = uint32_t(run.lane) / 4, pair = uint32_t(run.lane) % 4;
    const bool active = row < pass.rows;
    const uint32_t column = (chunk * share.blocks + share.first) * WEIGHT_BLOCK + 2 * pair;
    const uint64_t* const from = step.at<const uint64_t>(0) + (active ? row : 0) * across + column;
    float squares[2 * SLICE];  // of pairs, by their number in the slice divided by 4
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        TwoPackets got[HALF_SLICE][2];
        for (uint32_t polls = 0;;) {
            bool there = true;
#pragma unroll
            for (int i = 0; i < HALF_SLICE; ++i) {
                // Who has no such block looks at the slice's first one.
                const int block = HALF_SLICE * half + i < int(share.count) ? HALF_SLICE * half + i : 0;
                got[i][0] = load_two(from + block * WEIGHT_BLOCK);
                got[i][1] = load_two(from + block * WEIGHT_BLOCK + WEIGHT_BLOCK / 2);
            }
#pragma unroll
            for (int i = 0; i < HALF_SLICE; ++i)
#pragma unroll
                for (int part = 0; part < 4; ++part) there &= tag_of(got[i][part / 2].at[part % 2]) == tag;
            if (!look_again(run, step, 0, there, polls)) break;
        }
#pragma unroll
        for (int i = 0; i < HALF_SLICE; ++i) {
            const int block = HALF_SLICE * half + i;
            const bool counts = active && block < int(share.count);
#pragma unroll
            for (int second = 0; second < 2; ++second) {
                const float a = counts ? value_of(got[i][second].at[0]) : 0.0f;
                const float b = counts ? value_of(got[i][second].at[1]) : 0.0f;
                squares[2 * block + second] = sum_of_squares(a, b);
                float2 gain = {1.0f, 1.0f};
                if (normed && counts)
                    gain = *reinterpret_cast<const float2*>(step.at<const float>(1) + column + block * WEIGHT_BLOCK +
                                                            second * WEIGHT_BLOCK / 2);
                const SplitPair split = split_pair(a, b, gain);
                x.near[block].at[second] = split.near;
                x.rest[block].at[second] = split.rest;
            }
        }
    }
    // As a warp adds up what its lanes have of one row: lane l has pairs l and l + 32 there.
    float sum[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = i < 4 ? squares[i] + squares[8 + i] : squares[i];
#pragma unroll
    for (int distance = 4; distance > 0; distance /= 2)
#pragma unroll
        for (int i = 0; i < distance; ++i) sum[i] += sum[i + distance];
    float total = sum[0] + __shfl_xor_sync(0xFFFFFFFFu, sum[0], 2);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
    return total;
}

// A pair of blocks of weight rows times the warp's slices of all rows of the pass, for a chunk that lies in the next stage.
OFA_INLINE void multiply_chunk(PassRun& pass, const Step& step, const Slices& x, Sums (&near)[2][2], Sums (&rest)[2][2]) {
    TokenRun& run = pass.run;
    const Share share(step, run.warp);
    const uint32_t stage = run.stages.stage(), apart = share.blocks * WEIGHT_BLOCK_BYTES;
    const uint8_t* const from = shared_pipeline().a[0] + share.first * WEIGHT_BLOCK_BYTES + run.lane * 16 +
                                stage * STREAM_STAGE_BYTES;
    wait_for(&shared_pipeline().full[stage], run.stages.parity());
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        HalfSlice weights;
        weights.load<false>(from, apart, half, share.count);
        if (half == 1) {
            __syncwarp();
            if (run.lane == 0) arrive(&shared_pipeline().empty[stage]);
        }
#pragma unroll
        for (int i = 0; i < HALF_SLICE; ++i)
#pragma unroll
            for (int block = 0; block < 2; ++block) {
                const uint4 w = weights.at[block][i];
                const Left left{{w.x, w.y, w.z, w.w}};
                multiply_add(near[block][i % 2], left, x.near[HALF_SLICE * half + i]);
                multiply_add(rest[block][i % 2], left, x.rest[HALF_SLICE * half + i]);
            }
    }
    run.stages.advance();
}

// The warp's sums of a pair of blocks of weight rows, for all rows of the pass, into shared memory.
OFA_INLINE void store_parts(const PassRun& pass, const Sums (&near)[2][2], const Sums (&rest)[2][2]) {
    const int lane = pass.run.lane;
    auto& parts = rows_memory().parts[pass.run.turn][pass.run.warp];
#pragma unroll
    for (int block = 0; block < 2; ++block)
#pragma unroll
        for (int high = 0; high < 2; ++high) {
            float two[2];
#pragma unroll
            for (int c = 0; c < 2; ++c)
                two[c] = (near[block][0].at[2 * high + c] + rest[block][0].at[2 * high + c]) +
                         (near[block][1].at[2 * high + c] + rest[block][1].at[2 * high + c]);
            *reinterpret_cast<float2*>(&parts[WEIGHT_BLOCK * block + 8 * high + lane / 4][2 * (lane % 4)]) =
                make_float2(two[0], two[1]);
        }
}

// Of weight row `row` of the pair and a row of the pass.
OFA_INLINE float sum_of_row(const PassRun& pass, int row, int of_pass) {
    float part[RowMemory::WARPS];
#pragma unroll
    for (int warp = 0; warp < RowMemory::WARPS; ++warp) part[warp] = rows_memory().parts[pass.run.turn][warp][row][of_pass];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

OFA_INLINE float scale_of_row(const PassRun& pass, int of_pass) {
    float part[RowMemory::WARPS];
#pragma unroll
    for (int warp = 0; warp < RowMemory::WARPS; ++warp)
        part[warp] = rows_memory().squares[pass.squares_turn][warp][of_pass];
    const float squares = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    return rsqrtf(squares * pass.run.inverse_width + pass.run.epsilon);
}

// Receives a chunk, and keeps the squares: of an input that is normed there is one.
OFA_INLINE void take_chunk(PassRun& pass, const Step& step, uint32_t chunk, bool normed, Slices& x) {
    const TokenRun& run = pass.run;
    const uint64_t begun = clock64();
    const float squares = receive_chunk(pass, step, chunk, normed, x);
    if (run.lane % 4 == 0) rows_memory().squares[pass.squares_turn][run.warp][run.lane / 4] = squares;
    if (run.warp == RowMemory::WARPS - 1 && run.lane == 0) token_memory().waited += clock64() - begun;
}

// finish(pair, row of the pair, row of the pass, whether there are such rows, sum) by a thread each.
template <class Finish>
OFA_INLINE void finish_pair(PassRun& pass, const Step& step, uint32_t pair, const Sums (&near)[2][2],
                            const Sums (&rest)[2][2], Block& block, Finish finish) {
    store_parts(pass, near, rest);
    block.sync();
    const int row = block.thread() / int(PASS_ROWS), of_pass = block.thread() % int(PASS_ROWS);
    const bool there = row < WEIGHT_BLOCK || (step.single >> pair & 1) == 0;
    finish(int(pair), row, of_pass, there && of_pass < int(pass.rows), sum_of_row(pass, row, of_pass));
    pass.run.turn ^= 1;
}

// All pairs of a step whose input is normed, so is one chunk. `finish` must call nothing: the input stays in registers.
template <class Finish>
OFA_INLINE void multiply_normed(PassRun& pass, const Step& step, Block& block, Finish finish) {
    Slices x;
    take_chunk(pass, step, 0, true, x);
    for (uint32_t pair = 0; pair < step.pairs; ++pair) {
        Sums near[2][2] = {}, rest[2][2] = {};
        multiply_chunk(pass, step, x, near, rest);
        finish_pair(pass, step, pair, near, rest, block, finish);
    }
}

// A step of one pair, whatever its chunks.
template <class Finish>
OFA_INLINE void multiply_plain(PassRun& pass, const Step& step, Block& block, Finish finish) {
    Sums near[2][2] = {}, rest[2][2] = {};
    for (uint32_t chunk = 0; chunk < step.chunks; ++chunk) {
        Slices x;
        take_chunk(pass, step, chunk, false, x);
        multiply_chunk(pass, step, x, near, rest);
    }
    finish_pair(pass, step, 0, near, rest, block, finish);
}

// A unit's columns of q, k and v of every row; a warp turns a row's, and looks through its keys.
OFA_INLINE void qkv_rows(PassRun& pass, const Step& step, Block& block) {
    RowsMemory& memory = rows_memory();
    TokenRun& run = pass.run;
    multiply_normed(pass, step, block, [&](int pair, int row, int of_pass, bool, float sum) {
        memory.values[pair][of_pass][row] = sum * scale_of_row(pass, of_pass);
    });
    block.sync();
    const uint32_t first = step.row[0];
    const int lane = run.lane, piece = lane % 4;
    const bool active = uint32_t(run.warp) < pass.rows;
    const RowPlace row(*token_memory().ctx->launch, active ? uint32_t(run.warp) : 0);
    bf16* const keys = step.at<bf16>(3) + uint64_t(row.first) * run.width;
    if (active) {
        const int turn = int(first % HEAD) + lane % RUN;
        const float cosine = memory.cosine[run.warp][turn], sine = memory.sine[run.warp][turn];
        float two[2];
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            const float value = memory.values[part][run.warp][lane];
            two[part] = turned(value, __shfl_xor_sync(0xFFFFFFFFu, value, RUN), cosine, sine, lane < RUN);
        }
        const uint64_t place = uint64_t(row.position) * run.width + unit_column(first, lane);
        const uint32_t key = pack(two[1], 0.0f);
        keys[place] = bf16(key);
        const uint32_t value = pack(memory.values[2][run.warp][lane], 0.0f);
        (step.at<bf16>(4) + uint64_t(row.first) * run.width)[place] = bf16(value);
        memory.fresh[run.warp][lane] = bf16(value);
        memory.keys[run.warp][lane] = bf16(key);
        memory.values[0][run.warp][lane] = two[0] * 0.125f;
    }
    run.fresh = first;
    block.sync();
    if (!active) return;
    // Of the rows before it in the pass those of its stream have new keys, too.
    uint32_t behind = 0;
    for (uint32_t other = 0; other < row.number; ++other)
        behind += RowPlace(*token_memory().ctx->launch, other).first == row.first ? 1 : 0;
    if (lane == 0) memory.behind[run.warp] = behind;
    const float4 low = reinterpret_cast<const float4*>(memory.values[0][run.warp])[2 * piece];
    const float4 high = reinterpret_cast<const float4*>(memory.values[0][run.warp])[2 * piece + 1];
    const uint64_t scores = place_of_scores(run, row, unit_of(first));
    const bf16* const cached = keys + unit_column(first, 8 * piece);
    for (uint32_t begin = 0; begin <= row.position; begin += 32)
        publish_scores(run, step, row, begin, low, high, scores, [&](int, uint32_t r) {
            if (r > row.position) return uint4{0, 0, 0, 0};
            const uint32_t back = row.position - r;
            return back <= behind ? load_words(memory.keys[row.number - back] + 8 * piece)
                                  : load_words(cached + uint64_t(r) * run.width);
        });
}

OFA_INLINE void attend_rows(const PassRun& pass, const Step& step) {
    const TokenRun& run = pass.run;
    if (uint32_t(run.warp) >= pass.rows) return;
    RowsMemory& memory = rows_memory();
    const RowPlace row(*token_memory().ctx->launch, uint32_t(run.warp));
    const bool fresh = run.fresh == step.row[0];
    const uint32_t behind = memory.behind[run.warp];
    for (int part = 0; part < RowMemory::WARPS; ++part) {
        const AttendedPart got = attend_part(run, step, row, part, [&](uint32_t r, const bf16* cached) {
            const uint32_t back = row.position - r;
            return fresh && back <= behind ? memory.fresh[row.number - back] + 8 * (run.lane % 4) : cached;
        });
        memory.outs(run.turn, run.warp, part)[AttendedPart::column(run.lane)] = got.out;
        if (run.lane == 0) {
            memory.largest[run.warp][part] = got.largest;
            memory.sums[run.warp][part] = got.total;
        }
    }
    __syncwarp();
    const float joined = join_parts(memory.largest[run.warp], memory.sums[run.warp],
                                    [&](int part) { return memory.outs(run.turn, run.warp, part)[run.lane]; });
    publish_at(step, 2, int64_t(row.number) * run.width + unit_column(step.row[0], run.lane), joined);
}

OFA_INLINE void residual_rows(PassRun& pass, const Step& step, Block& block) {
    const uint32_t width = pass.run.width;
    multiply_plain(pass, step, block, [&](int pair, int row, int of_pass, bool there, float sum) {
        const uint64_t at = there ? of_pass * uint64_t(width) + step.row[pair] + uint32_t(row) : step.row[pair];
        const uint64_t* const packet = step.at<const uint64_t>(2) + at;
        const float skipped = receive_one(pass.run, step, packet, load_relaxed(packet), there);
        if (there) publish_at(step, 3, int64_t(at), skipped + sum);
    });
}

OFA_INLINE void product_rows(PassRun& pass, const Step& step, Block& block) {
    const bool gelu = step.opcode == OPCODE_STREAM_NORM_MATMUL_GELU;
    multiply_normed(pass, step, block, [&](int pair, int row, int of_pass, bool there, float sum) {
        if (!there) return;
        const uint64_t column = step.row[pair] + uint32_t(row);
        const float value = sum * scale_of_row(pass, of_pass);
        if (gelu)
            publish_at(step, 3, int64_t(of_pass * uint64_t(pass.feed_forward) + column), gelu_of(value));
        else
            step.at<float>(3)[of_pass * uint64_t(pass.vocab) + column] = value;
    });
}

// The rotation of each pair of columns at each row's position, a warp for a row.
OFA_INLINE void rotate_rows(const PassRun& pass) {
    const TokenRun& run = pass.run;
    if (uint32_t(run.warp) >= pass.rows) return;
    const Launch& launch = *token_memory().ctx->launch;
    double turns = shared_pipeline().turns[run.lane];  // as in rotate_pairs, which may not have been there yet
    if (turns == 0.0) turns = rotary_frequency(run.lane, HEAD, double(launch.model.rope_base));
    if (run.warp == 0) shared_pipeline().turns[run.lane] = turns;
    const math::SineCosine angle =
        math::sine_cosine_of_turns(double(RowPlace(launch, uint32_t(run.warp)).position) * turns);
    rows_memory().cosine[run.warp][run.lane] = angle.cosine;
    rows_memory().sine[run.warp][run.lane] = angle.sine;
}

// The block's share of a pass, but for opening and sampling it.
OFA_NOINLINE void run_pass(const TaskContext& ctx) {
    Block& block = shared_pipeline().block;
    const Model& model = ctx.launch->model;
    PassRun pass{begin_steps(ctx, block), ctx.launch->serve->n_rows, 0, model.feed_forward, model.vocab};
    rotate_rows(pass);
    for (const Step* next; (next = next_step(pass.run)) != nullptr; pass.run.steps.advance()) {
        const Step& step = *next;
        if (step.opcode == OPCODE_STREAM_QKV) {
            qkv_rows(pass, step, block);
        } else if (step.opcode == OPCODE_STREAM_ATTENTION) {
            attend_rows(pass, step);
            pass.run.turn ^= 1;
        } else if (step.opcode == OPCODE_STREAM_MATMUL_RESIDUAL) {
            residual_rows(pass, step, block);
        } else {
            product_rows(pass, step, block);
        }
        pass.squares_turn ^= 1;
        end_step(pass.run, step);
    }
    end_steps(pass.run, block);
}

}  // namespace ofa::sm90
