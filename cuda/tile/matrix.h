// A row-major matrix of fp32 in memory: element (i, j) is data[i * pitch + j].
#pragma once

#include <stdint.h>

namespace tile {

struct Matrix {
    const float* data;
    int64_t pitch;
    Matrix at(int64_t i, int64_t j) const { return {data + i * pitch + j, pitch}; }
};

}  // namespace tile
