// Addresses as instructions on shared memory take them.
#pragma once

#include <stdint.h>

namespace ofa::sm90 {

OFA_INLINE uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

}  // namespace ofa::sm90
