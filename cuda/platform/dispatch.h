// Which bodies a block runs: those of ops/ or, where matrices are in bf16, of ops/sm90/ and ops/sm80/.
#pragma once

#if defined(OFA_SM90)
#include "ops/sm90/dispatch.cuh"
#elif defined(OFA_SM80)
#include "ops/sm80/dispatch.cuh"
#else
#include "ofa_dispatch.h"
#endif
