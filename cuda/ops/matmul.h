// The matrix products of a step, with what is done to their outputs on the way to memory.
#pragma once

#include "platform/math.h"
#include "task.h"
#include "tile/tile.h"

namespace ofa {

// The whole matrix of operand i as a factor that is read from (row, col) on.
OFA_INLINE tile::Source factor(const TaskContext& ctx, int i, int64_t row, int64_t col) {
    const Matrix<float> matrix = ctx.operand<float>(i);
    return tile::Source{matrix.data, matrix.pitch}.from(row, col);
}

// Operand i from the task's tile on.
OFA_INLINE Matrix<float> tile_of(const TaskContext& ctx, int i) {
    const Matrix<float> matrix = ctx.operand<float>(i);
    return {matrix.row(ctx.row0()) + ctx.col0(), matrix.pitch, ctx.rows(), ctx.cols()};
}

// y = x w^T of the task's tile, with x and w as operands 0 and 1.
template <class Epilogue>
OFA_INLINE void multiply_forward(Block& block, const TaskContext& ctx, const Epilogue& epilogue) {
    tile::multiply_nt(block, int(ctx.rows()), int(ctx.cols()), int(ctx.operand<float>(0).cols),
                      factor(ctx, 0, ctx.row0(), 0), factor(ctx, 1, ctx.col0(), 0),
                      block.scratch<float>(), epilogue);
}

// dx = dy w of the task's tile, with dy and w as operands 0 and 1.
template <class Epilogue>
OFA_INLINE void multiply_backward(Block& block, const TaskContext& ctx, const Epilogue& epilogue) {
    tile::multiply_nn(block, int(ctx.rows()), int(ctx.cols()), int(ctx.operand<float>(0).cols),
                      factor(ctx, 0, ctx.row0(), 0), factor(ctx, 1, 0, ctx.col0()),
                      block.scratch<float>(), epilogue);
}

// The epilogues. Their outputs are usually in no cache near the core, so that a store would wait for its line.
struct Store {
    Matrix<float> y;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        f(y.row(i) + j, y.pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* values, int count) const {
        float* const OFA_RESTRICT to = y.row(i) + j;
        OFA_INDEPENDENT
        for (int c = 0; c < count; ++c) to[c] = values[c];
    }
};

struct StoreWithSkip {
    Matrix<float> skip, y;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        f(skip.row(i) + j, skip.pitch);
        f(y.row(i) + j, y.pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* values, int count) const {
        const float* const OFA_RESTRICT from = skip.row(i) + j;
        float* const OFA_RESTRICT to = y.row(i) + j;
        OFA_INDEPENDENT
        for (int c = 0; c < count; ++c) to[c] = from[c] + values[c];
    }
};

struct StoreGelu {
    Matrix<float> u, a;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        f(u.row(i) + j, u.pitch);
        f(a.row(i) + j, a.pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* values, int count) const {
        float* const OFA_RESTRICT u_row = u.row(i) + j;
        float* const OFA_RESTRICT a_row = a.row(i) + j;
        OFA_INDEPENDENT
        for (int c = 0; c < count; ++c) {
            u_row[c] = values[c];
            a_row[c] = math::gelu(values[c]);
        }
    }
};

struct StoreThroughGelu {
    Matrix<float> u, du;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        f(u.row(i) + j, u.pitch);
        f(du.row(i) + j, du.pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* values, int count) const {
        const float* const OFA_RESTRICT u_row = u.row(i) + j;
        float* const OFA_RESTRICT du_row = du.row(i) + j;
        OFA_INDEPENDENT
        for (int c = 0; c < count; ++c) du_row[c] = values[c] * math::gelu_derivative(u_row[c]);
    }
};

OFA_OP void op_matmul(Block& block, const TaskContext& ctx) {
    multiply_forward(block, ctx, Store{tile_of(ctx, 2)});
}

OFA_OP void op_matmul_residual(Block& block, const TaskContext& ctx) {
    multiply_forward(block, ctx, StoreWithSkip{tile_of(ctx, 2), tile_of(ctx, 3)});
}

OFA_OP void op_matmul_gelu(Block& block, const TaskContext& ctx) {
    multiply_forward(block, ctx, StoreGelu{tile_of(ctx, 2), tile_of(ctx, 3)});
}

OFA_OP void op_matmul_dx(Block& block, const TaskContext& ctx) {
    multiply_backward(block, ctx, Store{tile_of(ctx, 2)});
}

OFA_OP void op_matmul_dx_gelu(Block& block, const TaskContext& ctx) {
    multiply_backward(block, ctx, StoreThroughGelu{tile_of(ctx, 2), tile_of(ctx, 3)});
}

OFA_OP void op_matmul_dw(Block& block, const TaskContext& ctx) {
    tile::multiply_tn(block, int(ctx.rows()), int(ctx.cols()), int(ctx.operand<float>(0).rows),
                      factor(ctx, 0, 0, ctx.row0()), factor(ctx, 1, 0, ctx.col0()),
                      block.scratch<float>(), Store{tile_of(ctx, 2)});
}

// Operand 3 holds a pair (largest, sum of exp) per row and STATISTICS_TILE columns.
OFA_OP void op_matmul_statistics(Block& block, const TaskContext& ctx) {
    const Matrix<float> y = tile_of(ctx, 2), statistics = ctx.operand<float>(3);
    const int64_t pair = 2 * (ctx.col0() / STATISTICS_TILE);
    multiply_forward(block, ctx, Store{y});
    block.sync();
    for (int64_t r = 0; r < y.rows; ++r) {
        const float* const OFA_RESTRICT row = y.row(r);
        float* const to = statistics.row(ctx.row0() + r) + pair;
        const float largest = block.max(y.cols, row[0], [=](int64_t c) { return row[c]; });
        const float total = block.sum(y.cols, [=](int64_t c) { return math::exp(row[c] - largest); });
        if (!block.leader()) continue;
        to[0] = largest;
        to[1] = total;
    }
}

}  // namespace ofa
