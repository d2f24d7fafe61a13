// What becomes of a tile of sums on Hopper. A thread has rows 16 warp + lane / 4 (+ 8) of its warpgroup's 64 and, of each
// 8 columns j, two: sums[4 j + 2 (row half) + {0, 1}].
//
// A bf16 output leaves through the copy engine, 64 columns at a time: the consumers stage a chunk, a storer warp sends it.
#pragma once

#include "platform/math.h"
#include "tile/bf16.cuh"
#include "tile/pipeline.cuh"
#include "tile/update.cuh"

namespace ofa {

constexpr int CHUNKS = TILE_COLUMNS / CHUNK_COLUMNS, SUMS_PER_CHUNK = CHUNK_COLUMNS / 2;

struct TilePlace {
    int row, column;  // of the output, of the thread's first sum
    int warp, lane;   // in the warpgroup

    OFA_INLINE TilePlace(const Task& task, int thread, int consumer) : warp(thread % WARPGROUP / 32), lane(thread % 32) {
        row = task.tile[0] + 64 * consumer + 16 * warp + lane / 4;
        column = task.tile[2] + 2 * (lane % 4);
    }
};

// Stages 64 columns, of which `value(i)` is the thread's i-th of 32. The swizzle is that of the tensor map.
template <class Value>
OFA_INLINE void stage_chunk(Pipeline& pipeline, int consumer, const TilePlace& place, Position<BUFFERS>& at, Value value) {
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

// GELU and its derivative by the special function unit; the outputs are rounded to bf16.
OFA_INLINE float fast_gelu(float x) {
    const float e = exp2_of(-LOG2_E * math::GELU_SLOPE * (x + math::GELU_CUBIC * x * x * x));
    return __fdividef(x, 1.0f + e);
}
OFA_INLINE float fast_gelu_derivative(float x) {
    const float e = exp2_of(fminf(-LOG2_E * math::GELU_SLOPE * (x + math::GELU_CUBIC * x * x * x), 60.0f));
    const float s = __fdividef(1.0f, 1.0f + e);
    const float inner = math::GELU_SLOPE * (1.0f + 3.0f * math::GELU_CUBIC * x * x);
    return s + (x * inner) * (e * s) * s;
}

OFA_INLINE void store_tile(Pipeline& pipeline, int consumer, const TilePlace& place, Position<BUFFERS>& at,
                           const float (&sums)[128]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
        stage_chunk(pipeline, consumer, place, at, [&](int i) { return sums[SUMS_PER_CHUNK * chunk + i]; });
}

OFA_INLINE void store_gelu(Pipeline& pipeline, int consumer, const TilePlace& place, Position<BUFFERS>& at,
                           const float (&sums)[128]) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        stage_chunk(pipeline, consumer, place, at, [&](int i) { return sums[SUMS_PER_CHUNK * chunk + i]; });
        stage_chunk(pipeline, consumer, place, at,
                    [&](int i) { return fast_gelu(sums[SUMS_PER_CHUNK * chunk + i]); });
    }
}

// A thread's two lines of an operand, 8 rows apart, from its first column on.
template <class T>
struct Lines {
    T* line[2];
    int columns[2];  // to the end of the operand

    OFA_INLINE Lines(const TaskContext& ctx, const Task& task, int operand, const TilePlace& place) {
        const Operand& o = ctx.launch->operands[task.operands[operand]];
        const uint64_t copy = ctx.copy_of(o);
        line[0] = reinterpret_cast<T*>(o.base + copy * o.copy_bytes) + int64_t(place.row) * o.pitch + place.column;
        line[1] = line[0] + 8 * int64_t(o.pitch);
#pragma unroll
        for (int half = 0; half < 2; ++half)
            columns[half] = place.row + 8 * half < int(o.rows) ? int(o.cols) - place.column : 0;
    }
    OFA_INLINE bool has(int half, int j) const { return 8 * j < columns[half]; }
    OFA_INLINE T* at(int half, int j) const { return line[half] + 8 * j; }
};

// y f4 = skip f4 + sums. The loads of a batch are on their way together. A whole tile asks for no bounds: conditions that
// are kept from the loads to the stores take registers.
template <bool WHOLE>
OFA_INLINE void store_with_skip(const Lines<float>& skip, const Lines<float>& y, const float (&sums)[128]) {
    constexpr int BATCH = WHOLE ? 8 : 1;
#pragma unroll
    for (int first = 0; first < TILE_COLUMNS / 8; first += BATCH) {
        float2 values[2 * BATCH];
#pragma unroll
        for (int i = 0; i < 2 * BATCH; ++i)
            values[i] = WHOLE || y.has(i % 2, first + i / 2)
                            ? *reinterpret_cast<const float2*>(skip.at(i % 2, first + i / 2)) : make_float2(0, 0);
#pragma unroll
        for (int i = 0; i < 2 * BATCH; ++i) {
            const int half = i % 2, j = first + i / 2;
            if (WHOLE || y.has(half, j))
                *reinterpret_cast<float2*>(y.at(half, j)) = make_float2(values[i].x + sums[4 * j + 2 * half],
                                                                        values[i].y + sums[4 * j + 2 * half + 1]);
        }
    }
}

OFA_INLINE void store_with_skip(const TaskContext& ctx, const Task& task, const TilePlace& place,
                                const float (&sums)[128]) {
    const Lines<float> skip(ctx, task, 2, place), y(ctx, task, 3, place);
    if (task.tile[1] == TILE_ROWS && task.tile[3] == TILE_COLUMNS)
        store_with_skip<true>(skip, y, sums);
    else
        store_with_skip<false>(skip, y, sums);
}

OFA_INLINE void store_through_gelu(Pipeline& pipeline, const TaskContext& ctx, const Task& task, int consumer,
                                   const TilePlace& place, Position<BUFFERS>& at, const float (&sums)[128]) {
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

// Largest output and sum of exp(output - largest) of each row, of the outputs as they are stored. The sums are rounded to
// bf16 in their place, and those right of the operand, which the copy engine does not store, become -inf: neither rounded
// copies nor conditions are kept beside them.
OFA_INLINE void store_statistics(const TaskContext& ctx, const Task& task, const TilePlace& place, float (&sums)[128]) {
    const Operand& o = ctx.launch->operands[task.operands[3]];
    float* const statistics = reinterpret_cast<float*>(o.base);
#pragma unroll
    for (int i = 0; i < 128; i += 2) {
        const uint32_t both = pack(sums[i], sums[i + 1]);
        sums[i] = low_of(both);
        sums[i + 1] = high_of(both);
        // Without it the compiler would carry all sums as words, and copy them before the products have ended.
        asm volatile("" : "+f"(sums[i]), "+f"(sums[i + 1]));
    }
    if (task.tile[3] < TILE_COLUMNS) {
#pragma unroll
        for (int i = 0; i < 128; ++i)
            if (i / 4 * 8 >= task.tile[3]) sums[i] = -INFINITY;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float largest = -INFINITY, total = 0.0f;
#pragma unroll
        for (int i = 2 * half; i < 128; i += 4) largest = fmaxf(largest, fmaxf(sums[i], sums[i + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
#pragma unroll
        for (int i = 2 * half; i < 128; i += 4)
            total += exp2_of((sums[i] - largest) * LOG2_E) + exp2_of((sums[i + 1] - largest) * LOG2_E);
        total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
        total += __shfl_xor_sync(0xFFFFFFFFu, total, 2);
        const int row = place.row + 8 * half;
        if (place.lane % 4 == 0 && row < int(o.rows))
            *reinterpret_cast<float2*>(statistics + int64_t(row) * o.pitch + 2 * (task.tile[2] / int(STATISTICS_TILE))) =
                make_float2(largest, total);
    }
}

// The sums as a tile of f4 in near memory, where tile/update.cuh finds them.
OFA_INLINE void store_near(Pipeline& pipeline, int consumer, const TilePlace& place, const float (&sums)[128]) {
    const int row = 64 * consumer + 16 * place.warp + place.lane / 4, column = 2 * (place.lane % 4);
#pragma unroll
    for (int j = 0; j < TILE_COLUMNS / 8; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            *reinterpret_cast<float2*>(gradient_at(pipeline.a[0], row + 8 * half, 8 * j + column)) =
                make_float2(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
}

}  // namespace ofa
