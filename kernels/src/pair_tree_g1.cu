// Rounds of pair trees in G1: what a round is stands in cuzk/pair_tree.cuh, which pairs it has in cuzk/pair_plan.cuh.
//
// Every entry: a grid of one dimension with a block for each tile (forward_bases: any number), of exactly 128 threads (g1_invert: at most 64); no dynamic
// shared memory. The round has min(*total, capacity) pairs. Arrays of components are planes of 16-byte chunks
// (cuzk/pair_lanes.cuh), of which 3 make an array of field elements and 6 one of points:
//   points (point_count)         the table, canonical, infinity (0, 0); indices beyond it are infinity
//   nodes (6, node_stride)      what the round before left at the numbers of its pairs
//   pairs, owners (capacity)     as cuzk_pair_plan_expand wrote them: nodes at or above node_stride, which is at least 1,
//                                count as the last one
//   sums, border                 homes: sums (buckets), border (1)
//   prefixes (3, prefix_stride) prefix_stride >= capacity
//   products (3, product_stride) one for each 128 x per_thread pairs, times 128, at least
//   out (6, out_stride)         out_stride >= capacity; not `nodes`
// g1_backward takes the inverses that g1_invert left in `products`. Points are on the curve; all pairs of them are allowed.

#include "cuzk/pair_tree.cuh"

using cuzk::Chunk;
using cuzk::u32;
using cuzk::u64;
using Lanes = cuzk::G1Lanes;
using Point = cuzk::G1Affine;
namespace tree = cuzk::pair_tree;

extern "C" __global__ void __launch_bounds__(128, 6) cuzk_pair_tree_g1_forward_bases(
    const Point* points, u32 point_count, const u64* pairs, const u32* owners, Point* sums, u32 buckets, Point* border, Chunk* prefixes,
    u32 prefix_stride, Chunk* products, u32 product_stride, const u32* total, u32 capacity, u32 per_thread) {
    tree::forward_bases<Lanes>(
        {pairs, owners, sums, buckets, border}, points, point_count, {prefixes, prefix_stride}, {products, product_stride},
        {total, capacity, per_thread});
}

extern "C" __global__ void __launch_bounds__(128, 7) cuzk_pair_tree_g1_forward_nodes(
    const Chunk* nodes, u32 node_stride, const u64* pairs, const u32* owners, Point* sums, u32 buckets, Point* border, Chunk* prefixes,
    u32 prefix_stride, Chunk* products, u32 product_stride, const u32* total, u32 capacity, u32 per_thread) {
    tree::forward_nodes<Lanes>(
        {pairs, owners, sums, buckets, border}, nodes, node_stride, {prefixes, prefix_stride}, {products, product_stride},
        {total, capacity, per_thread});
}

// products, all that the round has, are inverted in place; scratch is like products.
extern "C" __global__ void __launch_bounds__(64) cuzk_pair_tree_g1_invert(
    Chunk* products, Chunk* scratch, u32 product_stride, const u32* total, u32 capacity, u32 per_thread) {
    const u32 pairs = *total < capacity ? *total : capacity;
    const u32 tile = tree::groups<Lanes> * per_thread;
    const u32 count = (pairs / tile + (pairs % tile != 0 ? 1 : 0)) * tree::groups<Lanes>;
    tree::invert<Lanes::Field>({products, product_stride}, {scratch, product_stride}, count);
}

extern "C" __global__ void __launch_bounds__(128, 4) cuzk_pair_tree_g1_backward_bases(
    const Point* points, u32 point_count, const u64* pairs, const u32* owners, Point* sums, u32 buckets, Point* border, Chunk* prefixes,
    u32 prefix_stride, Chunk* products, u32 product_stride, Chunk* out, u32 out_stride, const u32* total, u32 capacity,
    u32 per_thread) {
    tree::backward_bases<Lanes>(
        {pairs, owners, sums, buckets, border}, points, point_count, {prefixes, prefix_stride}, {products, product_stride},
        {out, out_stride}, {total, capacity, per_thread});
}

extern "C" __global__ void __launch_bounds__(128, 4) cuzk_pair_tree_g1_backward_nodes(
    const Chunk* nodes, u32 node_stride, const u64* pairs, const u32* owners, Point* sums, u32 buckets, Point* border, Chunk* prefixes,
    u32 prefix_stride, Chunk* products, u32 product_stride, Chunk* out, u32 out_stride, const u32* total, u32 capacity,
    u32 per_thread) {
    tree::backward_nodes<Lanes>(
        {pairs, owners, sums, buckets, border}, nodes, node_stride, {prefixes, prefix_stride}, {products, product_stride},
        {out, out_stride}, {total, capacity, per_thread});
}
