// Matrix products of one block, in fp32 with an epilogue of the caller's:
//
//   multiply_nt   out[i, j] = sum_k x[i, k] w[j, k]       forward:   y  = x w^T
//   multiply_nn   out[i, j] = sum_k x[i, k] w[k, j]       backward:  dx = dy w
//   multiply_tn   out[i, j] = sum_k x[k, i] w[k, j]       backward:  dw = dy^T x
//
// `epilogue(i, j, values, count)` is called once for every output: values[0 .. count) are outputs (i, j) to
// (i, j + count - 1). It may also have `touches(i, j, f)`, which calls f(row, pitch) for every matrix that such calls
// read or write from (i, j) on; then the factors are taken to be far from the core, too, and are fetched ahead.
// `scratch` holds SCRATCH_FLOATS floats, aligned to 64 bytes. No barrier follows.
// Every output is one chain of multiply-adds in the order of k: its bits depend neither on the shape of the
// product it is part of nor on the thread that computes it.
#pragma once

#if defined(__CUDACC__)
#include "tile/portable.h"
#else
#include "tile/host.h"
#endif

namespace ofa::tile {

template <class Epilogue>
OFA_INLINE void multiply_nt(Block& block, int m, int n, int depth, Source x, Source w, float* scratch,
                            const Epilogue& epilogue) {
    multiply<false, true>(block, m, n, depth, x, w, scratch, epilogue);
}

template <class Epilogue>
OFA_INLINE void multiply_nn(Block& block, int m, int n, int depth, Source x, Source w, float* scratch,
                            const Epilogue& epilogue) {
    multiply<false, false>(block, m, n, depth, x, w, scratch, epilogue);
}

template <class Epilogue>
OFA_INLINE void multiply_tn(Block& block, int m, int n, int depth, Source x, Source w, float* scratch,
                            const Epilogue& epilogue) {
    multiply<true, false>(block, m, n, depth, x, w, scratch, epilogue);
}

}  // namespace ofa::tile
