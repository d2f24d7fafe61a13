// A row-major matrix of fp32 that is only read: element (i, j) is data[i * pitch + j].
#pragma once

#include "platform/platform.h"

namespace ofa::tile {

struct Source {
    const float* data;
    int64_t pitch;

    OFA_INLINE Source from(int64_t i, int64_t j) const { return {data + i * pitch + j, pitch}; }
};

}  // namespace ofa::tile

namespace ofa {

OFA_INLINE int smaller(int a, int b) { return a < b ? a : b; }

}  // namespace ofa
