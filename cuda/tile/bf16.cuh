// Matrices in bf16: pairs in a register, the lower column in the lower half.
#pragma once

#include <stdint.h>

namespace ofa {

using bf16 = uint16_t;

OFA_INLINE uint32_t pack(float low, float high) {
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
OFA_INLINE float low_of(uint32_t both) { return __uint_as_float(both << 16); }
OFA_INLINE float high_of(uint32_t both) { return __uint_as_float(both & 0xFFFF0000u); }
OFA_INLINE float float_of(bf16 value) { return __uint_as_float(uint32_t(value) << 16); }

// Eight neighbours, one load of 16 bytes.
struct Eight {
    float at[8];
};
OFA_INLINE Eight unpack(uint4 words) {
    return {{low_of(words.x), high_of(words.x), low_of(words.y), high_of(words.y), low_of(words.z), high_of(words.z),
             low_of(words.w), high_of(words.w)}};
}
OFA_INLINE uint4 pack(const Eight& v) {
    return make_uint4(pack(v.at[0], v.at[1]), pack(v.at[2], v.at[3]), pack(v.at[4], v.at[5]), pack(v.at[6], v.at[7]));
}

OFA_INLINE uint4 load_words(const void* from) { return *reinterpret_cast<const uint4*>(from); }
OFA_INLINE void store_words(void* to, uint4 words) { *reinterpret_cast<uint4*>(to) = words; }

// e^x by the special function unit, 2 ulp of an f4.
OFA_INLINE float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
OFA_INLINE float square_root_of(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
OFA_INLINE float reciprocal_of(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
OFA_INLINE float tanh_of(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;

}  // namespace ofa
