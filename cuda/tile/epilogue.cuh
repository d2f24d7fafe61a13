// What becomes of sums that a matrix instruction left in registers: of 16 rows of a warp a thread has rows lane / 4 (+ 8)
// and, of each 8 columns j, two: sums[4 j + 2 (row half) + {0, 1}]. On Hopper the 16 rows have 256 columns, elsewhere 64.
#pragma once

#include "platform/math.h"
#include "task.h"
#include "tile/bf16.cuh"
#include "tile/shape.cuh"

namespace ofa {

struct TilePlace {
    int row, column;  // of the output, of the thread's first sum
    int lane;

    // Of a warp's 16 rows of the output.
    OFA_INLINE TilePlace(int first_row, int first_column, int lane)
        : row(first_row + lane / 4), column(first_column + 2 * (lane % 4)), lane(lane) {}
};

// GELU and its derivative by the special function unit; the outputs are rounded to bf16, whose rounding is four times as large
// as the error of the derivative's tangent.
OFA_INLINE float fast_gelu(float x) {
    constexpr float SLOPE = -LOG2_E * math::GELU_SLOPE;
    const float e = exp2_of(x * fmaf(SLOPE * math::GELU_CUBIC, x * x, SLOPE));
    return x * reciprocal_of(1.0f + e);
}
// With t = tanh(x (k + k c x^2)), k half of GELU's slope: (1 + t) / 2 + x (k + 3 k c x^2) / 2 (1 - t^2).
OFA_INLINE float fast_gelu_derivative(float x) {
    constexpr float K = 0.5f * math::GELU_SLOPE, KC = K * math::GELU_CUBIC;
    const float square = x * x;
    const float t = tanh_of(x * fmaf(KC, square, K));
    return fmaf(x * fmaf(1.5f * KC, square, 0.5f * K), fmaf(-t, t, 1.0f), fmaf(0.5f, t, 0.5f));
}

// A thread's two lines of an operand, 8 rows apart, from its first column on.
template <class T>
struct Lines {
    T* line[2];
    int columns[2];  // to the end of the operand

    OFA_INLINE Lines(const TaskContext& ctx, const Task& task, int operand, const TilePlace& place) {
        const Operand& o = ctx.launch->operands[task.operands[operand]];
        const uint64_t copy = ctx.copy_of(o);
        line[0] = reinterpret_cast<T*>(o.base + copy * o.copy_bytes) + int64_t(place.row) * o.pitch + place.column;
        line[1] = line[0] + 8 * int64_t(o.pitch);
#pragma unroll
        for (int half = 0; half < 2; ++half)
            columns[half] = place.row + 8 * half < int(o.rows) ? int(o.cols) - place.column : 0;
    }
    OFA_INLINE Lines(const Matrix<T>& all, const TilePlace& place)
        : line{all.row(place.row) + place.column, all.row(place.row + 8) + place.column} {
#pragma unroll
        for (int half = 0; half < 2; ++half)
            columns[half] = place.row + 8 * half < int(all.rows) ? int(all.cols) - place.column : 0;
    }
    OFA_INLINE bool has(int half, int j) const { return 8 * j < columns[half]; }
    OFA_INLINE T* at(int half, int j) const { return line[half] + 8 * j; }
};

// y f4 = skip f4 + sums. The loads of a batch are on their way together. A whole tile asks for no bounds: conditions that
// are kept from the loads to the stores take registers.
template <bool WHOLE, int N>
OFA_INLINE void store_with_skip(const Lines<float>& skip, const Lines<float>& y, const float (&sums)[N]) {
    constexpr int BATCH = WHOLE ? 8 : 1;
#pragma unroll
    for (int first = 0; first < N / 4; first += BATCH) {
        float2 values[2 * BATCH];
#pragma unroll
        for (int i = 0; i < 2 * BATCH; ++i)
            values[i] = WHOLE || y.has(i % 2, first + i / 2)
                            ? *reinterpret_cast<const float2*>(skip.at(i % 2, first + i / 2)) : make_float2(0, 0);
#pragma unroll
        for (int i = 0; i < 2 * BATCH; ++i) {
            const int half = i % 2, j = first + i / 2;
            if (WHOLE || y.has(half, j))
                *reinterpret_cast<float2*>(y.at(half, j)) = make_float2(values[i].x + sums[4 * j + 2 * half],
                                                                        values[i].y + sums[4 * j + 2 * half + 1]);
        }
    }
}

// The sums rounded to bf16 in their place, so that no rounded copies are kept beside them.
template <int N>
OFA_INLINE void round_in_place(float (&sums)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        const uint32_t both = pack(sums[i], sums[i + 1]);
        sums[i] = low_of(both);
        sums[i + 1] = high_of(both);
        // Without it the compiler would carry all sums as words, and copy them before the products have ended.
        asm volatile("" : "+f"(sums[i]), "+f"(sums[i + 1]));
    }
}

// Sums right of the operand, which are not stored, become -inf: no conditions are kept beside them.
template <int N>
OFA_INLINE void hide_right_of(float* sums, int columns) {
    if (columns < N * 2) {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (i / 4 * 8 >= columns) sums[i] = -INFINITY;
    }
}

// Largest output and sum of exp(output - largest) of one of the thread's two rows. The four threads that share the row have
// the same.
template <int N>
OFA_INLINE float2 statistics_of_row(const float (&sums)[N], int half) {
    float largest = -INFINITY, total = 0.0f;
#pragma unroll
    for (int i = 2 * half; i < N; i += 4) largest = fmaxf(largest, fmaxf(sums[i], sums[i + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
#pragma unroll
    for (int i = 2 * half; i < N; i += 4)
        total += exp2_of((sums[i] - largest) * LOG2_E) + exp2_of((sums[i + 1] - largest) * LOG2_E);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 2);
    return make_float2(largest, total);
}

// The same of one of the thread's two rows, of one part of the columns after the other, as they are rounded to bf16. What is
// hidden does not count; of the first part not everything is.
struct RowStatistics {
    float largest = -INFINITY, total = 0.0f;

    template <int PART>
    OFA_INLINE void add(const float* sums, int half) {
        float outputs[PART / 2], most = largest;
#pragma unroll
        for (int j = 0; j < PART / 4; ++j) {
            const uint32_t both = pack(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
            outputs[2 * j] = low_of(both);
            outputs[2 * j + 1] = high_of(both);
            most = fmaxf(most, fmaxf(outputs[2 * j], outputs[2 * j + 1]));
        }
        const float shift = -LOG2_E * most;
        total *= exp2_of(fmaf(largest, LOG2_E, shift));
#pragma unroll
        for (float output : outputs) total += exp2_of(fmaf(output, LOG2_E, shift));
        largest = most;
    }
    // Of the four threads that share the row; all of them have it.
    OFA_INLINE float2 of_four_threads() const {
        float most = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
        most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
        float sum = total * exp2_of((largest - most) * LOG2_E);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 2);
        return make_float2(most, sum);
    }
};

// Of one row, at the task's place in its line of `statistics`.
OFA_INLINE void store_statistics(float* statistics, uint32_t pitch, const Task& task, int row, float2 both) {
    *reinterpret_cast<float2*>(statistics + int64_t(row) * pitch + 2 * (task.tile[2] / int(STATISTICS_TILE))) = both;
}

}  // namespace ofa
