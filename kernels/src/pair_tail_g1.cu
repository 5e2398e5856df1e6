// What surrounds the rounds of pair trees in G1: cuzk/pair_tail.cuh.
//
// Every entry: a grid of one dimension of any number of blocks of at most 128 threads; no dynamic shared memory. The arrays
// are those of cuzk_pair_plan (pair_plan.cu) and of the rounds (pair_tree_g1.cu); border is that of the slab, (1), and
// `nodes` has `node_stride` places, at least 1. Homes and sums are canonical.

#include "cuzk/pair_tail.cuh"

using cuzk::Chunk;
using cuzk::u32;
using Point = cuzk::G1Affine;
using Sum = cuzk::G1Xyzz;
namespace plan = cuzk::pair_plan;
namespace tail = cuzk::pair_tail;

namespace {

// One sum a thread; in registers it would not fit beside the operands of a product.
struct Slot {
    Sum sum;
    // 224 bytes apart, 16-byte accesses of eight threads meet each bank at most twice.
    u32 padding[8];
};

}  // namespace

// sums[i] = infinity where bucket i has no entry; sums (buckets)
extern "C" __global__ void __launch_bounds__(128)
    cuzk_pair_tail_g1_clear_empty(const u32* offsets, u32 buckets, Point* sums) {
    tail::clear_empty(offsets, buckets, sums);
}

// The last entry of a bucket goes home where that comes before the first round.
extern "C" __global__ void __launch_bounds__(128) cuzk_pair_tail_g1_wait_bases(
    const Point* points, u32 point_count, const u32* entries, u32 entry_count, const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab,
    u32 existing, Point* sums, Point* border) {
    tail::wait_bases(points, point_count, entries, entry_count, offsets, plan::slab_of(slabs, slab, buckets), existing, sums, border);
}

// The first stage of the tail: min(totals[rounds], capacity) chunks of nodes; partial (capacity).
extern "C" __global__ void __launch_bounds__(128) cuzk_pair_tail_g1_sum_nodes(
    const Chunk* nodes, u32 node_stride, const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab, u32 existing, u32 rounds,
    const u32* item_offsets, const u32* totals, Point* sums, Point* border, Sum* partial, u32 capacity) {
    CUZK_SHARED(Slot, slots, 128);
    const u32 count = totals[rounds] < capacity ? totals[rounds] : capacity;
    tail::sum_nodes(
        slots[threadIdx.x].sum, nodes, node_stride, offsets, plan::slab_of(slabs, slab, buckets), existing, rounds, item_offsets, buckets, count, sums,
        border, partial);
}

// A later stage, from 2: min(totals[rounds + stage - 1], capacity) chunks of `from` (from_count); partial (capacity).
extern "C" __global__ void __launch_bounds__(128) cuzk_pair_tail_g1_sum_sums(
    const Sum* from, u32 from_count, const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab, u32 existing, u32 rounds, u32 stage,
    const u32* item_offsets, const u32* totals, Point* sums, Point* border, Sum* partial, u32 capacity) {
    CUZK_SHARED(Slot, slots, 128);
    const u32 total = totals[rounds + stage - 1];
    tail::sum_sums(
        slots[threadIdx.x].sum, from, from_count, offsets, plan::slab_of(slabs, slab, buckets), existing, rounds, stage, item_offsets, buckets,
        total < capacity ? total : capacity, sums, border, partial);
}

// sums of buckets that several slabs share; slabs, borders (slab_count).
extern "C" __global__ void __launch_bounds__(128) cuzk_pair_tail_g1_add_borders(
    const u32* offsets, u32 buckets, const plan::Slab* slabs, u32 slab_count, const Point* borders, Point* sums) {
    CUZK_SHARED(Slot, slots, 128);
    tail::add_borders(slots[threadIdx.x].sum, offsets, buckets, slabs, slab_count, borders, sums);
}
