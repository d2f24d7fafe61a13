// The tile products of cuda/tile on dense matrices, for bench_tile.py.
#include "tile/tile.h"

using namespace ofa;

namespace {

struct Store {
    float* out;
    int64_t pitch;

    template <class F>
    OFA_INLINE void touches(int i, int j, F f) const {
        f(out + i * pitch + j, pitch);
    }
    OFA_INLINE void operator()(int i, int j, const float* values, int count) const {
        for (int c = 0; c < count; ++c) out[i * pitch + j + c] = values[c];
    }
};

}  // namespace

extern "C" {

uint64_t scratch_bytes() { return tile::SCRATCH_FLOATS * sizeof(float); }

// out [m, n] = x w^T with x [m, k], w [n, k] (kind 0); x w with x [m, k], w [k, n] (1); x^T w with x [k, m], w [k, n] (2).
void product(int kind, int m, int n, int k, const float* x, const float* w, float* out, float* scratch, int times) {
    Block block(0, nullptr, 0);
    const Store store = {out, n};
    for (int i = 0; i < times; ++i) {
        if (kind == 0) tile::multiply_nt(block, m, n, k, {x, k}, {w, k}, scratch, store);
        if (kind == 1) tile::multiply_nn(block, m, n, k, {x, k}, {w, n}, scratch, store);
        if (kind == 2) tile::multiply_tn(block, m, n, k, {x, m}, {w, n}, scratch, store);
    }
}
}
