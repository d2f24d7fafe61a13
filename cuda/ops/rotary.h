// Rotary positions (RoFormer, arXiv:2104.09864): columns i and i + D/2 of a head's queries and keys turn
// together, by position * base^(-2i / D) radians.
#pragma once

#include "platform/math.h"

namespace ofa {

// Turns per position of column pair i, in double: at position 2^16 a float would already be off by 1e-3
// radians.
OFA_INLINE double rotary_frequency(int64_t i, int64_t head_dim, double base) {
    return exp(-2.0 * double(i) / double(head_dim) * log(base)) * 0.15915494309189533577;
}

// Column pair i turns by base^(-2i / D) radians per position: this factor times what the pair before it turns.
OFA_INLINE double rotary_ratio(int64_t head_dim, double base) { return exp(-2.0 / double(head_dim) * log(base)); }

// 1 - x^2 / (N (N + 1)) (1 - x^2 / ((N + 2) (N + 3)) (1 - ...)), down to terms that no double of |x| <= 1 shows.
template <int N>
OFA_INLINE double alternating_series(double square) {
    if constexpr (N > 17)
        return 1.0;
    else
        return 1.0 - square * (1.0 / (N * (N + 1))) * alternating_series<N + 2>(square);
}

// Taylor's series for |x| <= 1, with an error below 2e-16 and without branches.
OFA_INLINE double sine_of_small(double x) { return x * alternating_series<2>(x * x); }
OFA_INLINE double cosine_of_small(double x) { return alternating_series<1>(x * x); }

// (first, second) of one column pair, turned by the angle (backwards with the negated sine).
OFA_INLINE void rotate(float first, float second, float cosine, float sine, float& out_first, float& out_second) {
    out_first = first * cosine - second * sine;
    out_second = second * cosine + first * sine;
}

}  // namespace ofa
