// The machine under the kernel. What is above this folder is written once, against what both files define:
// function decorations, Block, atomics with their memory orders, a nanosecond clock, and sleeping.
#pragma once

#if defined(__CUDACC__)
#include "platform/device.cuh"
#else
#include "platform/host.h"
#endif
