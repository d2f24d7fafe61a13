// Which bodies a block runs: those of ops/, on Hopper those of ops/sm90/ and, where there is none, of ops/.
#pragma once

#if defined(OFA_SM90)
#include "ops/sm90/dispatch.cuh"
#else
#include "ofa_dispatch.h"
#endif
