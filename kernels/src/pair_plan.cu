// The plan of a pair tree over a slab of sorted entries: cuzk/pair_plan.cuh has the terms.
//
// Every entry: a grid of one dimension; no dynamic shared memory. offsets (buckets + 1): positions in `entries`, not
// descending. Whatever these and the arrays between the entries hold, nothing outside the arrays is touched.
// slabs (slab_count), as cuzk_pair_plan_slabs wrote them; `slab` is the index of the one meant. item_offsets
// (steps, buckets): row s has, for each bucket of the slab, how many items of step s the buckets before it have. totals
// (steps): all items of each step. existing is 0 or 1: whether sums are added to.

#include "cuzk/pair_plan.cuh"
#include "cuzk/shared.cuh"

using cuzk::u32;
using cuzk::u64;
namespace plan = cuzk::pair_plan;

namespace {

// Buckets that one block of the sums and the offsets looks at, and its threads.
constexpr u32 tile_threads = 256;
constexpr u32 tile_buckets = 4 * tile_threads;
// Pairs that one block of the expansion writes.
constexpr u32 expand_threads = 256;
constexpr u32 expand_pairs = 8 * expand_threads;

// The sum of `value` over the threads before this one; `total` that over all. Blocks of whole warps; `warp_sums` has 33.
CUZK_FN u32 block_scan(u32 value, u32* warp_sums, u32& total) {
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    const u32 warps = blockDim.x / 32;
    u32 sum = value;
    CUZK_UNROLL
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31) {
        warp_sums[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        const u32 mine = lane < warps ? warp_sums[lane] : 0;
        u32 scanned = mine;
        CUZK_UNROLL
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 other = __shfl_up_sync(0xffffffffu, scanned, step);
            scanned += lane >= step ? other : 0;
        }
        if (lane < warps) {
            warp_sums[lane] = scanned - mine;
        }
        if (lane == 31) {
            warp_sums[32] = scanned;
        }
    }
    __syncthreads();
    const u32 before = warp_sums[warp] + sum - value;
    total = warp_sums[32];
    __syncthreads();
    return before;
}

// The first index in [0, count] whose offset exceeds `position`, count if none does.
CUZK_FN u32 upper_bound(const u32* offsets, u32 count, u64 position) {
    u32 low = 0;
    u32 high = count;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (offsets[middle] <= position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

CUZK_FN u32 at_most(u32 a, u32 b) { return a < b ? a : b; }

}  // namespace

// Where the slabs are: slab i has the entries offsets[0] + i slab_entries and on, `slab_entries` of them or what is left, and
// those buckets that have any of them, with the empty ones between. Any number of threads; entry_count bounds the offsets.
extern "C" __global__ void __launch_bounds__(64) cuzk_pair_plan_slabs(
    const u32* offsets, u32 buckets, u32 slab_entries, u32 slab_count, u32 entry_count, plan::Slab* slabs) {
    const u32 first = at_most(offsets[0], entry_count);
    const u32 end = at_most(offsets[buckets], entry_count);
    for (u32 i = cuzk::grid_first(); i < slab_count; i += cuzk::grid_stride()) {
        const u64 begin = first + static_cast<u64>(i) * slab_entries;
        plan::Slab slab = {0, 0, 0, 0};
        if (begin < end) {
            slab.first_entry = static_cast<u32>(begin);
            slab.end_entry = end - begin > slab_entries ? static_cast<u32>(begin) + slab_entries : end;
            const u32 above = upper_bound(offsets, buckets, begin);
            slab.first_bucket = above == 0 ? 0 : above - 1;
            const u32 beyond = upper_bound(offsets, buckets, slab.end_entry - 1);
            slab.buckets = beyond > slab.first_bucket ? beyond - slab.first_bucket : 0;
        }
        slabs[i] = slab;
    }
}

// tile_sums[step][tile] = the items of the step in buckets tile * 1024 to tile * 1024 + 1023 of the slab. Blocks of 256,
// one a tile; tile_sums (steps, tiles), tiles = gridDim.x.
extern "C" __global__ void __launch_bounds__(256) cuzk_pair_plan_sums(
    const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab, u32 existing, u32 rounds, u32 steps, u32* tile_sums) {
    CUZK_SHARED(u32, warp_sums, 33);
    const plan::Slab here = plan::slab_of(slabs, slab, buckets);
    const u32 first = blockIdx.x * tile_buckets;
    if (first >= here.buckets) {
        for (u32 step = threadIdx.x; step < steps; step += tile_threads) {
            tile_sums[step * gridDim.x + blockIdx.x] = 0;
        }
        return;
    }
    plan::Bucket mine[4];
    CUZK_UNROLL
    for (u32 i = 0; i < 4; i++) {
        const u32 local = first + i * tile_threads + threadIdx.x;
        mine[i] = local < here.buckets ? plan::bucket_of(offsets, here, local, existing) : plan::Bucket{0, 0, 0, 0};
    }
    for (u32 step = 0; step < steps; step++) {
        u32 items = 0;
        CUZK_UNROLL
        for (u32 i = 0; i < 4; i++) {
            items += plan::items_of(mine[i], step, rounds);
        }
        u32 total;
        block_scan(items, warp_sums, total);
        if (threadIdx.x == 0) {
            tile_sums[step * gridDim.x + blockIdx.x] = total;
        }
    }
}

// Each row of tile_sums becomes the sums before each tile, and its total goes to `totals`. One block of 256 a step;
// tile_sums (gridDim.x, tiles).
extern "C" __global__ void __launch_bounds__(256) cuzk_pair_plan_scan(u32* tile_sums, u32 tiles, u32* totals) {
    CUZK_SHARED(u32, warp_sums, 33);
    u32* row = tile_sums + static_cast<u64>(blockIdx.x) * tiles;
    u32 before = 0;
    for (u32 first = 0; first < tiles; first += 8 * tile_threads) {
        u32 values[8];
        u32 sum = 0;
        CUZK_UNROLL
        for (u32 k = 0; k < 8; k++) {
            const u32 i = first + 8 * threadIdx.x + k;
            values[k] = i < tiles ? row[i] : 0;
            sum += values[k];
        }
        u32 total;
        u32 mine = before + block_scan(sum, warp_sums, total);
        CUZK_UNROLL
        for (u32 k = 0; k < 8; k++) {
            const u32 i = first + 8 * threadIdx.x + k;
            if (i < tiles) {
                row[i] = mine;
            }
            mine += values[k];
        }
        before += total;
    }
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = before;
    }
}

// item_offsets, from what the two entries above left in tile_sums. Shape as there; item_offsets (steps, buckets).
extern "C" __global__ void __launch_bounds__(256) cuzk_pair_plan_offsets(
    const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab, u32 existing, u32 rounds, u32 steps, const u32* tile_sums,
    u32* item_offsets) {
    CUZK_SHARED(u32, warp_sums, 33);
    const plan::Slab here = plan::slab_of(slabs, slab, buckets);
    const u32 first = blockIdx.x * tile_buckets;
    if (first >= here.buckets) {
        return;
    }
    plan::Bucket mine[4];
    CUZK_UNROLL
    for (u32 i = 0; i < 4; i++) {
        const u32 local = first + 4 * threadIdx.x + i;
        mine[i] = local < here.buckets ? plan::bucket_of(offsets, here, local, existing) : plan::Bucket{0, 0, 0, 0};
    }
    for (u32 step = 0; step < steps; step++) {
        u32 items[4];
        u32 sum = 0;
        CUZK_UNROLL
        for (u32 i = 0; i < 4; i++) {
            items[i] = plan::items_of(mine[i], step, rounds);
            sum += items[i];
        }
        u32 total;
        u32 before = block_scan(sum, warp_sums, total) + tile_sums[step * gridDim.x + blockIdx.x];
        u32* row = item_offsets + static_cast<u64>(step) * buckets;
        CUZK_UNROLL
        for (u32 i = 0; i < 4; i++) {
            const u32 local = first + 4 * threadIdx.x + i;
            if (local < here.buckets) {
                row[local] = before;
            }
            before += items[i];
        }
    }
}

// The pairs of one round. pairs (capacity): the first operand in the low word, the second in the high one. In the round after level
// 0 they are entries, and sign bits stand where they do there; later they are nodes, numbers of pairs of the round before.
// owners (capacity) has what a special pair needs besides. Blocks of 256, one for each 2048 pairs of the capacity.
// entries is read within entry_count only, and nodes are below node_capacity, which is at least 1.
//
// Which bucket a pair is of: each bucket of the block's range marks the place of its first pair, and the pairs after it take
// the last mark before them. A bucket without pairs marks the place of the next one's, and loses.
extern "C" __global__ void __launch_bounds__(256) cuzk_pair_plan_expand(
    const u32* entries, u32 entry_count, const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab, u32 existing,
    u32 level, const u32* item_offsets, const u32* totals, u64* pairs, u32* owners, u32 capacity, u32 node_capacity) {
    CUZK_SHARED(u32, range, 2);
    CUZK_SHARED(u32, marks, expand_pairs);
    CUZK_SHARED(u32, warp_last, 33);
    const plan::Slab here = plan::slab_of(slabs, slab, buckets);
    const u32 count = at_most(totals[level], capacity);
    const u32 first = blockIdx.x * expand_pairs;
    if (first >= count || here.buckets == 0) {
        return;
    }
    const u32 last = at_most(first + expand_pairs, count) - 1;
    const u32* row = item_offsets + static_cast<u64>(level) * buckets;
    for (u32 k = threadIdx.x; k < expand_pairs; k += expand_threads) {
        marks[k] = 0;
    }
    // The owners of the first pair and of the last one, by half of the block each: as many places are looked at together as
    // a half has threads, since each look takes as long as a thousand instructions.
    constexpr u32 half = expand_threads / 2;
    const u32 rank = threadIdx.x % half;
    const u32 item = threadIdx.x < half ? first : last;
    u32 owner = 0;
    u32 span = here.buckets;
    while (span > 1) {
        const u32 step = (span + half - 1) / half;
        const u32 index = owner + rank * step;
        const bool is_not_above = rank * step < span && index < here.buckets && row[index] <= item;
        const u32 votes = __ballot_sync(0xffffffffu, is_not_above);
        if (threadIdx.x % 32 == 0) {
            warp_last[threadIdx.x / 32] = static_cast<u32>(__popc(votes));
        }
        __syncthreads();
        u32 found = 0;
        CUZK_UNROLL
        for (u32 w = 0; w < half / 32; w++) {
            found += warp_last[threadIdx.x / half * (half / 32) + w];
        }
        __syncthreads();
        owner += found == 0 ? 0 : (found - 1) * step;
        span = step;
    }
    if (rank == 0) {
        range[threadIdx.x / half] = owner;
    }
    __syncthreads();
    const u32 first_owner = range[0];
    const u32 last_owner = range[1];
    // Marks are owners less the first, plus 1.
    for (u32 local = first_owner + threadIdx.x; local <= last_owner; local += expand_threads) {
        const u32 begin = row[local];
        const u32 place = begin > first ? begin - first : 0;
        if (place < expand_pairs) {
            atomicMax(&marks[place], local - first_owner + 1);
        }
    }
    __syncthreads();
    // The greatest mark up to each place: eight neighbours a thread.
    constexpr u32 each = expand_pairs / expand_threads;
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    u32 mine[each];
    u32 greatest = 0;
    CUZK_UNROLL
    for (u32 k = 0; k < each; k++) {
        const u32 mark = marks[threadIdx.x * each + k];
        greatest = mark > greatest ? mark : greatest;
        mine[k] = greatest;
    }
    u32 scanned = greatest;
    CUZK_UNROLL
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, scanned, step);
        scanned = lane >= step && other > scanned ? other : scanned;
    }
    if (lane == 31) {
        warp_last[warp] = scanned;
    }
    u32 before = __shfl_up_sync(0xffffffffu, scanned, 1);
    before = lane == 0 ? 0 : before;
    __syncthreads();
    for (u32 w = 0; w < warp; w++) {
        before = warp_last[w] > before ? warp_last[w] : before;
    }
    CUZK_UNROLL
    for (u32 k = 0; k < each; k++) {
        marks[threadIdx.x * each + k] = mine[k] > before ? mine[k] : before;
    }
    __syncthreads();
    for (u32 j = first + threadIdx.x; j <= last; j += expand_threads) {
        const u32 mark = marks[j - first];
        const u32 local = first_owner + (mark == 0 ? 0 : mark - 1);
        const plan::Bucket bucket = plan::bucket_of(offsets, here, local, existing);
        const u32 i = j - row[local];
        const u32 nodes = plan::nodes_at(bucket, level);
        const bool with_home = 2 * i + 1 >= nodes;
        const bool goes_home = i + 1 == plan::points_at(bucket, level) / 2 && plan::last_sum_goes_home(bucket, level);
        u32 a;
        u32 b = 0;
        if (level == 0) {
            const u32 at = bucket.first_entry + 2 * i;
            a = at < entry_count ? entries[at] : plan::index_mask;
            if (!with_home) {
                b = at + 1 < entry_count ? entries[at + 1] : plan::index_mask;
            }
            // Indices have 30 bits: none that is larger names a base.
            a = (a & plan::special_bit) != 0 ? plan::index_mask : a;
            b = (b & plan::special_bit) != 0 ? plan::index_mask : b;
        } else {
            a = at_most((row - buckets)[local] + 2 * i, node_capacity - 1);
            b = at_most(a + 1, node_capacity - 1);
        }
        if (with_home || goes_home) {
            a |= plan::special_bit;
            owners[j] = bucket.home | (with_home ? plan::second_is_home : 0) | (goes_home ? plan::result_goes_home : 0);
        }
        pairs[j] = static_cast<u64>(b) << 32 | a;
    }
}
