// What the consumers do for a token (tile/token.cuh). Every warp has its own slice of the depth of each weight: it waits
// for the packets of that slice alone, and its sums are added to those of the others in a fixed order, so that a token
// does not depend on who computes it. Between the arrival of a message and the sums there is no barrier of the block,
// and one between the sums and what is published.
#pragma once

#include "ops/stream.h"
#include "tile/mma.cuh"
#include "tile/pipeline.cuh"

namespace ofa::sm90 {

constexpr int HEAD = STREAM_HEAD, UNIT = RowMemory::UNIT, RUN = UNIT / 2, MOST_ROUNDS = 2;
constexpr int SLICE = RowMemory::SLICE;
constexpr uint32_t PATIENT_POLLS = 1024;
static_assert(MOST_ROUNDS * BLOCK_THREADS >= MOST_CONTEXT && UNIT * 2 == HEAD);

struct TwoPackets {
    uint64_t at[2];
};
OFA_INLINE TwoPackets load_two(const uint64_t* from) {
    TwoPackets packets;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(packets.at[0]), "=l"(packets.at[1]) : "l"(from)
                 : "memory");
    return packets;
}
OFA_INLINE void publish_at(const Step& step, int operand, int64_t at, float value) {
    store_relaxed(step.at<uint64_t>(operand) + at, uint64_t(step.tag[operand]) << 32 | __float_as_uint(value));
}

OFA_INLINE TokenMemory& token_memory() { return shared_pipeline().token(); }
OFA_INLINE RowMemory& row_memory() { return token_memory().one; }

// A row of the pass, where its tokens' attention looks.
struct RowPlace {
    uint32_t position, first;  // in the story; of its stream's rows in the caches
    uint32_t number;

    OFA_INLINE RowPlace(const Launch& launch, uint32_t row)
        : position(launch.serve->rows[row].position),
          first(launch.serve->rows[row].stream * launch.model.context),
          number(row) {}
};

struct TokenRun {
    Position<STAGES> stages;
    Position<STEP_SLOTS> steps;
    RowPlace row;  // of a pass that has no other
    uint32_t turn;
    int warp, lane;
    float squares;   // of the warp's slice of the input
    bool ready;      // the next stage was full when the warp last looked
    uint32_t fresh;  // first column of the unit whose new values lie in shared memory
    uint32_t width, context;
    float inverse_width, epsilon;
};

// While a packet does not come, with the deadline of all waits (sched/wait.h). False when there is no sense in waiting.
OFA_NOINLINE bool has_patience(const Step& step, int operand) {
    TaskContext ctx = *token_memory().ctx;
    const Launch& launch = *ctx.launch;
    if (aborted(launch)) return false;
    ctx.task = launch.programs[PROGRAM_DECODE].tasks + step.task;
    show_task(ctx, PHASE_WAITING);
    uint64_t& checked_ns = token_memory().checked_ns[warp_of_block()];
    uint64_t& started_ns = token_memory().started_ns[warp_of_block()];
    const uint64_t now = now_ns();
    if (now - checked_ns > LONGEST_GAP_NS || held(ctx)) started_ns = now;
    checked_ns = now;
    if (now - started_ns <= load_relaxed(&launch.control->deadline_ns)) return true;
    record_abort(ctx, ABORT_DEADLINE, launch.n_counters + step.name[operand], 1, 0);
    return false;
}

// After a look at a warp's packets: whether it has to look again.
OFA_INLINE bool look_again(const TokenRun& run, const Step& step, int operand, bool there, uint32_t& polls) {
    if (__all_sync(0xFFFFFFFFu, there)) return false;
    if (++polls % PATIENT_POLLS != 0) return true;
    volatile uint32_t& given_up = token_memory().given_up;
    if (given_up == 0 && run.lane == 0 && !has_patience(step, operand)) given_up = 1;
    __syncwarp();
    return given_up == 0;
}

OFA_INLINE float sum_of_squares(float a, float b) { return fmaf(a, a, b * b); }

// A pair of inputs times their gains in bf16, and what that leaves. The product is rounded before the rest is taken,
// wherever this is inlined: rows alone and rows among others must have the same bits.
struct SplitPair {
    uint32_t near, rest;
};
OFA_INLINE SplitPair split_pair(float a, float b, float2 gain) {
    const float x = __fmul_rn(a, gain.x), y = __fmul_rn(b, gain.y);
    const uint32_t near = pack(x, y);
    return {near, pack(x - low_of(near), y - high_of(near))};
}

// A warp's blocks of each chunk.
struct Share {
    uint32_t blocks, first, count;

    OFA_INLINE Share(const Step& step, int warp) : blocks(step.blocks) {
        first = blocks * uint32_t(warp) / RowMemory::WARPS;
        count = blocks * uint32_t(warp + 1) / RowMemory::WARPS - first;
    }
};

// The warp's slices of the step's input, of at most `MOST` chunks, into its part of memory.x. Returns the sum of the squares
// of the lane's values.
template <int MOST>
OFA_INLINE float receive_slices(const TokenRun& run, const Step& step, bool normed) {
    const Share share(step, run.warp);
    const uint32_t pairs = share.count * (WEIGHT_BLOCK / 2), chunks = MOST == 1 ? 1 : step.chunks, tag = step.tag[0];
    const uint32_t pair = uint32_t(run.lane) < pairs ? uint32_t(run.lane) : 0;
    const bool two = pair + 32 < pairs, one = uint32_t(run.lane) < pairs;
    const uint32_t column = share.first * WEIGHT_BLOCK + 2 * pair, further = share.blocks * WEIGHT_BLOCK;
    const uint64_t* const from = step.at<const uint64_t>(0) + column;
    const uint32_t second = two ? 64 : 0;
    float2 gain[2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};
    if (normed) {
        gain[0] = *reinterpret_cast<const float2*>(step.at<const float>(1) + column);
        gain[1] = *reinterpret_cast<const float2*>(step.at<const float>(1) + column + second);
    }
    TwoPackets got[MOST][2];
    for (uint32_t polls = 0;;) {
        bool there = true;
#pragma unroll
        for (int chunk = 0; chunk < MOST; ++chunk)
            if (chunk < chunks) {
                got[chunk][0] = load_two(from + chunk * further);
                got[chunk][1] = load_two(from + chunk * further + second);
            } else {
                got[chunk][0] = got[chunk][1] = {};  // set everywhere: else it would be alive all through the token
            }
#pragma unroll
        for (int chunk = 0; chunk < MOST; ++chunk)
            if (chunk < chunks)
#pragma unroll
                for (int part = 0; part < 4; ++part) there &= tag_of(got[chunk][part / 2].at[part % 2]) == tag;
        if (!look_again(run, step, 0, there || !one, polls)) break;
    }
    // Pair t of a block goes to lane quarter t mod 4, to its first register for t < 4, else to its second.
    const int place = run.lane / 8 * 8 + run.lane % 4 * 2 + run.lane % 8 / 4;
    float squares = 0.0f;
#pragma unroll
    for (int chunk = 0; chunk < MOST; ++chunk)
        if (chunk < chunks) {
            uint32_t(&words)[2][RowMemory::SLICE_PAIRS] = row_memory().x[chunk][run.warp];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float a = value_of(got[chunk][half].at[0]), b = value_of(got[chunk][half].at[1]);
                if (!(half == 0 ? one : two)) continue;
                squares += sum_of_squares(a, b);
                const SplitPair pair = split_pair(a, b, gain[half]);
                words[0][place + 32 * half] = pair.near;
                words[1][place + 32 * half] = pair.rest;
            }
        }
    __syncwarp();
    return squares;
}

// Half a warp's slice of two blocks of weight rows.
constexpr int HALF_SLICE = SLICE / 2;
struct HalfSlice {
    uint4 at[2][HALF_SLICE];

    // Of a slice of `count` blocks of columns; those of the second block of rows lie `apart` bytes on.
    template <bool whole>
    OFA_INLINE void load(const uint8_t* from, uint32_t apart, int half, uint32_t count) {
#pragma unroll
        for (int i = 0; i < HALF_SLICE; ++i) {
            const int block = HALF_SLICE * half + i;
            const bool there = whole || block < int(count);
            at[0][i] = there ? load_words(from + block * WEIGHT_BLOCK_BYTES) : uint4{0, 0, 0, 0};
            at[1][i] = there ? load_words(from + apart + block * WEIGHT_BLOCK_BYTES) : uint4{0, 0, 0, 0};
        }
    }
    // sums += the half times that of the input.
    OFA_INLINE void multiply(Sums (&sums)[2][2], const Right (&x)[SLICE], int half) const {
#pragma unroll
        for (int i = 0; i < HALF_SLICE; ++i)
#pragma unroll
            for (int block = 0; block < 2; ++block) {
                const uint4 w = at[block][i];
                multiply_add(sums[block][i % 2], Left{{w.x, w.y, w.z, w.w}}, x[HALF_SLICE * half + i]);
            }
    }
};

// The step's rows times the warp's slices, into memory.parts. The first half of a stage is on its way to registers while
// the second half of the stage before it is multiplied.
template <bool whole>
OFA_INLINE void multiply_step(TokenRun& run, const Step& step, const Share& share) {
    const int lane = run.lane;
    const uint32_t pairs = step.pairs, chunks = step.chunks, apart = share.blocks * WEIGHT_BLOCK_BYTES;
    float* const parts = row_memory().parts[run.turn][run.warp];
    const uint8_t* const stages = shared_pipeline().a[0] + share.first * WEIGHT_BLOCK_BYTES + lane * 16;
    HalfSlice first, second;
    bool loaded = false;
    // Even columns of the right operand hold the values in bf16, odd ones the rest.
    Right x[SLICE];
    const auto look_up = [&](uint32_t chunk) {
        const uint2* const words = reinterpret_cast<const uint2*>(row_memory().x[chunk][run.warp][lane / 4 % 2]);
#pragma unroll
        for (int i = 0; i < SLICE; ++i) {
            const uint2 both = whole || i < int(share.count) ? words[4 * i + lane % 4] : uint2{0, 0};
            x[i] = {{both.x, both.y}};
        }
    };
    look_up(0);
    first.load<false>(stages, 0, 0, 0);
    for (uint32_t pair = 0; pair < pairs; ++pair) {
        Sums sums[2][2] = {};
        for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
            if (chunks > 1) look_up(chunk);
            const uint32_t stage = run.stages.stage();
            const uint8_t* const from = stages + stage * STREAM_STAGE_BYTES;
            if (!loaded) {
                if (!run.ready) wait_for(&shared_pipeline().full[stage], run.stages.parity());
                first.load<whole>(from, apart, 0, share.count);
            }
            second.load<whole>(from, apart, 1, share.count);
            __syncwarp();
            if (lane == 0) arrive(&shared_pipeline().empty[stage]);
            run.stages.advance();
            const uint32_t next_stage = run.stages.stage();
            run.ready = has_passed_already(&shared_pipeline().full[next_stage], run.stages.parity());
            first.multiply(sums, x, 0);
            loaded = run.ready && (chunk + 1 < chunks || pair + 1 < pairs);
            if (loaded) first.load<whole>(stages + next_stage * STREAM_STAGE_BYTES, apart, 0, share.count);
            second.multiply(sums, x, 1);
        }
        // Lane quarter 0 .. 3: low and high rows of the first block, of the second one.
        float rows[4];
#pragma unroll
        for (int block = 0; block < 2; ++block)
#pragma unroll
            for (int high = 0; high < 2; ++high)
                rows[2 * block + high] = (sums[block][0].at[2 * high] + sums[block][0].at[2 * high + 1]) +
                                         (sums[block][1].at[2 * high] + sums[block][1].at[2 * high + 1]);
        const float low = lane % 2 == 0 ? rows[0] : rows[1], high = lane % 2 == 0 ? rows[2] : rows[3];
        parts[2 * WEIGHT_BLOCK * pair + 8 * (lane % 4) + lane / 4] = lane % 4 < 2 ? low : high;
    }
}

OFA_INLINE float sum_of_parts(const TokenRun& run, int row) {
    float part[RowMemory::WARPS];
#pragma unroll
    for (int warp = 0; warp < RowMemory::WARPS; ++warp) part[warp] = row_memory().parts[run.turn][warp][row];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

OFA_INLINE float scale_of_norm(const TokenRun& run) {
    float part[RowMemory::WARPS];
#pragma unroll
    for (int warp = 0; warp < RowMemory::WARPS; ++warp) part[warp] = row_memory().squares[run.turn][warp];
    const float squares = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    return rsqrtf(squares * run.inverse_width + run.epsilon);
}

// Column of all heads where element e of a unit lies; `first` is that of its element 0.
OFA_INLINE uint32_t unit_column(uint32_t first, int e) { return first + uint32_t(e < RUN ? e : HEAD / 2 + e - RUN); }

// The column of a head that the half of a unit's turn begins with.
OFA_INLINE float turned(float value, float partner, float cosine, float sine, bool lower) {
    return value * cosine + (lower ? -partner : partner) * sine;
}

// Where the scores of a row of the pass lie, for one half of a head, in the message [units, PASS_ROWS * context].
OFA_INLINE uint64_t place_of_scores(const TokenRun& run, const RowPlace& row, uint32_t unit) {
    return (uint64_t(unit) * PASS_ROWS + row.number) * run.context;
}

// Scores of 32 positions from `begin` on, by a warp: lane quarter p has elements 8 p .. 8 p + 7 of eight keys at a time, and
// publishes those of the p-th eight. key(i, position) is the lane's part of a key.
template <class Key>
OFA_INLINE void publish_scores(const TokenRun& run, const Step& step, const RowPlace& row, uint32_t begin, const float4& low,
                               const float4& high, uint64_t place, Key key_at) {
    const int lane = run.lane, piece = lane % 4;
    float score = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const Eight key = unpack(key_at(i, begin + uint32_t(8 * i + lane / 4)));
        float sum = (low.x * key.at[0] + low.y * key.at[1]) + (low.z * key.at[2] + low.w * key.at[3]);
        sum += (high.x * key.at[4] + high.y * key.at[5]) + (high.z * key.at[6] + high.w * key.at[7]);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        if (i == piece) score = sum;
    }
    const uint32_t own = begin + uint32_t(8 * piece + lane / 4);
    if (own <= row.position) publish_at(step, 5, int64_t(place + own), score);
}

OFA_INLINE uint32_t unit_of(uint32_t first) { return first / HEAD * 2 + first % HEAD / RUN; }

OFA_INLINE void finish_qkv(TokenRun& run, const Step& step, const uint4 (&keys)[MOST_ROUNDS][4], Block& block) {
    RowMemory& memory = row_memory();
    const uint32_t first = step.row[0];
    const int lane = run.lane;
    if (run.warp < 3) {
        float value = sum_of_parts(run, 32 * run.warp + lane) * scale_of_norm(run);
        if (run.warp < 2) {
            const float partner = __shfl_xor_sync(0xFFFFFFFFu, value, RUN);
            const int turn = int(first % HEAD) + lane % RUN;
            value = turned(value, partner, memory.cosine[turn], memory.sine[turn], lane < RUN);
        }
        const uint32_t rounded = pack(value, 0.0f);
        if (run.warp == 0)
            memory.q[lane] = value * 0.125f;
        else
            step.at<bf16>(2 + run.warp)[uint64_t(run.row.first + run.row.position) * run.width +
                                        unit_column(first, lane)] = bf16(rounded);
        if (run.warp == 1) memory.k[lane] = bf16(rounded);
        if (run.warp == 2) memory.v[lane] = bf16(rounded);
    }
    run.fresh = first;
    block.sync();
    const int piece = lane % 4;
    const float4 low = reinterpret_cast<const float4*>(memory.q)[2 * piece];
    const float4 high = reinterpret_cast<const float4*>(memory.q)[2 * piece + 1];
    const uint4 new_key = load_words(memory.k + 8 * piece);
    const uint64_t place = place_of_scores(run, run.row, unit_of(first));
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        const uint32_t begin = uint32_t(BLOCK_THREADS * round + 32 * run.warp);
        if (begin > run.row.position) continue;  // of the whole warp
        publish_scores(run, step, run.row, begin, low, high, place, [&](int i, uint32_t r) {
            return r == run.row.position ? new_key : keys[round][i];
        });
    }
}

// math::gelu by the special function unit.
OFA_INLINE float gelu_of(float x) {
    const float e = exp2_of(x * (-math::GELU_SLOPE * LOG2_E + -math::GELU_SLOPE * LOG2_E * math::GELU_CUBIC * (x * x)));
    return __fdividef(x, 1.0f + e);
}

OFA_INLINE float largest_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    return value;
}

// What a warp finds out about the 32 positions of every 256 that are part `part` of a row's: the largest score, the sum of
// their weights, and of the weighted sum of values the column that the lane has in the end.
struct AttendedPart {
    float largest, total, out;

    static OFA_INLINE int column(int lane) {
        return 8 * (lane % 4) + (lane & 16 ? 4 : 0) + (lane & 8 ? 2 : 0) + (lane & 4 ? 1 : 0);
    }
};

// Values that this pass has made are at hand in shared memory, where value_at(r, in the cache) finds them.
template <class ValueAt>
OFA_INLINE AttendedPart attend_part(const TokenRun& run, const Step& step, const RowPlace& row, int part, ValueAt value_at) {
    const int lane = run.lane, piece = lane % 4;
    const uint32_t first = step.row[0], rows = row.position + 1, tag = step.tag[0];
    const uint32_t own = uint32_t(32 * part + lane);
    const bf16* const cached = step.at<const bf16>(1) + uint64_t(row.first) * run.width + unit_column(first, 8 * piece);
    uint4 values[MOST_ROUNDS][4];
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32_t r = uint32_t(BLOCK_THREADS * round + 32 * part + 8 * i + lane / 4);
            values[round][i] = r < rows ? load_words(value_at(r, cached + uint64_t(r) * run.width)) : uint4{0, 0, 0, 0};
        }
    // Who has no position in a round looks at the last one.
    const uint32_t halves = PASS_ROWS * run.context;
    const uint64_t* const from = step.at<const uint64_t>(0) + place_of_scores(run, row, first / HEAD * 2);
    uint64_t got[MOST_ROUNDS][2];
    for (uint32_t polls = 0;;) {
        bool there = true;
#pragma unroll
        for (int round = 0; round < MOST_ROUNDS; ++round) {
            const uint32_t r = own + BLOCK_THREADS * round, at = r < rows ? r : rows - 1;
            got[round][0] = load_relaxed(from + at);
            got[round][1] = load_relaxed(from + halves + at);
        }
#pragma unroll
        for (int round = 0; round < MOST_ROUNDS; ++round)
            there &= tag_of(got[round][0]) == tag && tag_of(got[round][1]) == tag;
        if (!look_again(run, step, 0, there, polls)) break;
    }
    float scores[MOST_ROUNDS];
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round)
        scores[round] = own + BLOCK_THREADS * round < rows ? value_of(got[round][0]) + value_of(got[round][1]) : -INFINITY;
    float largest = scores[0];
#pragma unroll
    for (int round = 1; round < MOST_ROUNDS; ++round) largest = fmaxf(largest, scores[round]);
    largest = largest_of_warp(largest);
    float total = 0.0f, out[8] = {};
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        const float weight = scores[round] == -INFINITY ? 0.0f : exp2_of((scores[round] - largest) * LOG2_E);
        total += weight;
        if (uint32_t(BLOCK_THREADS * round + 32 * part) >= rows) continue;  // of the whole warp
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float of_row = __shfl_sync(0xFFFFFFFFu, weight, 8 * i + lane / 4);
            const Eight value = unpack(values[round][i]);
#pragma unroll
            for (int c = 0; c < 8; ++c) out[c] += of_row * value.at[c];
        }
    }
    // Lanes with equal pieces add up: at each distance a lane passes on one half of its columns and keeps the other.
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const bool upper = lane & (4 * half);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            if (c >= half) continue;
            const float given = upper ? out[c] : out[c + half], kept = upper ? out[c + half] : out[c];
            out[c] = kept + __shfl_xor_sync(0xFFFFFFFFu, given, 4 * half);
        }
    }
    return {largest, sum_of_warp(total), out[0]};
}

// A row's weighted sum of values: the lane's column, of what its parts have left in shared memory.
template <class Out>
OFA_INLINE float join_parts(const float (&largest)[RowMemory::WARPS], const float (&sums)[RowMemory::WARPS], Out out) {
    float most = largest[0];
#pragma unroll
    for (int part = 1; part < RowMemory::WARPS; ++part) most = fmaxf(most, largest[part]);
    float sum = 0.0f, result = 0.0f;
#pragma unroll
    for (int part = 0; part < RowMemory::WARPS; ++part) {
        const float factor = exp2_of((largest[part] - most) * LOG2_E);
        sum += factor * sums[part];
        result += factor * out(part);
    }
    return __fdividef(result, sum);
}

// Softmax over both halves' scores, times the unit's columns of the values. A warp has a part of the positions.
OFA_INLINE void attend_step(const TokenRun& run, const Step& step, Block& block) {
    RowMemory& memory = row_memory();
    const int lane = run.lane;
    const uint32_t newest = run.fresh == step.row[0] ? run.row.position : NONE_U32;
    const AttendedPart part = attend_part(run, step, run.row, run.warp, [&](uint32_t r, const bf16* cached) {
        return r == newest ? memory.v + 8 * (lane % 4) : cached;
    });
    memory.outs[run.turn][run.warp][AttendedPart::column(lane)] = part.out;
    if (lane == 0) {
        memory.largest[run.turn][run.warp] = part.largest;
        memory.sums[run.turn][run.warp] = part.total;
    }
    block.sync();
    if (run.warp != 0) return;
    const float joined = join_parts(memory.largest[run.turn], memory.sums[run.turn],
                                    [&](int other) { return memory.outs[run.turn][other][lane]; });
    publish_at(step, 2, unit_column(step.row[0], lane), joined);
}

// The packet of the residual stream that a row is added to; `got` is what a look at it has found. Who does not want it
// must not wait: the element may be overwritten already.
OFA_INLINE float receive_one(const TokenRun& run, const Step& step, const uint64_t* packet, uint64_t got, bool wanted) {
    for (uint32_t polls = 0; look_again(run, step, 2, !wanted || tag_of(got) == step.tag[2], polls);)
        got = load_relaxed(packet);
    return value_of(got);
}

// The step's input, where it is not that of the step before, and its rows times the input.
template <int MOST>
OFA_INLINE void receive_step(TokenRun& run, const Step& step, bool new_input, bool normed) {
    if (new_input) {
        const uint64_t begun = clock64();
        const float squares = receive_slices<MOST>(run, step, normed);
        if (run.warp == RowMemory::WARPS - 1 && run.lane == 0) token_memory().waited += clock64() - begun;
        if (normed) run.squares = sum_of_warp(squares);
    }
    if (run.lane == 0) row_memory().squares[run.turn][run.warp] = run.squares;
}

OFA_INLINE void multiply_step(TokenRun& run, const Step& step) {
    const Share share(step, run.warp);
    if (share.count == SLICE)
        multiply_step<true>(run, step, share);
    else
        multiply_step<false>(run, step, share);
}

OFA_INLINE void qkv_step(TokenRun& run, const Step& step, bool new_input, Block& block) {
    uint4 keys[MOST_ROUNDS][4];  // on their way before the input is waited for
    const bf16* const cached = step.at<const bf16>(3) + uint64_t(run.row.first) * run.width +
                               unit_column(step.row[0], 8 * (run.lane % 4));
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32_t r = uint32_t(BLOCK_THREADS * round + 32 * run.warp + 8 * i + run.lane / 4);
            keys[round][i] = r < run.row.position ? load_words(cached + uint64_t(r) * run.width) : uint4{0, 0, 0, 0};
        }
    receive_step<1>(run, step, new_input, true);
    multiply_step(run, step);
    block.sync();
    finish_qkv(run, step, keys, block);
}

OFA_INLINE void product_step(TokenRun& run, const Step& step, bool new_input, Block& block) {
    const uint32_t opcode = step.opcode;
    const bool normed = opcode != OPCODE_STREAM_MATMUL_RESIDUAL;
    const int pair = run.warp;
    const bool mine = pair < step.pairs, has_row = mine && (run.lane < WEIGHT_BLOCK || (step.single >> pair & 1) == 0);
    const uint32_t row = has_row ? step.row[pair] + uint32_t(run.lane) : step.row[0];
    const uint64_t* const before = step.at<const uint64_t>(2) + row;  // in the residual stream
    const uint64_t skip = !normed && mine ? load_relaxed(before) : 0;
    if (step.chunks == 1)
        receive_step<1>(run, step, new_input, normed);
    else
        receive_step<MOST_CHUNKS>(run, step, new_input, normed);
    multiply_step(run, step);
    block.sync();
    if (!mine) return;
    const float sum = sum_of_parts(run, 32 * pair + run.lane);
    if (!normed) {
        const float skipped = receive_one(run, step, before, skip, true);
        if (has_row) publish_at(step, 3, row, skipped + sum);
        return;
    }
    const float value = sum * scale_of_norm(run);
    if (!has_row) return;
    if (opcode == OPCODE_STREAM_NORM_MATMUL_GELU)
        publish_at(step, 3, row, gelu_of(value));
    else
        step.at<float>(3)[row] = value;
}

// The rotation of each pair of columns at the token's position, by one warp.
OFA_INLINE void rotate_pairs(const TokenRun& run) {
    if (run.warp != RowMemory::WARPS - 1) return;
    double& turns = shared_pipeline().turns[run.lane];  // a position, once it is known
    if (turns == 0.0) turns = rotary_frequency(run.lane, HEAD, double(token_memory().ctx->launch->model.rope_base));
    const math::SineCosine angle = math::sine_cosine_of_turns(double(run.row.position) * turns);
    row_memory().cosine[run.lane] = angle.cosine;
    row_memory().sine[run.lane] = angle.sine;
}

// What the last warp, which has the least to do, keeps count of between two steps.
OFA_INLINE void count_step(const Step& step) {
    TokenMemory& memory = token_memory();
    memory.tasks += step.tasks;
    if (step.signal != NONE_U32) {
        memory.counter = step.signal;
        memory.signals += step.tasks;
    }
    const uint64_t now = clock64();
    memory.spent[step.opcode] += now - memory.last;
    if (keeps_timeline(*memory.ctx)) {
        const uint64_t ended_ns = now_ns(), spent_ns = ended_ns - memory.last_ns;
        const float ns_per_clock = float(spent_ns) / float(now - memory.last);
        shared_pipeline().timer.add_part(*memory.ctx, step.task, step.tasks, memory.last_ns, ended_ns,
                                         uint64_t(float(memory.waited - memory.last_waited) * ns_per_clock));
        memory.last_ns = ended_ns;
        memory.last_waited = memory.waited;
    }
    memory.last = now;
}

// By the leader, when the block is done: the signals of all tasks at once, where the run has not `ended`, and what there is
// to report.
OFA_INLINE void end_token(bool ended) {
    const TokenMemory& memory = token_memory();
    const TaskContext& ctx = *memory.ctx;
    if (memory.counter != NONE_U32 && !ended)
        add_release(ctx.launch->counters + uint64_t(memory.counter) * COUNTER_STRIDE, uint64_t(memory.signals));
    const float ns_per_clock = float(now_ns() - memory.began_ns) / float(clock64() - memory.began);
    SmStatus& status = status_of(ctx);
    for (uint32_t i = 0; i < OPCODE_COUNT; ++i)
        if (memory.spent[i] != 0) add_relaxed(&status.op_ns[i], uint64_t(float(memory.spent[i]) * ns_per_clock));
    add_wait(ctx, uint64_t(float(memory.waited) * ns_per_clock));
    add_relaxed(&status.tasks_done, memory.tasks);
    store_relaxed(&status.heartbeat_ns, now_ns());
}

// What there is to know of a pass before its first step. `row` is its first one.
OFA_INLINE TokenRun begin_steps(const TaskContext& ctx, Block& block) {
    TokenMemory& memory = token_memory();
    volatile Places& places = shared_pipeline().places[fresh_thread() / 32];
    const Model& model = ctx.launch->model;
    const TokenRun run{{places.stages}, {places.steps}, RowPlace(*ctx.launch, 0), 0, warp_of_block(), lane_of_thread(), 0.0f,
                       false, NONE_U32, model.width, model.context, 1.0f / float(model.width), model.norm_epsilon};
    block.for_each(OPCODE_COUNT, [&](int64_t opcode) { memory.spent[opcode] = 0; });
    if (block.leader()) {
        memory.ctx = &ctx;
        memory.given_up = memory.tasks = memory.signals = 0;
        memory.counter = NONE_U32;
        memory.waited = memory.last_waited = 0;
        memory.began_ns = memory.last_ns = now_ns();
        memory.began = memory.last = clock64();
    }
    if (run.lane == 0) memory.checked_ns[run.warp] = 0;
    block.sync();
    return run;
}

// The next step of a pass; nothing behind the last.
OFA_INLINE const Step* next_step(const TokenRun& run) {
    const uint32_t at = run.steps.stage();
    wait_for_slot(&shared_pipeline().step_ring.full[at], run.steps.parity());
    const Step& step = token_memory().steps[at];
    return step.opcode == STEP_END ? nullptr : &step;
}

OFA_INLINE void end_step(const TokenRun& run, const Step& step) {
    if (run.warp == RowMemory::WARPS - 1 && run.lane == 0) count_step(step);
    __syncwarp();
    if (run.lane == 0) arrive(&shared_pipeline().step_ring.empty[run.steps.stage()]);
}

OFA_INLINE void end_steps(const TokenRun& run, Block& block) {
    volatile Places& places = shared_pipeline().places[fresh_thread() / 32];
    if (run.lane == 0) {
        arrive(&shared_pipeline().step_ring.empty[run.steps.stage()]);
        places.stages = run.stages.count;
        places.steps = run.steps.count + 1;
    }
    const bool ended = aborted(*token_memory().ctx->launch);  // asked while others come to the barrier
    block.sync();
    if (block.leader()) end_token(ended);
}

// The block's share of a pass of one row, but for opening and sampling it.
OFA_NOINLINE void run_token(const TaskContext& ctx) {
    Block& block = shared_pipeline().block;
    TokenRun run = begin_steps(ctx, block);
    rotate_pairs(run);
    uint64_t input = 0;
    uint32_t input_tag = 0;
    for (const Step* next; (next = next_step(run)) != nullptr; run.steps.advance()) {
        const Step& step = *next;
        const uint32_t opcode = step.opcode;
        if (opcode == OPCODE_STREAM_ATTENTION) {
            attend_step(run, step, block);
            input = 0;
        } else {
            const bool new_input = input != step.base[0] || input_tag != step.tag[0];
            if (opcode == OPCODE_STREAM_QKV)
                qkv_step(run, step, new_input, block);
            else
                product_step(run, step, new_input, block);
            input = step.base[0];
            input_tag = step.tag[0];
        }
        run.turn ^= 1;
        end_step(run, step);
    }
    end_steps(run, block);
}

}  // namespace ofa::sm90
