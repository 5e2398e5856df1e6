// What surrounds the rounds of a pair tree: points that wait, the tail in XYZZ coordinates, sums of what slabs share. A thread
// has whole points here, in either group. cuzk/pair_plan.cuh has the terms.
#pragma once

#include "cuzk/pair_tree.cuh"

namespace cuzk {
namespace pair_tail {

inline constexpr u32 threads = 128;

CUZK_FN void add_point(G1Xyzz& sum, const G1Affine& point) { add_affine_lazy(sum, point); }
CUZK_FN void add_point(G2Xyzz& sum, const G2Affine& point) { add_affine(sum, point); }
CUZK_FN void finish(G1Xyzz& sum) { finish_lazy(sum); }
CUZK_FN void finish(G2Xyzz&) {}

// A base by its entry; infinity if there is none.
template <class F>
CUZK_FN Affine<F> base_of(const Affine<F>* points, u32 point_count, u32 entry) {
    const u32 index = entry & ~pair_plan::negate_bit;
    if (index >= point_count) {
        return Affine<F>{zero_of(F{}), zero_of(F{})};
    }
    const Affine<F> point = points[index];
    return (entry & pair_plan::negate_bit) != 0 ? neg(point) : point;
}

CUZK_FN void load_node(G1Affine& point, const Chunk* nodes, u32 stride, u32 place) {
    point = G1Affine{load_planes(nodes, stride, 0, place), load_planes(nodes, stride, 1, place)};
}
CUZK_FN void load_node(G2Affine& point, const Chunk* nodes, u32 stride, u32 place) {
    point = G2Affine{
        Fp2{load_planes(nodes, stride, 0, place), load_planes(nodes, stride, 1, place)},
        Fp2{load_planes(nodes, stride, 2, place), load_planes(nodes, stride, 3, place)}};
}

template <class F>
CUZK_FN void clear_empty(const u32* offsets, u32 buckets, Affine<F>* sums) {
    for (u32 i = grid_first(); i < buckets; i += grid_stride()) {
        if (offsets[i + 1] <= offsets[i]) {
            sums[i] = Affine<F>{zero_of(F{}), zero_of(F{})};
        }
    }
}

template <class F>
CUZK_FN void wait_bases(
    const Affine<F>* points, u32 point_count, const u32* entries, u32 entry_count, const u32* offsets,
    const pair_plan::Slab& slab, u32 existing, Affine<F>* sums, Affine<F>* border) {
    for (u32 local = grid_first(); local < slab.buckets; local += grid_stride()) {
        const pair_plan::Bucket bucket = pair_plan::bucket_of(offsets, slab, local, existing);
        const u32 last = bucket.first_entry + bucket.count - 1;
        if (pair_plan::last_entry_waits(bucket) && last < entry_count) {
            Affine<F>* home = bucket.home == pair_plan::border_home ? border : sums + bucket.home;
            *home = base_of(points, point_count, entries[last]);
        }
    }
}

// The first stage: chunks of what the tree has left. A chunk that is all of its bucket goes home.
template <class F>
CUZK_FN void sum_nodes(
    Xyzz<F>& sum, const Chunk* nodes, u32 stride, const u32* offsets, const pair_plan::Slab& slab, u32 existing, u32 rounds,
    const u32* item_offsets, u32 buckets, u32 count, Affine<F>* sums, Affine<F>* border, Xyzz<F>* partial) {
    const u32* row = item_offsets + static_cast<u64>(rounds) * buckets;
    for (u32 item = grid_first(); item < count; item += grid_stride()) {
        const u32 local = pair_plan::owner_of(row, 0, slab.buckets, item);
        const pair_plan::Bucket bucket = pair_plan::bucket_of(offsets, slab, local, existing);
        const u32 total = pair_plan::points_at(bucket, rounds);
        const u32 node_count = pair_plan::nodes_at(bucket, rounds);
        const u32 first_node = (row - buckets)[local];
        Affine<F>* home = bucket.home == pair_plan::border_home ? border : sums + bucket.home;
        const u32 begin = (item - row[local]) * pair_plan::tail_arity;
        const u32 end = total < begin + pair_plan::tail_arity ? total : begin + pair_plan::tail_arity;
        set_infinity(sum);
        CUZK_NO_UNROLL
        for (u32 i = begin; i < end; i++) {
            Affine<F> point;
            if (i >= node_count) {
                point = *home;
            } else {
                const u32 place = first_node + i;
                load_node(point, nodes, stride, place < stride ? place : stride - 1);
            }
            add_point(sum, point);
        }
        finish(sum);
        if (total <= pair_plan::tail_arity) {
            *home = to_affine(sum);
        } else {
            partial[item] = canonical(sum);
        }
    }
}

// The stages after it: chunks of the sums of the stage before; stage >= 2.
template <class F>
CUZK_FN void sum_sums(
    Xyzz<F>& sum, const Xyzz<F>* from, u32 from_count, const u32* offsets, const pair_plan::Slab& slab, u32 existing, u32 rounds,
    u32 stage, const u32* item_offsets, u32 buckets, u32 count, Affine<F>* sums, Affine<F>* border, Xyzz<F>* partial) {
    const u32* row = item_offsets + static_cast<u64>(rounds + stage - 1) * buckets;
    for (u32 item = grid_first(); item < count; item += grid_stride()) {
        const u32 local = pair_plan::owner_of(row, 0, slab.buckets, item);
        const pair_plan::Bucket bucket = pair_plan::bucket_of(offsets, slab, local, existing);
        const u32 total = pair_plan::tail_chunks(pair_plan::points_at(bucket, rounds), stage - 1);
        const u32 first = (row - buckets)[local];
        const u32 begin = (item - row[local]) * pair_plan::tail_arity;
        const u32 end = total < begin + pair_plan::tail_arity ? total : begin + pair_plan::tail_arity;
        set_infinity(sum);
        CUZK_NO_UNROLL
        for (u32 i = begin; i < end; i++) {
            if (first + i < from_count) {
                const Xyzz<F> term = from[first + i];
                add_xyzz(sum, term);
            }
        }
        if (total <= pair_plan::tail_arity) {
            *(bucket.home == pair_plan::border_home ? border : sums + bucket.home) = to_affine(sum);
        } else {
            partial[item] = canonical(sum);
        }
    }
}

// Slabs i >= 1 whose first bucket began before them left its part in borders[i]. The first of the slabs that share one
// bucket adds all of their parts.
template <class F>
CUZK_FN void add_borders(
    Xyzz<F>& sum, const u32* offsets, u32 buckets, const pair_plan::Slab* slabs, u32 slab_count, const Affine<F>* borders, Affine<F>* sums) {
    const auto has_border = [&](u32 i) {
        const pair_plan::Slab slab = pair_plan::slab_of(slabs, i, buckets);
        return slab.buckets != 0 && offsets[slab.first_bucket] < slab.first_entry;
    };
    for (u32 i = grid_first() + 1; i < slab_count; i += grid_stride()) {
        if (!has_border(i)) {
            continue;
        }
        const u32 bucket = slabs[i].first_bucket;
        if (i > 1 && has_border(i - 1) && slabs[i - 1].first_bucket == bucket) {
            continue;
        }
        set_infinity(sum);
        add_point(sum, sums[bucket]);
        CUZK_NO_UNROLL
        for (u32 k = i; k < slab_count && has_border(k) && slabs[k].first_bucket == bucket; k++) {
            add_point(sum, borders[k]);
        }
        finish(sum);
        sums[bucket] = to_affine(sum);
    }
}

}  // namespace pair_tail
}  // namespace cuzk
