// Stream order (abi.LAYOUTS): a weight as the lanes of a warp hold it in front of a matrix instruction.
#pragma once

#include "task.h"

namespace ofa {

// Place of element (r, c) of a matrix of `cols` columns. Blocks of 16 x 16 follow one another; in a block lane
// 4 (r mod 8) + (c mod 8) / 2 has eight elements, those of both halves of the rows and of both halves of the columns.
OFA_INLINE uint64_t stream_index(uint64_t r, uint64_t c, uint64_t cols) {
    const uint64_t block = r / 16 * (cols / 16) + c / 16;
    const uint64_t lane = r % 8 * 4 + c % 8 / 2;
    const uint64_t element = c % 16 / 8 * 4 + r % 16 / 8 * 2 + c % 2;
    return block * 256 + lane * 8 + element;
}

// A matrix in stream order.
template <class T>
struct Streamed {
    T* data;
    int64_t rows;
    int64_t cols;

    OFA_INLINE T& at(int64_t r, int64_t c) const {
        return data[stream_index(uint64_t(r), uint64_t(c), uint64_t(cols))];
    }
};

template <class T>
OFA_INLINE Streamed<T> streamed_operand(const TaskContext& ctx, int i) {
    const Matrix<T> matrix = ctx.operand<T>(i);
    return {matrix.data, matrix.rows, matrix.cols};
}

}  // namespace ofa
