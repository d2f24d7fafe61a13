// The products of a training step by the matrix instructions of warps, each a body of its own: the sums of a tile, then
// what becomes of them, band by band.
#pragma once

#include "tile/adamw.cuh"
#include "tile/epilogue.cuh"
#include "tile/sm80.cuh"

namespace ofa::sm80 {

using TileSums = float[BANDS][BAND_SUMS];
using BandSums = float[BAND_SUMS];

// Outputs of a band in bf16, two in a word: of half h of the rows and tile j of 8 columns at[2 j + h].
struct Words {
    uint32_t at[BAND_SUMS / 2];
};

OFA_INLINE Words rounded(const BandSums& sums) {
    Words words;
#pragma unroll
    for (int i = 0; i < BAND_SUMS / 2; ++i) words.at[i] = pack(sums[2 * i], sums[2 * i + 1]);
    return words;
}

// 16 rows and 64 columns of a warp, and 16 lines of near memory.
struct Band {
    static constexpr int BYTES = 16 * LINE_BYTES;

    int first_row, first_column, lane;
    uint8_t* lines;
    TilePlace place;  // of the thread's sums

    OFA_INLINE Band(const Block& block, const Task& task, int number)
        : first_row(task.tile[0] + block.thread() / 32 / B_STRIPS * STRIP + 16 * number),
          first_column(task.tile[2] + block.thread() / 32 % B_STRIPS * STRIP),
          lane(block.thread() % 32),
          lines(block.near<uint8_t>() + block.thread() / 32 * BYTES),
          place(first_row, first_column, lane) {}

    // Through near memory, so that whole lines are written.
    OFA_INLINE void store(const Matrix<bf16>& to, const Words& words) const {
        __syncwarp();  // the lines have been read that were stored before
#pragma unroll
        for (int i = 0; i < BAND_SUMS / 2; ++i)
            *reinterpret_cast<uint32_t*>(lines + piece_at(0, lane / 4 + i % 2 * 8, i / 2) + lane % 4 * 4) = words.at[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = 4 * i + lane / 8, piece = lane % 8;
            if (first_row + row < int(to.rows) && first_column + 8 * piece < int(to.cols))
                store_words(to.row(first_row + row) + first_column + 8 * piece,
                            load_words(lines + piece_at(0, row, piece)));
        }
    }
};

// f(band, its sums) for the warp's bands.
template <class F>
OFA_INLINE void for_each_band(const Block& block, const TaskContext& ctx, TileSums& sums, F f) {
#pragma unroll
    for (int i = 0; i < BANDS; ++i) f(Band(block, *ctx.task, i), sums[i]);
}

OFA_INLINE bool is_whole(const TaskContext& ctx) { return ctx.rows() == TILE_ROWS && ctx.cols() == TILE_COLUMNS; }

OFA_NOINLINE void op_matmul(Block& block, const TaskContext& ctx) {
    TileSums sums;
    multiply_tile<false, false>(block, ctx, sums);
    const Matrix<bf16> y = ctx.operand<bf16>(2);
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) { band.store(y, rounded(part)); });
}

OFA_NOINLINE void op_matmul_residual(Block& block, const TaskContext& ctx) {
    TileSums sums;
    multiply_tile<false, false>(block, ctx, sums);
    const Matrix<float> skip = ctx.operand<float>(2), y = ctx.operand<float>(3);
    const bool whole = is_whole(ctx);
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) {
        const Lines<float> from(skip, band.place), to(y, band.place);
        if (whole)
            store_with_skip<true>(from, to, part);
        else
            store_with_skip<false>(from, to, part);
    });
}

OFA_NOINLINE void op_matmul_gelu(Block& block, const TaskContext& ctx) {
    TileSums sums;
    multiply_tile<false, false>(block, ctx, sums);
    const Matrix<bf16> u = ctx.operand<bf16>(2), a = ctx.operand<bf16>(3);
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) {
        band.store(u, rounded(part));
#pragma unroll
        for (float& sum : part) sum = fast_gelu(sum);
        band.store(a, rounded(part));
    });
}

// The four warps of a row have each a share of its statistics.
OFA_NOINLINE void op_matmul_statistics(Block& block, const TaskContext& ctx) {
    TileSums sums;
    multiply_tile<false, false>(block, ctx, sums);
    const Matrix<bf16> y = ctx.operand<bf16>(2);
    const int strip = block.thread() / 32 % B_STRIPS, columns = int(ctx.cols()) - strip * STRIP;
    float2* const shares = block.near<float2>(BLOCK_THREADS / 32 * Band::BYTES);  // [B_STRIPS, TILE_ROWS]
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) {
        round_in_place(part);
        hide_right_of<int(sizeof part / sizeof *part)>(part, columns);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float2 share = statistics_of_row(part, half);
            const int row = band.place.row + 8 * half - int(ctx.row0());
            if (band.lane % 4 == 0) shares[strip * TILE_ROWS + row] = columns > 0 ? share : make_float2(-INFINITY, 0.0f);
        }
        band.store(y, rounded(part));
    });
    block.sync();
    const Operand& o = ctx.launch->operands[ctx.task->operands[3]];
    block.for_each(TILE_ROWS, [&](int64_t row) {
        float largest = -INFINITY, total = 0.0f;
        for (int i = 0; i < B_STRIPS; ++i) largest = fmaxf(largest, shares[i * TILE_ROWS + row].x);
        for (int i = 0; i < B_STRIPS; ++i) {
            const float2 share = shares[i * TILE_ROWS + row];
            total += share.y * exp2_of((share.x - largest) * LOG2_E);
        }
        if (ctx.row0() + row < int64_t(o.rows))
            store_statistics(reinterpret_cast<float*>(o.base), o.pitch, *ctx.task, int(ctx.row0() + row),
                             make_float2(largest, total));
    });
}

OFA_NOINLINE void op_matmul_dx(Block& block, const TaskContext& ctx) {
    TileSums sums;
    multiply_tile<false, true>(block, ctx, sums);
    const Matrix<bf16> dx = ctx.operand<bf16>(2);
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) { band.store(dx, rounded(part)); });
}

OFA_NOINLINE void op_matmul_dx_gelu(Block& block, const TaskContext& ctx) {
    TileSums sums;
    multiply_tile<false, true>(block, ctx, sums);
    const Matrix<bf16> u = ctx.operand<bf16>(2), du = ctx.operand<bf16>(3);
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) {
        const Lines<bf16> from(u, band.place);
        Words inputs;  // on their way together
#pragma unroll
        for (int i = 0; i < BAND_SUMS / 2; ++i)
            inputs.at[i] = from.has(i % 2, i / 2) ? *reinterpret_cast<const uint32_t*>(from.at(i % 2, i / 2)) : 0u;
#pragma unroll
        for (int i = 0; i < BAND_SUMS; ++i) {
            const uint32_t both = inputs.at[i / 2];
            part[i] *= fast_gelu_derivative(i % 2 == 0 ? low_of(both) : high_of(both));
        }
        band.store(du, rounded(part));
    });
}

// AdamW on a band of master, m and v, and the next version of the weight. Four threads read and write whole sectors. A whole
// tile asks for no bounds, as in tile/epilogue.cuh.
template <bool WHOLE>
OFA_INLINE void update_band(const FastAdamW& adamw, const Lines<float>& master, const Lines<float>& m, const Lines<float>& v,
                            const BandSums& gradient, Words& words) {
    constexpr int BATCH = WHOLE ? 4 : 1;
#pragma unroll
    for (int first = 0; first < BAND_SUMS / 2; first += BATCH) {
        float2 p[BATCH], a[BATCH], b[BATCH];  // on their way together
        if (!WHOLE && !master.has(first % 2, first / 2)) continue;
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int half = (first + i) % 2, j = (first + i) / 2;
            p[i] = *reinterpret_cast<const float2*>(master.at(half, j));
            a[i] = *reinterpret_cast<const float2*>(m.at(half, j));
            b[i] = *reinterpret_cast<const float2*>(v.at(half, j));
        }
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int half = (first + i) % 2, j = (first + i) / 2;
            const float* const grad = gradient + 2 * (first + i);
            const float2 next = make_float2(fast_update(adamw, grad[0], p[i].x, a[i].x, b[i].x),
                                            fast_update(adamw, grad[1], p[i].y, a[i].y, b[i].y));
            *reinterpret_cast<float2*>(master.at(half, j)) = next;
            *reinterpret_cast<float2*>(m.at(half, j)) = a[i];
            *reinterpret_cast<float2*>(v.at(half, j)) = b[i];
            words.at[first + i] = pack(next.x, next.y);
        }
    }
}

// A thread's words of a block of 16 x 16 are the thread's 16 bytes of stream order.
OFA_INLINE void store_streamed(const Matrix<bf16>& to, const Band& band, const Words& words) {
    const int64_t across = to.cols / 16;
    bf16* const at = to.data + (band.first_row / 16 * across + band.first_column / 16) * 256 + band.lane * 8;
#pragma unroll
    for (int i = 0; i < STRIP / 16; ++i)
        if (band.first_row < int(to.rows) && band.first_column + 16 * i < int(to.cols))
            store_words(at + 256 * i, make_uint4(words.at[4 * i], words.at[4 * i + 1], words.at[4 * i + 2],
                                                 words.at[4 * i + 3]));
}

OFA_NOINLINE void op_matmul_dw_adamw(Block& block, const TaskContext& ctx) {
    adamw_of_step(block, ctx);  // before there are sums, which would be in its way
    TileSums sums;
    multiply_tile<true, true>(block, ctx, sums);
    FastAdamW adamw = block.kept<FastAdamW>();
    if ((ctx.task->flags & ADAMW_DECAY) == 0) adamw.decay = 0.0f;
    const Matrix<float> master = ctx.operand<float>(2), m = ctx.operand<float>(3), v = ctx.operand<float>(4);
    const Matrix<bf16> w = ctx.operand<bf16>(5), stream = ctx.operand<bf16>(6);
    const bool whole = is_whole(ctx);
    for_each_band(block, ctx, sums, [&](const Band& band, BandSums& part) {
        const Lines<float> p(master, band.place), first(m, band.place), second(v, band.place);
        Words words = {};
        if (whole)
            update_band<true>(adamw, p, first, second, part, words);
        else
            update_band<false>(adamw, p, first, second, part, words);
        store_streamed(stream, band, words);
        band.store(w, words);
    });
}

}  // namespace ofa::sm80
