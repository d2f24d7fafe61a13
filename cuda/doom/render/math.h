// Directions, distances and sides as the picture needs them: from the packed WAD's tables.
#pragma once

#include "../sim/fixed.h"

namespace doom {
namespace render {

constexpr int FIXED_BITS = 16;

OFA_INLINE int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }
OFA_INLINE int min(int a, int b) { return a < b ? a : b; }
OFA_INLINE int max(int a, int b) { return a > b ? a : b; }

OFA_INLINE Fixed fine_sine(const WadBlob& wad, Angle angle) { return at(wad, wad.fine_sine)[angle >> FINE_SHIFT]; }
OFA_INLINE Fixed fine_cosine(const WadBlob& wad, Angle angle) {
    return at(wad, wad.fine_sine)[(angle >> FINE_SHIFT) + FINE_ANGLES / 4];
}

// Direction of (x, y) seen from the origin: one octant's arctangent, mirrored into the others.
OFA_INLINE Angle direction(const WadBlob& wad, Fixed x, Fixed y) {
    if (x == 0 && y == 0) return 0;
    const uint32_t size_x = uint32_t(magnitude(x)), size_y = uint32_t(magnitude(y));
    const bool flat = size_x > size_y;
    const uint32_t numerator = flat ? size_y : size_x, denominator = flat ? size_x : size_y;
    const Angle angle = at(wad, wad.tan_to_angle)[slope_index(numerator, denominator)];
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
    // a distance that wraps around can leave the table
    const uint32_t ratio = longer ? uint32_t(fixed_div(shorter, longer)) >> 5 : 0;
    const Angle angle = at(wad, wad.tan_to_angle)[ratio < 2048 ? ratio : 2048] + ANGLE_90;
    return fixed_div(longer, fine_sine(wad, angle));
}

// Whether (x, y) lies on the right side of the line through (x0, y0) with direction (dx, dy).
OFA_INLINE bool is_right_of(Fixed x, Fixed y, Fixed x0, Fixed y0, Fixed dx, Fixed dy) {
    if (!dx) return x <= x0 ? dy <= 0 : dy >= 0;
    if (!dy) return y <= y0 ? dx >= 0 : dx <= 0;
    const Fixed to_x = wrap_sub(x, x0), to_y = wrap_sub(y, y0);
    if ((dy ^ dx ^ to_x ^ to_y) < 0) return (dy ^ to_x) >= 0;
    return fixed_mul(to_y, dx >> FIXED_BITS) < fixed_mul(dy >> FIXED_BITS, to_x);
}

}  // namespace render
}  // namespace doom
