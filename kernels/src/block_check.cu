// What kernels take for granted of a block: barriers, shared memory, warp operations, atomics. Small
// kernels whose results are known, run on every card by the self-test and on the emulator by the tests.
//
// All entries: blocks of 256 threads, any number of blocks.

#include "cuzk/shared.cuh"

using cuzk::u32;
using cuzk::u64;

namespace {

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 WHOLE_WARP = 0xffffffffu;

}  // namespace

// sums[block] = the sum of the block's 256 values, by a tree in shared memory.
// values: 256 a block; sums: one a block. They do not alias.
extern "C" __global__ void __launch_bounds__(THREADS) cuzk_block_sum(const u32* values, u32* sums) {
    CUZK_SHARED(u32, partial, THREADS);
    partial[threadIdx.x] = values[cuzk::grid_first()];
    __syncthreads();
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = partial[0];
    }
}

// prefix[i] = the sum of values[j] for j <= i within i's block, by shuffles within warps and shared
// memory between them. values, prefix: 256 a block; they may be the same array.
extern "C" __global__ void __launch_bounds__(THREADS) cuzk_block_scan(const u64* values, u64* prefix) {
    CUZK_SHARED(u64, totals, WARPS);
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    u64 sum = values[cuzk::grid_first()];
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u64 below = __shfl_up_sync(WHOLE_WARP, sum, distance);
        sum += lane >= distance ? below : 0;
    }
    if (lane == 31) {
        totals[warp] = sum;
    }
    __syncthreads();
    for (u32 before = 0; before < warp; ++before) {
        sum += totals[before];
    }
    prefix[cuzk::grid_first()] = sum;
}

// Of each warp: votes[0] the lanes with an odd value, votes[1] how many threads of the block have one,
// votes[2] the exclusive or of all values, votes[3] the value of lane 5, by lane 0.
// values: 256 a block; votes: (warps, 4). They do not alias.
extern "C" __global__ void __launch_bounds__(THREADS) cuzk_block_votes(const u32* values, u32* votes) {
    const u32 value = values[cuzk::grid_first()];
    const u32 odd = __ballot_sync(WHOLE_WARP, value & 1);
    const u32 odd_in_block = static_cast<u32>(__syncthreads_count(value & 1));
    u32 folded = value;
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        folded ^= __shfl_xor_sync(WHOLE_WARP, folded, lanes);
    }
    const u32 fifth = __shfl_sync(WHOLE_WARP, value, 5);
    if (threadIdx.x % 32 == 0) {
        u32* const mine = votes + cuzk::grid_first() / 32 * 4;
        mine[0] = odd;
        mine[1] = odd_in_block;
        mine[2] = folded;
        mine[3] = fifth;
    }
}

// counts[v % 16] += 1 for each value v: counted in shared memory first, then added to the array that
// all blocks share. The launch gives 64 bytes of shared memory.
// values: 256 a block; counts: 16, holding what the sum begins with. They do not alias.
extern "C" __global__ void __launch_bounds__(THREADS) cuzk_block_histogram(const u32* values, u32* counts) {
    CUZK_SHARED_DYNAMIC(u32, mine);
    if (threadIdx.x < 16) {
        mine[threadIdx.x] = 0;
    }
    __syncthreads();
    atomicAdd(&mine[values[cuzk::grid_first()] % 16], 1u);
    __syncthreads();
    if (threadIdx.x < 16 && mine[threadIdx.x] != 0) {
        atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
    }
}
