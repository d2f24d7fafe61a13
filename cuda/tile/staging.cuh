// Tiles of sums on Hopper on their way to memory. A bf16 output leaves through the copy engine, 64 columns at a time: the
// consumers stage a chunk, a storer warp sends it.
#pragma once

#include "tile/epilogue.cuh"
#include "tile/product.cuh"

namespace ofa {

constexpr int CHUNKS = TILE_COLUMNS / CHUNK_COLUMNS, SUMS_PER_CHUNK = CHUNK_COLUMNS / 2;

// A thread's sums in the tile of a consumer: 16 rows for each of its warps, all columns.
struct ConsumerPlace : TilePlace {
    int warp;  // in the warpgroup

    OFA_INLINE ConsumerPlace(const Task& task, int consumer, int warp, int lane)
        : TilePlace(task.tile[0] + 64 * consumer + 16 * warp, task.tile[2], lane), warp(warp) {}
};

// A chunk is staged in three steps: its buffer is free; pairs of 16 columns are written, of which `word(i)` is the thread's
// i-th pair of neighbours; it is complete. The swizzle is that of the tensor map.
OFA_INLINE void begin_chunk(Pipeline& pipeline, int consumer, const Position<BUFFERS>& at) {
    wait_for(&pipeline.stored[consumer][at.stage()], at.parity() ^ 1);
}

template <int PAIRS, class Word>
OFA_INLINE void stage_pairs(Pipeline& pipeline, int consumer, const ConsumerPlace& place, const Position<BUFFERS>& at,
                            int first, Word word) {
    const int row = 16 * place.warp + place.lane % 16, half = place.lane / 16;
    const uint32_t line = sm90::shared_address(pipeline.staging[consumer][at.stage()]) + row * 128;
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
        const int i = 4 * pair;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         line + ((2 * (first + pair) + half) ^ (row % 8)) * 16),
                     "r"(word(i)), "r"(word(i + 1)), "r"(word(i + 2)), "r"(word(i + 3))
                     : "memory");
    }
}

OFA_INLINE void end_chunk(Pipeline& pipeline, int consumer, const ConsumerPlace& place, Position<BUFFERS>& at) {
    sm90::fence_proxy_shared();
    __syncwarp();
    if (place.lane == 0) sm90::arrive(&pipeline.staged[consumer][at.stage()]);
    at.advance();
}

// Stages 64 columns, of which `value(i)` is the thread's i-th of 32.
template <class Value>
OFA_INLINE void stage_chunk(Pipeline& pipeline, int consumer, const ConsumerPlace& place, Position<BUFFERS>& at, Value value) {
    begin_chunk(pipeline, consumer, at);
    stage_pairs<CHUNK_COLUMNS / 16>(pipeline, consumer, place, at, 0,
                                    [&](int i) { return pack(value(2 * i), value(2 * i + 1)); });
    end_chunk(pipeline, consumer, place, at);
}

// By a storer: a staged chunk, to the place of its columns in an output.
OFA_INLINE void send_chunk(Pipeline& pipeline, const Slot& slot, int consumer, int operand, int column,
                           Position<BUFFERS>& at) {
    const uint32_t buffer = at.stage();
    wait_for(&pipeline.staged[consumer][buffer], at.parity());
    sm90::store_2d(tensor_map(slot.ctx, slot.task, operand, MAP_OUT), column, slot.task.tile[0] + 64 * consumer,
                   pipeline.staging[consumer][buffer]);
    sm90::commit_stores();
    sm90::wait_until_read<0>();
    sm90::arrive(&pipeline.stored[consumer][buffer]);
    at.advance();
}

OFA_INLINE void store_tile(Pipeline& pipeline, int consumer, const ConsumerPlace& place, Position<BUFFERS>& at,
                           const float (&sums)[128]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
        stage_chunk(pipeline, consumer, place, at, [&](int i) { return sums[SUMS_PER_CHUNK * chunk + i]; });
}

OFA_INLINE void store_gelu(Pipeline& pipeline, int consumer, const ConsumerPlace& place, Position<BUFFERS>& at,
                           const float (&sums)[128]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        stage_chunk(pipeline, consumer, place, at, [&](int i) { return sums[SUMS_PER_CHUNK * chunk + i]; });
        stage_chunk(pipeline, consumer, place, at,
                    [&](int i) { return fast_gelu(sums[SUMS_PER_CHUNK * chunk + i]); });
    }
}

// By the loader: the inputs of GELU at the tile's places, a chunk a stage.
OFA_INLINE void load_gelu_inputs(Pipeline& pipeline, const Slot& slot, Position<STAGES>& at) {
    const Task& task = slot.task;
    const sm90::TensorMap* const map = tensor_map(slot.ctx, task, 2, MAP_OUT);
    for (int column = 0; column < task.tile[3]; column += CHUNK_COLUMNS, at.advance()) {
        const uint32_t stage = at.stage();
        wait_for(&pipeline.empty[stage], at.parity() ^ 1);
        if (column + CHUNK_COLUMNS >= task.tile[3]) sm90::arrive(&pipeline.claim_next);
        sm90::arrive_expecting(&pipeline.full[stage], CONSUMERS * CHUNK_BYTES);
        for (int consumer = 0; consumer < CONSUMERS; ++consumer)
            sm90::load_2d(pipeline.a[stage] + consumer * CHUNK_BYTES, map, task.tile[2] + column,
                          task.tile[0] + 64 * consumer, &pipeline.full[stage]);
    }
}

// A thread's 16 words of a chunk, as stage_pairs would write them.
OFA_INLINE void load_chunk(const void* chunk, const ConsumerPlace& place, uint32_t (&words)[SUMS_PER_CHUNK / 2]) {
    const int row = 16 * place.warp + place.lane % 16, half = place.lane / 16;
    const uint32_t line = sm90::shared_address(chunk) + row * 128;
#pragma unroll
    for (int pair = 0; pair < CHUNK_COLUMNS / 16; ++pair)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[4 * pair]), "=r"(words[4 * pair + 1]), "=r"(words[4 * pair + 2]), "=r"(words[4 * pair + 3])
                     : "r"(line + ((2 * pair + half) ^ (row % 8)) * 16)
                     : "memory");
}

OFA_INLINE void store_through_gelu(Pipeline& pipeline, const Task& task, int consumer, const ConsumerPlace& place,
                                   Position<STAGES>& stages, Position<BUFFERS>& at, const float (&sums)[128]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        uint32_t inputs[SUMS_PER_CHUNK / 2] = {};
        if (chunk * CHUNK_COLUMNS < task.tile[3]) {
            wait_for(&pipeline.full[stages.stage()], stages.parity());
            load_chunk(pipeline.a[stages.stage()] + consumer * CHUNK_BYTES, place, inputs);
            __syncwarp();
            if (place.lane == 0) sm90::arrive(&pipeline.empty[stages.stage()]);
            stages.advance();
        }
        stage_chunk(pipeline, consumer, place, at, [&](int i) {
            const float input = i % 2 == 0 ? low_of(inputs[i / 2]) : high_of(inputs[i / 2]);
            return sums[SUMS_PER_CHUNK * chunk + i] * fast_gelu_derivative(input);
        });
    }
}

OFA_INLINE void store_statistics(const TaskContext& ctx, const Task& task, const ConsumerPlace& place,
                                 float (&sums)[128]) {
    const Operand& o = ctx.launch->operands[task.operands[3]];
    float* const statistics = reinterpret_cast<float*>(o.base);
    round_in_place(sums);
    hide_right_of(sums, task.tile[3]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float2 both = statistics_of_row(sums, half);
        const int row = place.row + 8 * half;
        if (place.lane % 4 == 0 && row < int(o.rows)) store_statistics(statistics, o, task, row, both);
    }
}

}  // namespace ofa
