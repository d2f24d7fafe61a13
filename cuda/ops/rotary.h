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

// (first, second) of one column pair, turned by the angle (backwards with the negated sine).
OFA_INLINE void rotate(float first, float second, float cosine, float sine, float& out_first, float& out_second) {
    out_first = first * cosine - second * sine;
    out_second = second * cosine + first * sine;
}

}  // namespace ofa
