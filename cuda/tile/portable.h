// Matrix products for any block of threads: each thread computes whole outputs.
#pragma once

#include "tile/matrix.h"

namespace ofa::tile {

constexpr int64_t SCRATCH_FLOATS = 0;

OFA_INLINE void prefetch(const float*, int) {}

// `TRANSPOSE_X`: x is [depth, m] instead of [m, depth]; `TRANSPOSE_W`: w is [n, depth] instead of [depth, n].
template <bool TRANSPOSE_X, bool TRANSPOSE_W, class Epilogue>
OFA_INLINE void multiply(Block& block, int m, int n, int depth, Source x, Source w, float* /*scratch*/,
                         const Epilogue& epilogue) {
    block.for_each(int64_t(m) * n, [&](int64_t index) {
        const int i = int(index / n), j = int(index % n);
        float sum = 0.0f;
        for (int k = 0; k < depth; ++k) {
            const float a = TRANSPOSE_X ? x.data[k * x.pitch + i] : x.data[i * x.pitch + k];
            const float b = TRANSPOSE_W ? w.data[j * w.pitch + k] : w.data[k * w.pitch + j];
            sum = fmaf(a, b, sum);
        }
        epilogue(i, j, &sum, 1);
    });
}

}  // namespace ofa::tile
