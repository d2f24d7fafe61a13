// Rows that are on their way from memory while others are worked on.
#pragma once

#include "task.h"
#include "tile/tile.h"

namespace ofa {

constexpr int ROWS_AHEAD = 8;

OFA_INLINE void prefetch_row(const Matrix<float>& matrix, int64_t row) {
    if (row < matrix.rows) tile::prefetch(matrix.row(row), int(matrix.cols));
}

}  // namespace ofa
