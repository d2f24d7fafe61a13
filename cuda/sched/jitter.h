// Random delays, so that tests see schedules that an idle machine would never produce.
#pragma once

#include "random.h"
#include "task.h"

namespace ofa {

OFA_INLINE void jitter(const Launch& launch, uint32_t sm) {
    if (!HAS_JITTER) return;
    const uint64_t seed = load_relaxed(&launch.control->jitter_seed);
    if (seed == 0) return;
    const uint64_t bits = random_bits(seed + sm, now_ns());
    if (bits % 4 == 0) sleep_ns((bits >> 32) % 300000);
}

}  // namespace ofa
