// Fixed-point arithmetic with the wrap-around, rounding and saturation that the picture depends on.
#pragma once

#include "../blob.h"
#include "../state.h"
#include "../../platform/platform.h"

namespace doom {
namespace render {

constexpr Fixed FIXED_ONE = 1 << 16;
constexpr int FIXED_BITS = 16;
constexpr Fixed FIXED_MAX = 0x7fffffff;
constexpr Fixed FIXED_MIN = -0x7fffffff - 1;

constexpr Angle ANGLE_45 = 0x20000000u;
constexpr Angle ANGLE_90 = 0x40000000u;
constexpr Angle ANGLE_180 = 0x80000000u;
constexpr Angle ANGLE_270 = 0xc0000000u;
constexpr int FINE_SHIFT = 19;      // a binary angle to one of the 8192 steps of the trigonometric tables
constexpr int FINE_QUARTER = 2048;

OFA_INLINE Fixed add(Fixed a, Fixed b) { return Fixed(uint32_t(a) + uint32_t(b)); }
OFA_INLINE Fixed sub(Fixed a, Fixed b) { return Fixed(uint32_t(a) - uint32_t(b)); }
OFA_INLINE Fixed scaled(Fixed a, int n) { return Fixed(uint32_t(a) * uint32_t(n)); }
OFA_INLINE Fixed negate(Fixed a) { return Fixed(0u - uint32_t(a)); }
OFA_INLINE Fixed magnitude(Fixed a) { return a < 0 ? negate(a) : a; }
OFA_INLINE Fixed mul(Fixed a, Fixed b) { return Fixed((int64_t(a) * b) >> FIXED_BITS); }
OFA_INLINE int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }
OFA_INLINE int min(int a, int b) { return a < b ? a : b; }
OFA_INLINE int max(int a, int b) { return a > b ? a : b; }

// Quotient rounded to zero; saturates where it would not fit.
OFA_INLINE Fixed div(Fixed a, Fixed b) {
    const uint32_t size_a = uint32_t(magnitude(a)), size_b = uint32_t(magnitude(b));
    if ((size_a >> 14) >= size_b) return (a ^ b) < 0 ? FIXED_MIN : FIXED_MAX;
    return Fixed((int64_t(a) * FIXED_ONE) / b);
}

OFA_INLINE Fixed fine_sine(const WadBlob& wad, Angle angle) { return at(wad, wad.fine_sine)[angle >> FINE_SHIFT]; }
OFA_INLINE Fixed fine_cosine(const WadBlob& wad, Angle angle) {
    return at(wad, wad.fine_sine)[(angle >> FINE_SHIFT) + FINE_QUARTER];
}

// Direction of (x, y) seen from the origin: one octant's arctangent, mirrored into the others.
OFA_INLINE Angle direction(const WadBlob& wad, Fixed x, Fixed y) {
    if (x == 0 && y == 0) return 0;
    const uint32_t size_x = uint32_t(magnitude(x)), size_y = uint32_t(magnitude(y));
    const bool flat = size_x > size_y;
    const uint32_t numerator = flat ? size_y : size_x, denominator = flat ? size_x : size_y;
    uint32_t slope = 2048;
    if (denominator >= 512) {
        const uint32_t quotient = (numerator << 3) / (denominator >> 8);
        if (quotient < 2048) slope = quotient;
    }
    const Angle angle = at(wad, wad.tan_to_angle)[slope];
    if (x >= 0) {
        if (y >= 0) return flat ? angle : ANGLE_90 - 1 - angle;
        return flat ? 0u - angle : ANGLE_270 + angle;
    }
    if (y >= 0) return flat ? ANGLE_180 - 1 - angle : ANGLE_90 + angle;
    return flat ? ANGLE_180 + angle : ANGLE_270 - 1 - angle;
}

// Length of (x, y): the longer leg divided by the cosine of the angle between it and the vector.
OFA_INLINE Fixed distance(const WadBlob& wad, Fixed x, Fixed y) {
    Fixed longer = magnitude(x), shorter = magnitude(y);
    if (shorter > longer) {
        const Fixed swap = longer;
        longer = shorter;
        shorter = swap;
    }
    const Fixed ratio = longer ? div(shorter, longer) : 0;
    const Angle angle = at(wad, wad.tan_to_angle)[ratio >> 5] + ANGLE_90;
    return div(longer, fine_sine(wad, angle));
}

// Whether (x, y) lies on the right side of the line through (x0, y0) with direction (dx, dy).
OFA_INLINE bool is_right_of(Fixed x, Fixed y, Fixed x0, Fixed y0, Fixed dx, Fixed dy) {
    if (!dx) return x <= x0 ? dy <= 0 : dy >= 0;
    if (!dy) return y <= y0 ? dx >= 0 : dx <= 0;
    const Fixed to_x = sub(x, x0), to_y = sub(y, y0);
    if ((dy ^ dx ^ to_x ^ to_y) < 0) return (dy ^ to_x) >= 0;
    return mul(to_y, dx >> FIXED_BITS) < mul(dy >> FIXED_BITS, to_x);
}

}  // namespace render
}  // namespace doom
