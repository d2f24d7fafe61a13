// Tiles of sums on Hopper on their way to memory. A bf16 output leaves through the copy engine, 64 columns at a time: the
// consumers stage a chunk, a storer warp sends it. A weight's gradient stays in near memory.
#pragma once

#include "tile/epilogue.cuh"
#include "tile/pipeline.cuh"
#include "tile/update.cuh"

namespace ofa {

constexpr int CHUNKS = TILE_COLUMNS / CHUNK_COLUMNS, SUMS_PER_CHUNK = CHUNK_COLUMNS / 2;

// A thread's sums in the tile of a consumer: 16 rows for each of its warps, all columns.
struct ConsumerPlace : TilePlace {
    int warp;  // in the warpgroup

    OFA_INLINE ConsumerPlace(const Task& task, int consumer, int warp, int lane)
        : TilePlace(task.tile[0] + 64 * consumer + 16 * warp, task.tile[2], lane), warp(warp) {}
};

// Stages 64 columns, of which `value(i)` is the thread's i-th of 32. The swizzle is that of the tensor map.
template <class Value>
OFA_INLINE void stage_chunk(Pipeline& pipeline, int consumer, const ConsumerPlace& place, Position<BUFFERS>& at, Value value) {
    const uint32_t buffer = at.stage();
    wait_for(&pipeline.stored[consumer][buffer], at.parity() ^ 1);
    const int row = 16 * place.warp + place.lane % 16, half = place.lane / 16;
    const uint32_t line = sm90::shared_address(pipeline.staging[consumer][buffer]) + row * 128;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
        const int i = 8 * pair;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         line + ((2 * pair + half) ^ (row % 8)) * 16),
                     "r"(pack(value(i), value(i + 1))), "r"(pack(value(i + 2), value(i + 3))),
                     "r"(pack(value(i + 4), value(i + 5))), "r"(pack(value(i + 6), value(i + 7)))
                     : "memory");
    }
    sm90::fence_proxy_shared();
    __syncwarp();
    if (place.lane == 0) sm90::arrive(&pipeline.staged[consumer][buffer]);
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

OFA_INLINE void store_with_skip(const TaskContext& ctx, const Task& task, const ConsumerPlace& place,
                                const float (&sums)[128]) {
    const Lines<float> skip(ctx, task, 2, place), y(ctx, task, 3, place);
    if (task.tile[1] == TILE_ROWS && task.tile[3] == TILE_COLUMNS)
        store_with_skip<true>(skip, y, sums);
    else
        store_with_skip<false>(skip, y, sums);
}

OFA_INLINE void store_through_gelu(Pipeline& pipeline, const TaskContext& ctx, const Task& task, int consumer,
                                   const ConsumerPlace& place, Position<BUFFERS>& at, const float (&sums)[128]) {
    const Lines<bf16> u(ctx, task, 2, place);
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        uint32_t inputs[SUMS_PER_CHUNK / 2];
#pragma unroll
        for (int pair = 0; pair < SUMS_PER_CHUNK / 2; ++pair) {
            const int half = pair % 2, j = chunk * CHUNK_COLUMNS / 8 + pair / 2;
            inputs[pair] = u.has(half, j) ? *reinterpret_cast<const uint32_t*>(u.at(half, j)) : 0u;
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

// The sums as a tile of f4 in near memory, where tile/update.cuh finds them.
OFA_INLINE void store_near(Pipeline& pipeline, int consumer, const ConsumerPlace& place, const float (&sums)[128]) {
    const int row = 64 * consumer + 16 * place.warp + place.lane / 4, column = 2 * (place.lane % 4);
#pragma unroll
    for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<float2*>(gradient_at(pipeline.a[0], row + 8 * half, 8 * j + column)) =
                make_float2(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
}

}  // namespace ofa
