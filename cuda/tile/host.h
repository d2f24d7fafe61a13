// Matrix products in fp32 for one processor core, through the compiler's vector types.
//
//   matmul_nt  out[m, n] = sum_k x[m, k] w[n, k]       (forward:  y  = x w^T)
//   matmul_nn  out[m, n] = sum_k x[m, k] w[k, n]       (backward: dx = dy w)
//   matmul_tn  out[m, n] = sum_k x[k, m] w[k, n]       (backward: dw = dy^T x)
//
// All three run one micro-kernel: the sums of up to kBlockRows rows and one panel of kPanel columns stay in registers
// while k runs. The panel of w is packed as [k][kPanel]; x is read where it lies, one broadcast element at a time.
// Every output is one chain of multiply-adds in the order of k, so its bits depend neither on the tile it is computed
// in nor on the thread that computes it.
#pragma once

#include <stdint.h>

#include "tile/matrix.h"

namespace tile {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kPanelVectors = 2, kBlockRows = 12;
#define TILE_INTERLEAVE_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define TILE_INTERLEAVE_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__)
constexpr int kLanes = 8, kPanelVectors = 2, kBlockRows = 6;
#define TILE_INTERLEAVE_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define TILE_INTERLEAVE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#if defined(__ARM_NEON)
constexpr int kLanes = 4, kPanelVectors = 4, kBlockRows = 6;  // 32 registers of four floats
#else
constexpr int kLanes = 4, kPanelVectors = 2, kBlockRows = 6;
#endif
#define TILE_INTERLEAVE_LOW 0, 4, 1, 5
#define TILE_INTERLEAVE_HIGH 2, 6, 3, 7
#endif
constexpr int kPanel = kLanes * kPanelVectors;
constexpr int kDepth = 256;    // k per packed panel: the panel and the rows read beside it fit the L1 cache
constexpr int kMaxRows = 512;  // rows that use one packed panel: their sums and their part of x fit the L2 cache

// Scratch memory of one matrix product: the packed panel, then the sums of all rows of the panel.
constexpr int64_t kScratchFloats = int64_t(kDepth + kMaxRows) * kPanel;

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
typedef float UnalignedVector __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));

inline Vector load(const float* p) { return *reinterpret_cast<const UnalignedVector*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<UnalignedVector*>(p) = v; }

// Writes the transpose of kLanes rows of kLanes floats, from `in` to `out`. Interleaving the first half of the rows with
// the second rotates the bits of an element's (row, column) by one place; after log2(kLanes) rounds they have changed
// places.
inline void transpose_square(const float* in, int64_t in_pitch, float* out, int64_t out_pitch) {
    Vector rows[kLanes], mixed[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = load(in + i * in_pitch);
#pragma GCC unroll 4
    for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < kLanes / 2; ++i) {
            mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + kLanes / 2], TILE_INTERLEAVE_LOW);
            mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + kLanes / 2], TILE_INTERLEAVE_HIGH);
        }
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) rows[i] = mixed[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) store(out + i * out_pitch, rows[i]);
}

// panel[k][j] = w[j][k] for j < n, zero for n <= j < kPanel.
inline void pack_transposed(Matrix w, int n, int depth, float* panel) {
    int packed_columns = 0;
    for (; packed_columns + kLanes <= n; packed_columns += kLanes) {
        const Matrix rows = w.at(packed_columns, 0);
        float* out = panel + packed_columns;
        int k = 0;
        for (; k + kLanes <= depth; k += kLanes)
            transpose_square(rows.data + k, rows.pitch, out + int64_t(k) * kPanel, kPanel);
        for (; k < depth; ++k)
            for (int j = 0; j < kLanes; ++j) out[int64_t(k) * kPanel + j] = rows.data[j * rows.pitch + k];
    }
    for (int j = packed_columns; j < kPanel; ++j)
        for (int k = 0; k < depth; ++k) panel[int64_t(k) * kPanel + j] = j < n ? w.data[j * w.pitch + k] : 0.0f;
}

// panel[k][j] = w[k][j] for j < n, zero for n <= j < kPanel.
inline void pack_straight(Matrix w, int n, int depth, float* panel) {
    for (int k = 0; k < depth; ++k) {
        const float* in = w.data + k * w.pitch;
        float* out = panel + int64_t(k) * kPanel;
        if (n == kPanel)
            for (int v = 0; v < kPanelVectors; ++v) store(out + v * kLanes, load(in + v * kLanes));
        else
            for (int j = 0; j < kPanel; ++j) out[j] = j < n ? in[j] : 0.0f;
    }
}

// sums[i][0..kPanel) += sum over k of x(i, k) panel[k], for R rows; x(i, k) = x[i * row_step + k * k_step], one of the
// steps is 1.
template <int R, bool kRowsContiguous>
inline void multiply_block(int depth, const float* x, int64_t pitch, const float* panel, float* sums, bool first) {
    Vector c[R][kPanelVectors];
    for (int i = 0; i < R; ++i)
        for (int v = 0; v < kPanelVectors; ++v)
            c[i][v] = first ? Vector{} : load(sums + i * kPanel + v * kLanes);
    for (int k = 0; k < depth; ++k) {
        Vector b[kPanelVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) b[v] = load(panel + v * kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
            const float a = kRowsContiguous ? x[i * pitch] : x[i];
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) c[i][v] += a * b[v];
        }
        panel += kPanel;
        x += kRowsContiguous ? 1 : pitch;
    }
    for (int i = 0; i < R; ++i)
        for (int v = 0; v < kPanelVectors; ++v) store(sums + i * kPanel + v * kLanes, c[i][v]);
}

// The number of rows of a block is a template argument, so that its sums stay in registers.
template <int R, bool kRowsContiguous>
inline void multiply_rows(int rows, int depth, const float* x, int64_t pitch, const float* panel, float* sums,
                          bool first) {
    if constexpr (R > 0) {
        if (rows == R)
            multiply_block<R, kRowsContiguous>(depth, x, pitch, panel, sums, first);
        else
            multiply_rows<R - 1, kRowsContiguous>(rows, depth, x, pitch, panel, sums, first);
    }
}

// The common loop. `kTransposeX`: x is [k, m] instead of [m, k]; `kTransposeW`: w is [n, k] instead of [k, n].
template <bool kTransposeX, bool kTransposeW, class Epilogue>
inline void multiply(int m, int n, int depth, Matrix x, Matrix w, float* scratch, const Epilogue& epilogue) {
    float* const panel = scratch;
    float* const all_sums = scratch + int64_t(kDepth) * kPanel;
    for (int m0 = 0; m0 < m; m0 += kMaxRows) {
        const int rows = m - m0 < kMaxRows ? m - m0 : kMaxRows;
        const int blocks = (rows + kBlockRows - 1) / kBlockRows;
        for (int n0 = 0; n0 < n; n0 += kPanel) {
            const int columns = n - n0 < kPanel ? n - n0 : kPanel;
            for (int k0 = 0; k0 < depth; k0 += kDepth) {
                const int part = depth - k0 < kDepth ? depth - k0 : kDepth;
                const bool last = k0 + part == depth;
                if (kTransposeW)
                    pack_transposed(w.at(n0, k0), columns, part, panel);
                else
                    pack_straight(w.at(k0, n0), columns, part, panel);
                // Blocks of nearly equal size: a short last one would leave the multipliers waiting for each other.
                for (int block = 0; block < blocks; ++block) {
                    const int begin = int(int64_t(rows) * block / blocks);
                    const int end = int(int64_t(rows) * (block + 1) / blocks);
                    const Matrix a = kTransposeX ? x.at(k0, m0 + begin) : x.at(m0 + begin, k0);
                    float* const sums = all_sums + int64_t(begin) * kPanel;
                    multiply_rows<kBlockRows, !kTransposeX>(end - begin, part, a.data, a.pitch, panel, sums, k0 == 0);
                    if (!last) continue;
                    for (int i = begin; i < end; ++i) {
                        const float* const row = all_sums + int64_t(i) * kPanel;
                        if (columns == kPanel)
                            epilogue(m0 + i, n0, row, kPanel);
                        else
                            epilogue(m0 + i, n0, row, columns);
                    }
                }
            }
        }
    }
}

}  // namespace tile
