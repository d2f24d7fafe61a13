// How run_block is started: as a GPU kernel, or as one thread per virtual SM.
#pragma once

#if defined(OFA_SM90)
#include "platform/sm90_entry.cuh"
#elif defined(OFA_SM80)
#include "platform/sm80_entry.cuh"
#elif defined(__CUDACC__)
#include "platform/device_entry.cuh"
#else
#include "platform/host_entry.h"
#endif

#if defined(__CUDACC__)
#include "platform/device_facts.cuh"
#endif
