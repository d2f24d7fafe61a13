// Which bodies a block runs: on the CPU those of ops/, on a GPU those of ops/sm90/ and, where there is none, of ops/.
#pragma once

#if defined(__CUDACC__)
#include "ops/sm90/dispatch.cuh"
#else
#include "ofa_dispatch.h"
#endif
