// For kernel entries: the thread's place in its grid. nvcc has it built in; for the host compiler the emulator
// supplies `emulator.hpp` on the include path, with __global__, __launch_bounds__, threadIdx and their kin.
#pragma once

#include "cuzk/platform.cuh"

#if !defined(__CUDACC__)
#include "emulator.hpp"
#endif

namespace cuzk {

// First index and stride of a loop in which the whole grid walks over an array.
CUZK_FN u32 grid_first() { return blockIdx.x * blockDim.x + threadIdx.x; }
CUZK_FN u32 grid_stride() { return gridDim.x * blockDim.x; }

}  // namespace cuzk
