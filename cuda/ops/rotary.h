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

// Column pair i turns by base^(-2i / D) radians per position: by this factor less than the pair before it.
OFA_INLINE double rotary_ratio(int64_t head_dim, double base) { return exp(-2.0 / double(head_dim) * log(base)); }

// sin(x) and cos(x) for |x| <= 1 with an error below 2e-16, without branches: Taylor's series up to x^18.
OFA_INLINE void sine_cosine_of_small(double x, double& sine, double& cosine) {
    const double square = x * x;
    double s = 1.0, c = 1.0;
#pragma GCC unroll 16
    for (int n = 17; n > 1; n -= 2) {
        c = 1.0 - square * (1.0 / (n * (n + 1))) * c;
        s = 1.0 - square * (1.0 / (n * (n - 1))) * s;
    }
    sine = x * s;
    cosine = 1.0 - square * 0.5 * c;
}

// (first, second) of one column pair, turned by the angle (backwards with the negated sine).
OFA_INLINE void rotate(float first, float second, float cosine, float sine, float& out_first, float& out_second) {
    out_first = first * cosine - second * sine;
    out_second = second * cosine + first * sine;
}

}  // namespace ofa
