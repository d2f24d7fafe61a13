// Elementary functions of floats that a compiler turns into vector code inside plain loops, on every target.
// No branches, no tables, no library calls; a NaN stays a NaN, so that a run that diverges shows it.
#pragma once

#include "platform/platform.h"

namespace ofa::math {

OFA_INLINE uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

OFA_INLINE float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Adding it moves the integer nearest to a float below 2^22 in magnitude into the low bits of the mantissa.
constexpr float ROUND_TO_INTEGER = 12582912.0f;  // 1.5 * 2^23

// x limited to [-|LOW|, HIGH], given as the bit patterns of two floats, LOW's with the sign. On the bit patterns, because
// compilers turn integer minima into single instructions, and floats' into branches: as unsigned numbers the floats below
// LOW are the largest, as signed numbers those above HIGH. Some number for a NaN.
template <uint32_t LOW, int32_t HIGH>
OFA_INLINE float limit(float x) {
    uint32_t bits = bits_of(x);
    bits = bits < LOW ? bits : LOW;
    int32_t signed_bits = int32_t(bits);
    signed_bits = signed_bits < HIGH ? signed_bits : HIGH;
    return float_of(uint32_t(signed_bits));
}

// e^x with a relative error below 1.5e-7, for x limited to [-87.3, 87], where the result and its reciprocal
// are normal numbers (arithmetic on subnormal ones is a hundred times slower); a NaN for infinities and NaNs.
// e^x = 2^n e^r, |r| <= ln(2) / 2; e^r is 1 + r + r^2 q(r) with the q of degree 4 that has the smallest
// largest relative error.
OFA_INLINE float exp(float x) {
    const float limited = limit<0xC2AE999Au, 0x42AE0000>(x);  // -87.3, 87
    const float shifted = limited * 1.44269504f + ROUND_TO_INTEGER;
    const float n = shifted - ROUND_TO_INTEGER;
    // ln 2 in two parts: n times the first is exact.
    const float r = (limited - n * 0.693359375f) + n * 2.12194440e-4f;
    float q = 1.381459878757596e-3f;
    q = q * r + 8.368716575205326e-3f;
    q = q * r + 4.166838899254799e-2f;
    q = q * r + 1.666652113199234e-1f;
    q = q * r + 4.999999403953552e-1f;
    const float power = float_of((bits_of(shifted) << 23) + 0x3F800000u);
    const float nan_or_zero = (x - limited) * 0.0f;
    return ((q * r) * r + r) * power + (power + nan_or_zero);
}

// ln x with an error below 1e-7 (1 + |ln x|), for positive normal x; a NaN for infinities and NaNs.
// x = 2^e m, m from sqrt(1/2) to sqrt(2), and ln m = 2 artanh s with s = (m - 1) / (m + 1), as a series in s.
OFA_INLINE float log(float x) {
    constexpr uint32_t SQRT_HALF = 0x3F3504F3u;
    const int32_t e = int32_t(bits_of(x) - SQRT_HALF) >> 23;
    const float m = float_of(bits_of(x) - (uint32_t(e) << 23));
    const float s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    const float series = (((1.0f / 9 * s2 + 1.0f / 7) * s2 + 1.0f / 5) * s2 + 1.0f / 3) * s2;
    const float nan_or_zero = x * 0.0f;
    // ln 2 in two parts: e times the first is exact.
    return float(e) * 0.693359375f + ((2.0f * s + 2.0f * s * series) + (float(e) * -2.12194440e-4f + nan_or_zero));
}

// GELU in its tanh form (Hendrycks and Gimpel, arXiv:1606.08415): x (1 + tanh z) / 2 with
// z = sqrt(2 / pi) (x + 0.044715 x^3), and (1 + tanh z) / 2 = 1 / (1 + exp(-2 z)).
constexpr float GELU_SLOPE = 1.5957691216f;  // 2 sqrt(2 / pi)
constexpr float GELU_CUBIC = 0.044715f;

// exp(-2 z) for the z of GELU, with its exponent limited to what has a normal reciprocal; any number for a NaN. It is
// 2^y with y = n + r, |r| <= 1/2, and 2^r the polynomial of degree 5 with the smallest largest relative error.
OFA_INLINE float gelu_exponential(float x) {
    constexpr float LOG2_E = 1.44269504f;
    const float y = limit<0xC2FA0000u, 0x42FA0000>(  // -125, 125
        x * (-GELU_SLOPE * LOG2_E + -GELU_SLOPE * LOG2_E * GELU_CUBIC * (x * x)));
    const float shifted = y + ROUND_TO_INTEGER;
    const float r = y - (shifted - ROUND_TO_INTEGER);
    float power = 1.327647203e-3f;
    power = power * r + 9.67554148e-3f;
    power = power * r + 5.550713275e-2f;
    power = power * r + 2.402211972e-1f;
    power = power * r + 6.931469671e-1f;
    power = power * r + 1.000000072f;
    return float_of(bits_of(power) + (bits_of(shifted) << 23));
}

OFA_INLINE float gelu(float x) { return x / (1.0f + gelu_exponential(x)); }

// d gelu(x) / dx. With e = exp(-2 z) and s = 1 / (1 + e), 1 - s is e s, without cancellation.
OFA_INLINE float gelu_derivative(float x) {
    const float e = gelu_exponential(x);
    const float s = 1.0f / (1.0f + e);
    const float inner = GELU_SLOPE + 3.0f * GELU_SLOPE * GELU_CUBIC * (x * x);
    return s + (x * inner) * (e * s) * s;
}

struct SineCosine {
    float sine, cosine;
};

// Sine and cosine of an angle in turns (1 turn = 2 pi), |turns| < 2^50, with an absolute error below 2e-7.
// The whole turns are taken off in double; what is left is cut into quarters and a remainder of at most an
// eighth.
OFA_INLINE SineCosine sine_cosine_of_turns(double turns) {
    constexpr double ROUND_TO_INTEGER_DOUBLE = 6755399441055744.0;  // 1.5 * 2^52
    const double whole = (turns + ROUND_TO_INTEGER_DOUBLE) - ROUND_TO_INTEGER_DOUBLE;
    const float quarters = float(turns - whole) * 4.0f;
    const float shifted = quarters + ROUND_TO_INTEGER;
    const uint32_t quadrant = bits_of(shifted) & 3u;
    const float r = (quarters - (shifted - ROUND_TO_INTEGER)) * 1.57079633f;
    const float r2 = r * r;
    // The polynomials of these degrees with the smallest largest errors.
    const float sine = ((-1.94955676e-4f * r2 + 8.331978124e-3f) * r2 - 0.166666507f) * (r2 * r) + r;
    const float cosine =
        ((2.443837943e-5f * r2 - 1.388736691e-3f) * r2 + 4.166664685e-2f) * (r2 * r2) + (1.0f - 0.5f * r2);
    const float s = (quadrant & 1u) ? cosine : sine, c = (quadrant & 1u) ? sine : cosine;
    return {(quadrant & 2u) ? -s : s, ((quadrant + 1u) & 2u) ? -c : c};
}

}  // namespace ofa::math
