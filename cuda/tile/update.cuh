// The second half of a weight gradient's task: the tile is updated by its gradient, which lies in near memory. AdamW on
// master, m and v, then the next version in both orders. Rows are read and written whole, four at a time by a warp.
#pragma once

#include "tile/adamw.cuh"
#include "tile/shape.cuh"

namespace ofa {

// Near memory: the gradient f4 [128, 256], then the next version bf16 [128, 256]. The 16-byte pieces of a line are exchanged
// by the number of the line modulo 8, so that neither lines nor columns of lines meet in the same banks.
constexpr int GRADIENT_BYTES = TILE_ROWS * TILE_COLUMNS * 4;

OFA_INLINE uint8_t* gradient_at(uint8_t* near, int row, int column) {
    return near + row * (TILE_COLUMNS * 4) + (((column / 4) ^ (row % 8)) * 16) + column % 4 * 4;
}
OFA_INLINE uint8_t* version_at(uint8_t* near, int row, int column) {
    return near + GRADIENT_BYTES + row * (TILE_COLUMNS * 2) + (((column / 8) ^ (row % 8)) * 16) + column % 8 * 2;
}

// Operand i from the task's tile on.
template <class T>
OFA_INLINE Matrix<T> tile_operand(const TaskContext& ctx, int i) {
    const Matrix<T> all = ctx.operand<T>(i);
    return {all.row(ctx.row0()) + ctx.col0(), all.pitch, ctx.rows(), ctx.cols()};
}

OFA_NOINLINE void update_weight(Block& block, const TaskContext& ctx) {
    constexpr int BATCH = 4, WARPS = BLOCK_THREADS / 32;
    block.sync();  // the gradient is there
    AdamW adamw = adamw_of_step(block, ctx);
    if ((ctx.task->flags & ADAMW_DECAY) == 0) adamw.decay = 0.0f;
    uint8_t* const near = block.near<uint8_t>();
    const Matrix<float> master = tile_operand<float>(ctx, 2), m = tile_operand<float>(ctx, 3);
    const Matrix<float> v = tile_operand<float>(ctx, 4);
    const Matrix<bf16> w = tile_operand<bf16>(ctx, 5);
    const int lane = block.thread() % 32, warp = block.thread() / 32;
    const int rows = int(ctx.rows()), columns = int(ctx.cols());
    for (int first = BATCH * warp; first < rows; first += BATCH * WARPS)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int column = TILE_COLUMNS / 2 * half + 4 * lane;
            if (column >= columns) continue;
            float4 p[BATCH], a[BATCH], b[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                if (first + i >= rows) continue;
                p[i] = *reinterpret_cast<const float4*>(master.row(first + i) + column);
                a[i] = *reinterpret_cast<const float4*>(m.row(first + i) + column);
                b[i] = *reinterpret_cast<const float4*>(v.row(first + i) + column);
            }
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const int row = first + i;
                if (row >= rows) continue;
                const float4 gradient = *reinterpret_cast<const float4*>(gradient_at(near, row, column));
                const float4 next = fast_update(adamw, gradient, p[i], a[i], b[i]);
                const uint2 words = make_uint2(pack(next.x, next.y), pack(next.z, next.w));
                *reinterpret_cast<float4*>(master.row(row) + column) = next;
                *reinterpret_cast<float4*>(m.row(row) + column) = a[i];
                *reinterpret_cast<float4*>(v.row(row) + column) = b[i];
                *reinterpret_cast<uint2*>(w.row(row) + column) = words;
                *reinterpret_cast<uint2*>(version_at(near, row, column)) = words;
            }
        }
    block.sync();
    const Matrix<bf16> stream = ctx.operand<bf16>(6);
    const int across = columns / 16, blocks = rows / 16 * across;
    for (int tile = warp; tile < blocks; tile += WARPS) {
        const int row = tile / across * 16 + lane / 4, column = tile % across * 16 + lane % 4 * 2;
        const auto word = [&](int r, int c) { return *reinterpret_cast<const uint32_t*>(version_at(near, r, c)); };
        const int64_t place = (ctx.row0() / 16 + tile / across) * (stream.cols / 16) + ctx.col0() / 16 +
                              tile % across;
        store_words(stream.data + place * 256 + lane * 8,
                    make_uint4(word(row, column), word(row + 8, column), word(row, column + 8), word(row + 8, column + 8)));
    }
}

}  // namespace ofa
