// How run_block is started: as a GPU kernel, or as one thread per virtual SM.
#pragma once

#if defined(__CUDACC__)
#include "platform/sm90_entry.cuh"
#else
#include "platform/host_entry.h"
#endif
