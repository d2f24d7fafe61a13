// 16.16 fixed point and binary angles.
#pragma once

#include "world.h"

namespace doom {

constexpr Fixed UNIT = 1 << 16;
constexpr Angle ANGLE_45 = 0x20000000, ANGLE_90 = 0x40000000, ANGLE_180 = 0x80000000, ANGLE_270 = 0xC0000000;
constexpr int FINE_SHIFT = 19, FINE_ANGLES = 8192, FINE_MASK = FINE_ANGLES - 1;
constexpr Fixed FIXED_MAX = 0x7FFFFFFF, FIXED_MIN = -FIXED_MAX - 1;

// Sums and products that may leave the range wrap around, as they do on the machine the rules come from.
OFA_FUNCTION Fixed wrap_add(Fixed a, Fixed b) { return Fixed(uint32_t(a) + uint32_t(b)); }
OFA_FUNCTION Fixed wrap_sub(Fixed a, Fixed b) { return Fixed(uint32_t(a) - uint32_t(b)); }
OFA_FUNCTION Fixed wrap_mul(Fixed a, Fixed b) { return Fixed(uint32_t(a) * uint32_t(b)); }
OFA_FUNCTION Fixed magnitude(Fixed a) { return a < 0 ? wrap_sub(0, a) : a; }

OFA_FUNCTION Fixed fixed_mul(Fixed a, Fixed b) { return Fixed((int64_t(a) * b) >> 16); }

// Truncates towards zero; a quotient out of range becomes the largest or the smallest number. (The smallest number is
// its own magnitude, so that it passes the test of the range even over zero.)
OFA_FUNCTION Fixed fixed_div(Fixed a, Fixed b) {
    if ((magnitude(a) >> 14) >= magnitude(b) || b == 0) return (a ^ b) < 0 ? FIXED_MIN : FIXED_MAX;
    return Fixed(int64_t(a) * UNIT / b);
}

OFA_FUNCTION Fixed fine_sine(const WorldBase& w, int fine) { return w.sine[fine]; }
OFA_FUNCTION Fixed fine_cosine(const WorldBase& w, int fine) { return w.sine[fine + FINE_ANGLES / 4]; }
OFA_FUNCTION Fixed sine_of(const WorldBase& w, Angle a) { return w.sine[a >> FINE_SHIFT]; }
OFA_FUNCTION Fixed cosine_of(const WorldBase& w, Angle a) { return w.sine[(a >> FINE_SHIFT) + FINE_ANGLES / 4]; }

// Length of (dx, dy) to about 8 %: the longer side plus half the shorter.
OFA_FUNCTION Fixed approximate_distance(Fixed dx, Fixed dy) {
    dx = magnitude(dx);
    dy = magnitude(dy);
    return wrap_sub(wrap_add(dx, dy), (dx < dy ? dx : dy) >> 1);
}

// Index 0-2048 into the arctangent table for numerator / denominator <= 1.
OFA_FUNCTION int slope_index(uint32_t numerator, uint32_t denominator) {
    if (denominator < 512) return 2048;
    const uint32_t index = (numerator << 3) / (denominator >> 8);
    return index <= 2048 ? int(index) : 2048;
}

// Direction from (x1, y1) to (x2, y2).
OFA_FUNCTION Angle angle_to(const WorldBase& w, Fixed x1, Fixed y1, Fixed x2, Fixed y2) {
    Fixed x = wrap_sub(x2, x1), y = wrap_sub(y2, y1);
    if (x == 0 && y == 0) return 0;
    const bool left = x < 0, down = y < 0;
    x = magnitude(x);
    y = magnitude(y);
    const bool flat = x > y;
    const Angle a = w.tan_to_angle[flat ? slope_index(y, x) : slope_index(x, y)];
    if (!left && !down) return flat ? a : ANGLE_90 - 1 - a;
    if (!left) return flat ? 0u - a : ANGLE_270 + a;
    if (!down) return flat ? ANGLE_180 - 1 - a : ANGLE_90 + a;
    return flat ? ANGLE_180 + a : ANGLE_270 - 1 - a;
}

}  // namespace doom
