// What the consumers do for a token (tile/token.cuh). Every warp has its own slice of the depth of each weight: it waits
// for the packets of that slice alone, and its sums are added to those of the others in a fixed order, so that a token
// does not depend on who computes it. Between the arrival of a message and the sums there is no barrier of the block,
// and one between the sums and what is published.
#pragma once

#include "ops/stream.h"
#include "tile/mma.cuh"
#include "tile/pipeline.cuh"

namespace ofa::sm90 {

constexpr int HEAD = 64, UNIT = TokenMemory::UNIT, RUN = UNIT / 2, MOST_ROUNDS = 3;
constexpr int SLICE = TokenMemory::SLICE;
constexpr uint32_t MOST_CONTEXT = MOST_ROUNDS * BLOCK_THREADS, PATIENT_POLLS = 2048;

// Whether a token of this model can be decoded by the functions below.
OFA_INLINE bool holds_model(const Model& model) {
    return model.head_dim == HEAD && model.context <= MOST_CONTEXT && model.width <= MOST_DEPTH &&
           model.feed_forward <= MOST_DEPTH;
}

struct TwoPackets {
    uint64_t at[2];
};
OFA_INLINE TwoPackets load_two(const uint64_t* from) {
    TwoPackets packets;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(packets.at[0]), "=l"(packets.at[1]) : "l"(from)
                 : "memory");
    return packets;
}
OFA_INLINE void publish_at(void* out, uint32_t tag, int64_t at, float value) {
    store_relaxed(static_cast<uint64_t*>(out) + at, uint64_t(tag) << 32 | __float_as_uint(value));
}

struct TokenRun {
    Pipeline& pipeline;
    TokenMemory& memory;
    const TaskContext& ctx;
    Position<STAGES> stages;
    Position<STEP_SLOTS> steps;
    uint32_t position, turn;
    int warp, lane;
    float squares;  // of the warp's slice of the input
};

// A packet that did not come at once, with the deadlines of all waits. False when there is no sense in waiting.
OFA_NOINLINE bool wait_for_packet(const TaskContext& token, uint32_t task, const uint64_t* packet, uint32_t tag,
                                  uint32_t name) {
    TaskContext ctx = token;
    ctx.task = ctx.launch->programs[PROGRAM_DECODE].tasks + task;
    show_task(ctx, PHASE_RUNNING);
    const auto seen = [&] { return tag_of(load_relaxed(packet)) == tag ? uint64_t(1) : uint64_t(0); };
    return wait_until(ctx, ctx.launch->n_counters + name, uint64_t(1), seen);
}

// After a look at a warp's packets: whether it has to look again. `missing` is one of the lane's that were not there.
OFA_INLINE bool look_again(TokenRun& run, const Step& step, bool there, const uint64_t* missing, uint32_t tag,
                           uint32_t name, uint32_t& polls) {
    const uint32_t without = __ballot_sync(0xFFFFFFFFu, !there);
    if (without == 0) return false;
    if (++polls % PATIENT_POLLS != 0) return true;
    volatile uint32_t& given_up = run.memory.given_up;
    if (given_up == 0 && run.lane == __ffs(int(without)) - 1 &&
        !wait_for_packet(run.ctx, step.task, missing, tag, name))
        given_up = 1;
    __syncwarp();
    return given_up == 0;
}

// A warp's share of a chunk's blocks: `first` counts from the beginning of the input.
struct Share {
    uint32_t first, count;

    OFA_INLINE Share(const Step& step, uint32_t chunk, int warp) {
        const uint32_t begin = share_begin(step.across, chunk, step.chunks);
        const uint32_t blocks = share_begin(step.across, chunk + 1, step.chunks) - begin;
        first = share_begin(blocks, uint32_t(warp), TokenMemory::WARPS);
        count = share_begin(blocks, uint32_t(warp) + 1, TokenMemory::WARPS) - first;
        first += begin;
    }
};

// The warp's slices of the step's input into its part of memory.x. Returns the sum of the squares of the lane's values.
OFA_INLINE float receive_slices(TokenRun& run, const Step& step) {
    const uint64_t* from[MOST_CHUNKS][2];
    TwoPackets got[MOST_CHUNKS][2];
    bool mine[MOST_CHUNKS][2];
    float2 gain[2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};
#pragma unroll
    for (int chunk = 0; chunk < MOST_CHUNKS; ++chunk) {
        if (chunk >= step.chunks) continue;
        const Share share(step, uint32_t(chunk), run.warp);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint32_t pair = uint32_t(32 * half + run.lane), pairs = share.count * (WEIGHT_BLOCK / 2);
            mine[chunk][half] = pair < pairs;
            const uint32_t column = share.first * WEIGHT_BLOCK + 2 * (pair < pairs ? pair : 0);
            from[chunk][half] = step.in + (share.count == 0 ? 0 : column);
            if (chunk == 0 && step.gain != nullptr && mine[0][half])
                gain[half] = *reinterpret_cast<const float2*>(step.gain + column);
        }
    }
    const uint32_t tag = step.in_tag;
    for (uint32_t polls = 0;;) {
#pragma unroll
        for (int chunk = 0; chunk < MOST_CHUNKS; ++chunk) {
            if (chunk >= step.chunks) continue;
            got[chunk][0] = load_two(from[chunk][0]);
            got[chunk][1] = load_two(from[chunk][1]);
        }
        bool there = true;
        const uint64_t* missing = step.in;
#pragma unroll
        for (int chunk = 0; chunk < MOST_CHUNKS; ++chunk) {
            if (chunk >= step.chunks) continue;
#pragma unroll
            for (int part = 0; part < 4; ++part)
                if (mine[chunk][part / 2] && tag_of(got[chunk][part / 2].at[part % 2]) != tag) {
                    there = false;
                    missing = from[chunk][part / 2] + part % 2;
                }
        }
        if (!look_again(run, step, there, missing, tag, step.in_name, polls)) break;
    }
    float squares = 0.0f;
#pragma unroll
    for (int chunk = 0; chunk < MOST_CHUNKS; ++chunk) {
        if (chunk >= step.chunks) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (!mine[chunk][half]) continue;
            float a = value_of(got[chunk][half].at[0]), b = value_of(got[chunk][half].at[1]);
            squares += a * a + b * b;
            if (chunk == 0) {
                a *= gain[half].x;
                b *= gain[half].y;
            }
            // Pair t of a block goes to lane quarter t mod 4, to its first register for t < 4, else to its second.
            const int pair = 32 * half + run.lane;
            const int place = pair / 8 * 8 + pair % 4 * 2 + pair % 8 / 4;
            const uint32_t near = pack(a, b);
            run.memory.x[chunk][run.warp][0][place] = near;
            run.memory.x[chunk][run.warp][1][place] = pack(a - low_of(near), b - high_of(near));
        }
    }
    __syncwarp();
    return squares;
}

// sums += two blocks of weight rows times the slice; sums of even and odd blocks of columns apart.
template <bool whole>
OFA_INLINE void multiply_slice(const uint8_t* first, const uint8_t* second, uint32_t count, const Right (&x)[SLICE],
                               Sums (&sums)[2][2], Barrier* empty, int lane) {
    uint4 words[2][SLICE];
#pragma unroll
    for (int i = 0; i < SLICE; ++i) {
        if (!whole && i >= int(count)) continue;
        words[0][i] = load_words(first + i * WEIGHT_BLOCK_BYTES);
        words[1][i] = load_words(second + i * WEIGHT_BLOCK_BYTES);
    }
    __syncwarp();
    if (lane == 0) arrive(empty);
#pragma unroll
    for (int i = 0; i < SLICE; ++i) {
        if (!whole && i >= int(count)) continue;
#pragma unroll
        for (int block = 0; block < 2; ++block) {
            const uint4 w = words[block][i];
            multiply_add(sums[block][i % 2], Left{{w.x, w.y, w.z, w.w}}, x[i]);
        }
    }
}

// The step's rows times the warp's slices, into memory.parts.
OFA_INLINE void multiply_step(TokenRun& run, const Step& step) {
    const int lane = run.lane;
    float* const parts = run.memory.parts[run.turn][run.warp];
    Right x[SLICE];
    for (int pair = 0; pair < step.pairs; ++pair) {
        Sums sums[2][2] = {};
        for (uint32_t chunk = 0; chunk < step.chunks; ++chunk, run.stages.advance()) {
            const Share share(step, chunk, run.warp);
            if (pair == 0 || step.chunks > 1) {
                // Even columns of the right operand hold the values in bf16, odd ones the rest.
                const uint2* const words = reinterpret_cast<const uint2*>(run.memory.x[chunk][run.warp][lane / 4 % 2]);
#pragma unroll
                for (int i = 0; i < SLICE; ++i) {
                    const uint2 both = words[4 * i + lane % 4];
                    x[i] = {{both.x, both.y}};
                }
            }
            const uint32_t begin = share_begin(step.across, chunk, step.chunks);
            const uint32_t blocks = share_begin(step.across, chunk + 1, step.chunks) - begin;
            const uint32_t stage = run.stages.stage();
            const uint8_t* const first = run.pipeline.a[0] + stage * STREAM_STAGE_BYTES +
                                         (share.first - begin) * WEIGHT_BLOCK_BYTES + lane * 16;
            const uint8_t* const second = first + blocks * WEIGHT_BLOCK_BYTES;
            wait_for(&run.pipeline.full[stage], run.stages.parity());
            if (share.count == SLICE)
                multiply_slice<true>(first, second, SLICE, x, sums, &run.pipeline.empty[stage], lane);
            else
                multiply_slice<false>(first, second, share.count, x, sums, &run.pipeline.empty[stage], lane);
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
    float part[TokenMemory::WARPS];
#pragma unroll
    for (int warp = 0; warp < TokenMemory::WARPS; ++warp) part[warp] = run.memory.parts[run.turn][warp][row];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

OFA_INLINE float scale_of_norm(const TokenRun& run) {
    float part[TokenMemory::WARPS];
#pragma unroll
    for (int warp = 0; warp < TokenMemory::WARPS; ++warp) part[warp] = run.memory.squares[run.turn][warp];
    const float squares = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    const Model& model = run.ctx.launch->model;
    return rsqrtf(squares / float(model.width) + model.norm_epsilon);
}

// Column of all heads where element e of a unit lies; `first` is that of its element 0.
OFA_INLINE uint32_t unit_column(uint32_t first, int e) { return first + uint32_t(e < RUN ? e : HEAD / 2 + e - RUN); }

OFA_INLINE void finish_qkv(TokenRun& run, const Step& step, const uint4 (&keys)[MOST_ROUNDS][4], Block& block) {
    TokenMemory& memory = run.memory;
    const uint32_t first = step.row[0], width = run.ctx.launch->model.width;
    const int lane = run.lane;
    if (run.warp < 3) {
        float value = sum_of_parts(run, 32 * run.warp + lane) * scale_of_norm(run);
        if (run.warp < 2) {
            const float partner = __shfl_xor_sync(0xFFFFFFFFu, value, RUN);
            const int turn = int(first % HEAD) + lane % RUN;
            value = value * memory.cosine[turn] + (lane < RUN ? -partner : partner) * memory.sine[turn];
        }
        const uint32_t rounded = pack(value, 0.0f);
        if (run.warp == 0)
            memory.q[lane] = value * 0.125f;
        else
            (run.warp == 1 ? step.keys : step.values)[uint64_t(run.position) * width + unit_column(first, lane)] =
                bf16(rounded);
        if (run.warp == 1) memory.k[lane] = bf16(rounded);
    }
    block.sync();
    const float4* const query = reinterpret_cast<const float4*>(memory.q);
    const uint64_t row = step.row[0] / HEAD * 2 + step.row[0] % HEAD / RUN;
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        const uint32_t r = uint32_t(BLOCK_THREADS * round + 32 * run.warp + lane);
        if (r > run.position) continue;
        float sum = 0.0f;
#pragma unroll
        for (int piece = 0; piece < 4; ++piece) {
            const Eight key = unpack(r == run.position ? load_words(memory.k + 8 * piece) : keys[round][piece]);
            const float4 low = query[2 * piece], high = query[2 * piece + 1];
            sum += low.x * key.at[0] + low.y * key.at[1] + low.z * key.at[2] + low.w * key.at[3];
            sum += high.x * key.at[4] + high.y * key.at[5] + high.z * key.at[6] + high.w * key.at[7];
        }
        publish_at(step.out, step.out_tag, int64_t(row * run.ctx.launch->model.context + r), sum);
    }
}

// Sixteen bytes of a unit's row: piece p has its elements 8 p .. 8 p + 7.
OFA_INLINE uint4 load_piece(const bf16* rows, uint64_t r, uint32_t width, uint32_t first, int piece) {
    return load_words(rows + r * width + unit_column(first, 8 * piece));
}

OFA_INLINE float largest_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    return value;
}

// Softmax over both halves' scores, times the unit's columns of the values. A warp has 32 positions of every 256.
OFA_INLINE void attend_step(TokenRun& run, const Step& step, Block& block) {
    TokenMemory& memory = run.memory;
    const int lane = run.lane, piece = lane % 4;
    const uint32_t first = step.row[0], width = run.ctx.launch->model.width, rows = run.position + 1;
    uint4 values[MOST_ROUNDS][4];
    const uint64_t* from[MOST_ROUNDS];
    float scores[MOST_ROUNDS];
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        const uint32_t begin = uint32_t(BLOCK_THREADS * round + 32 * run.warp);
        from[round] = step.in + uint64_t(first / HEAD * 2) * step.in_pitch + begin + lane;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32_t r = begin + uint32_t(8 * i + lane / 4);
            values[round][i] = r < rows ? load_piece(step.values, r, width, first, piece) : uint4{0, 0, 0, 0};
        }
    }
    for (uint32_t polls = 0;;) {
        bool there = true;
        const uint64_t* missing = step.in;
        uint64_t got[MOST_ROUNDS][2];
#pragma unroll
        for (int round = 0; round < MOST_ROUNDS; ++round)
            if (uint32_t(BLOCK_THREADS * round + 32 * run.warp + lane) < rows) {
                got[round][0] = load_relaxed(from[round]);
                got[round][1] = load_relaxed(from[round] + step.in_pitch);
            }
#pragma unroll
        for (int round = 0; round < MOST_ROUNDS; ++round) {
            scores[round] = -INFINITY;
            if (uint32_t(BLOCK_THREADS * round + 32 * run.warp + lane) >= rows) continue;
            scores[round] = value_of(got[round][0]) + value_of(got[round][1]);
            if (tag_of(got[round][0]) == step.in_tag && tag_of(got[round][1]) == step.in_tag) continue;
            there = false;
            missing = tag_of(got[round][0]) == step.in_tag ? from[round] + step.in_pitch : from[round];
        }
        if (!look_again(run, step, there, missing, step.in_tag, step.in_name, polls)) break;
    }
    float largest = scores[0];
#pragma unroll
    for (int round = 1; round < MOST_ROUNDS; ++round) largest = fmaxf(largest, scores[round]);
    largest = largest_of_warp(largest);
    float total = 0.0f, out[8] = {};
#pragma unroll
    for (int round = 0; round < MOST_ROUNDS; ++round) {
        const float weight = scores[round] == -INFINITY ? 0.0f : exp2_of((scores[round] - largest) * LOG2_E);
        total += weight;
        if (uint32_t(BLOCK_THREADS * round + 32 * run.warp) >= rows) continue;  // of the whole warp
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float of_row = __shfl_sync(0xFFFFFFFFu, weight, 8 * i + lane / 4);
            const Eight value = unpack(values[round][i]);
#pragma unroll
            for (int c = 0; c < 8; ++c) out[c] += of_row * value.at[c];
        }
    }
    total = sum_of_warp(total);
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
    memory.outs[run.turn][run.warp][8 * piece + (lane & 16 ? 4 : 0) + (lane & 8 ? 2 : 0) + (lane & 4 ? 1 : 0)] = out[0];
    if (lane == 0) {
        memory.largest[run.turn][run.warp] = largest;
        memory.sums[run.turn][run.warp] = total;
    }
    block.sync();
    if (run.warp != 0) return;
    float most = memory.largest[run.turn][0];
#pragma unroll
    for (int warp = 1; warp < TokenMemory::WARPS; ++warp) most = fmaxf(most, memory.largest[run.turn][warp]);
    float sum = 0.0f, result = 0.0f;
#pragma unroll
    for (int warp = 0; warp < TokenMemory::WARPS; ++warp) {
        const float factor = exp2_of((memory.largest[run.turn][warp] - most) * LOG2_E);
        sum += factor * memory.sums[run.turn][warp];
        result += factor * memory.outs[run.turn][warp][lane];
    }
    publish_at(step.out, step.out_tag, unit_column(first, lane), result / sum);
}

// The packet of the residual stream that a row is added to; `got` is what a look at it has found.
OFA_INLINE float receive_one(TokenRun& run, const Step& step, const uint64_t* packet, uint64_t got) {
    for (uint32_t polls = 0;; got = load_relaxed(packet))
        if (!look_again(run, step, tag_of(got) == step.skip_tag, packet, step.skip_tag, step.skip_name, polls))
            return value_of(got);
}

OFA_INLINE void product_step(TokenRun& run, const Step& step, bool new_input, Block& block) {
    TokenMemory& memory = run.memory;
    const uint32_t opcode = step.opcode, width = run.ctx.launch->model.width;
    const int thread = 32 * run.warp + run.lane, pair = thread / 32;
    const bool second = thread % 32 >= WEIGHT_BLOCK;
    const bool has_row = pair < step.pairs && !(second && (step.single >> pair & 1) != 0);
    const uint32_t row = has_row ? step.row[pair] + uint32_t(thread % 32) : step.row[0];
    uint4 keys[MOST_ROUNDS][4];
    if (opcode == OPCODE_STREAM_QKV)
#pragma unroll
        for (int round = 0; round < MOST_ROUNDS; ++round) {
            const uint32_t r = uint32_t(BLOCK_THREADS * round + thread);
#pragma unroll
            for (int piece = 0; piece < 4; ++piece)
                keys[round][piece] = r < run.position ? load_piece(step.keys, r, width, step.row[0], piece)
                                                      : uint4{0, 0, 0, 0};
        }
    const uint64_t skip = opcode == OPCODE_STREAM_MATMUL_RESIDUAL && pair < step.pairs ? load_relaxed(step.skip + row) : 0;
    if (new_input) {
        const uint64_t begun = clock64();
        const float squares = receive_slices(run, step);
        if (thread == 0) memory.waited += clock64() - begun;
        if (step.gain != nullptr) run.squares = sum_of_warp(squares);
    }
    if (run.lane == 0) memory.squares[run.turn][run.warp] = run.squares;
    multiply_step(run, step);
    block.sync();
    if (opcode == OPCODE_STREAM_QKV) {
        finish_qkv(run, step, keys, block);
    } else if (pair < step.pairs) {
        const float sum = sum_of_parts(run, thread);
        if (opcode == OPCODE_STREAM_MATMUL_RESIDUAL) {
            const float before = receive_one(run, step, step.skip + row, skip);
            if (has_row) publish_at(step.out, step.out_tag, row, before + sum);
        } else if (opcode == OPCODE_STREAM_NORM_MATMUL_GELU) {
            const float value = math::gelu(sum * scale_of_norm(run));
            if (has_row) publish_at(step.out, step.out_tag, row, value);
        } else if (has_row) {
            static_cast<float*>(step.out)[row] = sum * scale_of_norm(run);
        }
    }
}

// The rotation of each pair of columns at the token's position, by one warp.
OFA_INLINE void rotate_pairs(const TokenRun& run) {
    if (run.warp != TokenMemory::WARPS - 1) return;
    const double base = double(run.ctx.launch->model.rope_base);
    const math::SineCosine angle =
        math::sine_cosine_of_turns(double(run.position) * rotary_frequency(run.lane, HEAD, base));
    run.memory.cosine[run.lane] = angle.cosine;
    run.memory.sine[run.lane] = angle.sine;
}

// The block's share of the token that is open, but for opening and sampling it.
OFA_NOINLINE void run_token(Pipeline& pipeline, const TaskContext& ctx) {
    Block& block = pipeline.block;
    volatile Places& places = pipeline.places[fresh_thread() / 32];
    TokenMemory& memory = pipeline.token();
    TokenRun run{pipeline, memory, ctx, {places.stages}, {places.steps}, ctx.launch->serve->position, 0,
                 warp_of_block(), lane_of_thread(), 0.0f};
    const bool leader = block.leader();
    block.for_each(OPCODE_COUNT, [&](int64_t opcode) { memory.spent[opcode] = 0; });
    if (leader) {
        memory.given_up = 0;
        memory.waited = 0;
    }
    block.sync();
    rotate_pairs(run);
    uint64_t begun = clock64();
    const uint64_t started = begun, started_ns = now_ns();
    const uint64_t* input = nullptr;
    uint32_t input_tag = 0, tasks = 0, signals = 0, counter = NONE_U32;
    for (;; run.steps.advance()) {
        const uint32_t at = run.steps.stage();
        wait_for_slot(&pipeline.step_ring.full[at], run.steps.parity());
        const Step& step = memory.steps[at];
        const uint32_t opcode = step.opcode;
        if (opcode != STEP_END) {
            if (opcode == OPCODE_STREAM_ATTENTION) {
                attend_step(run, step, block);
                input = nullptr;
            } else {
                product_step(run, step, input != step.in || input_tag != step.in_tag, block);
                input = step.in;
                input_tag = step.in_tag;
            }
            run.turn ^= 1;
            tasks += step.tasks;
            if (step.signal != NONE_U32) {
                counter = step.signal;
                signals += step.tasks;
            }
            if (leader) {
                const uint64_t now = clock64();
                memory.spent[opcode] += now - begun;
                begun = now;
            }
        }
        __syncwarp();
        if (run.lane == 0) arrive(&pipeline.step_ring.empty[at]);
        if (opcode == STEP_END) break;
    }
    if (run.lane == 0) {
        places.stages = run.stages.count;
        places.steps = run.steps.count + 1;
    }
    block.sync();
    if (!leader) return;
    if (counter != NONE_U32 && !aborted(*ctx.launch))
        add_release(ctx.launch->counters + uint64_t(counter) * COUNTER_STRIDE, uint64_t(signals));
    const float ns_per_clock = float(now_ns() - started_ns) / float(clock64() - started);
    SmStatus& status = status_of(ctx);
    for (uint32_t i = 0; i < OPCODE_COUNT; ++i)
        if (memory.spent[i] != 0) add_relaxed(&status.op_ns[i], uint64_t(float(memory.spent[i]) * ns_per_clock));
    add_relaxed(&status.wait_ns, uint64_t(float(memory.waited) * ns_per_clock));
    add_relaxed(&status.tasks_done, tasks);
    store_relaxed(&status.heartbeat_ns, now_ns());
}

}  // namespace ofa::sm90
