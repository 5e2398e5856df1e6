// Kernels that are wrong, each in its own way: what the emulator must notice. No card sees them.

#include "cuzk/shared.cuh"

using cuzk::u32;

// Half of the block waits at one barrier, half at another.
extern "C" __global__ void cuzk_faulty_two_barriers(u32* out) {
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        __syncthreads();
        out[threadIdx.x] = 2;
    }
}

// The last thread leaves before the barrier.
extern "C" __global__ void cuzk_faulty_early_return(u32* out) {
    if (threadIdx.x == blockDim.x - 1) {
        return;
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}

// The mask names all lanes, half of which do not come.
extern "C" __global__ void cuzk_faulty_missing_lanes(u32* out) {
    if (threadIdx.x % 32 < 16) {
        out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, threadIdx.x, 1);
    }
}

// Lanes of one mask in two different operations.
extern "C" __global__ void cuzk_faulty_two_operations(u32* out) {
    if (threadIdx.x % 2 == 0) {
        out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
    } else {
        out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);
    }
}

// The first warp waits for the whole block, which waits for the first warp.
extern "C" __global__ void cuzk_faulty_deadlock(u32* out) {
    if (threadIdx.x == 0) {
        __syncthreads();
    } else {
        if (threadIdx.x < 32) {
            __syncwarp(0xffffffffu);
        }
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

// Takes the value of a lane outside the mask.
extern "C" __global__ void cuzk_faulty_foreign_lane(u32* out) {
    if (threadIdx.x % 32 < 16) {
        out[threadIdx.x] = __shfl_sync(0x0000ffffu, threadIdx.x, 20);
    }
}

// Reads shared memory that nobody has written.
extern "C" __global__ void cuzk_faulty_unwritten(u32* out) {
    CUZK_SHARED(u32, words, 32);
    out[threadIdx.x] = words[threadIdx.x];
}

// Writes one word past shared memory: for the address sanitizer.
extern "C" __global__ void cuzk_faulty_past_the_end(u32* out) {
    CUZK_SHARED(u32, words, 32);
    u32* const all = words;
    all[threadIdx.x + 1] = threadIdx.x;
    out[threadIdx.x] = all[threadIdx.x];
}

// Neighbours read what their neighbours write, with no barrier between: for the thread sanitizer.
extern "C" __global__ void cuzk_faulty_race(u32* out) {
    CUZK_SHARED(u32, words, 64);
    words[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = words[(threadIdx.x + 1) % 64];
}

// Two blocks add to one word without an atomic: for the thread sanitizer.
extern "C" __global__ void cuzk_faulty_block_race(u32* out) {
    if (threadIdx.x == blockIdx.x) {
        out[0] += 1;
    }
}

// Shifts by the width of the type: for the undefined-behaviour sanitizer.
extern "C" __global__ void cuzk_faulty_shift(u32* out) {
    out[threadIdx.x] = 1u << (threadIdx.x + 32);
}

// Gives up.
extern "C" __global__ void cuzk_faulty_trap(u32* out) {
    if (threadIdx.x == 7) {
        __trap();
    }
    out[threadIdx.x] = 1;
}
