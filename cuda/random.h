// Random numbers without state: the same key and counter give the same number on every machine.
#pragma once

#include "platform/platform.h"

namespace ofa {

// Two rounds of the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
OFA_INLINE uint64_t mix_bits(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

OFA_INLINE uint64_t random_bits(uint64_t key, uint64_t counter) { return mix_bits(mix_bits(key) ^ counter); }

// Uniform in [0, 1).
OFA_INLINE double random_unit(uint64_t key, uint64_t counter) {
    return double(random_bits(key, counter) >> 11) * 0x1p-53;
}

}  // namespace ofa
