// Sums and counts among the threads of a block.
#pragma once

#include "cuzk/shared.cuh"

namespace cuzk {

inline constexpr u32 whole_warp = 0xffffffffu;

// The sum of the values of the threads before this one, and of all of them. Every thread comes; `totals` has one word a
// warp, and is free again when the call returns.
CUZK_FN u32 block_exclusive_sum(u32 value, u32* totals, u32& all) {
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    const u32 warps = blockDim.x / 32;
    u32 sum = value;
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 below = __shfl_up_sync(whole_warp, sum, distance);
        sum += lane >= distance ? below : 0;
    }
    if (lane == 31) {
        totals[warp] = sum;
    }
    __syncthreads();
    u32 before = 0;
    all = 0;
    for (u32 other = 0; other < warps; ++other) {
        const u32 total = totals[other];
        before += other < warp ? total : 0;
        all += total;
    }
    __syncthreads();
    return before + sum - value;
}

// words[i] = the sum of those before it, for i < count, by the whole block; the sum of all. As above.
CUZK_FN u32 block_exclusive_sums(u32* words, u32 count, u32* totals) {
    const u32 each = (count + blockDim.x - 1) / blockDim.x;
    const u32 begin = threadIdx.x * each < count ? threadIdx.x * each : count;
    const u32 end = begin + each < count ? begin + each : count;
    u32 sum = 0;
    for (u32 i = begin; i < end; ++i) {
        sum += words[i];
    }
    u32 all;
    u32 running = block_exclusive_sum(sum, totals, all);
    for (u32 i = begin; i < end; ++i) {
        const u32 value = words[i];
        words[i] = running;
        running += value;
    }
    __syncthreads();
    return all;
}

// Whether a key is common in the warp: then count_common() is faster than an addition a lane, which the hardware does one
// after another where addresses are equal. The whole warp comes, and all its lanes get the same answer.
CUZK_FN bool has_common_key(u32 key, bool has_key) {
    const u32 having = __ballot_sync(whole_warp, has_key);
    const u32 leader = having == 0 ? 0 : static_cast<u32>(__ffs(static_cast<int>(having))) - 1;
    const u32 key_of_leader = __shfl_sync(whole_warp, key, static_cast<int>(leader));
    return __popc(__ballot_sync(whole_warp, has_key && key == key_of_leader)) >= 4;
}

// Adds one to counters[key] for each lane with a key, by one addition for each key, and gives what atomicAdd() would.
// The whole warp comes. No key is 0xffffffff.
CUZK_FN u32 count_common(u32* counters, u32 key, bool has_key) {
    const u32 lane = threadIdx.x % 32;
    const u32 peers = __match_any_sync(whole_warp, has_key ? key : 0xffffffffu);
    const u32 first = static_cast<u32>(__ffs(static_cast<int>(peers))) - 1;
    u32 before = 0;
    if (has_key && lane == first) {
        before = atomicAdd(&counters[key], static_cast<u32>(__popc(peers)));
    }
    before = __shfl_sync(whole_warp, before, static_cast<int>(first));
    return before + static_cast<u32>(__popc(peers & ((1u << lane) - 1)));
}

}  // namespace cuzk
