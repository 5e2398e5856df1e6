// Which points a pair tree adds when: the bookkeeping of a slab of sorted entries, without arithmetic of its own.
//
// A *slab* is a range of entries. A *bucket* of it has `count` entries in the slab and a *home*, the place of its sum; a
// point that is there already (`existing`) counts as one of its points. So the bucket has t(0) = count + existing points
// on level 0, and t(l) = ceil(t(l-1) / 2) on level l: round l adds them in pairs, and an odd one out waits. The one that
// waits lies in the home; it is put there when a level has an odd number of nodes and the home is empty. Then
//
//   home_taken(l) = existing for l = 0, else t(l-1) mod 2      whether the home holds one of the t(l) points
//   nodes(l)      = count for l = 0, else floor(t(l-1) / 2)    the others, one after another
//   pairs(l)      = floor(t(l) / 2)                            added by round l + 1; if nodes(l) is odd and the home
//                                                              taken, the last pair is the last node and the home
//
// and a sum of the last two points goes home. All nodes of a level lie one after another, bucket by bucket, at the
// numbers of the pairs they came from: nothing is moved but what waits.
//
// A bucket that began in an earlier slab has its home in `border` instead, nothing in it, and is added to its sum at the
// end: so slabs do not wait for each other.
//
// After `rounds` levels the tree stops; what then still has two points or more is the *tail*: t(rounds) points are summed in
// chunks of `tail_arity`, the chunks' sums again, and so on.
#pragma once

#include "cuzk/kernel.cuh"

namespace cuzk {
namespace pair_plan {

// Points that one thread of the tail adds up.
inline constexpr u32 tail_arity = 16;

// Flags of a pair's first word; the other 30 bits of both words are a base index or a node, and the second's top bit is the
// sign of its base.
inline constexpr u32 negate_bit = 1u << 31;
inline constexpr u32 special_bit = 1u << 30;
inline constexpr u32 index_mask = special_bit - 1;

// Flags of the owner of a special pair; the other bits are the bucket, or all ones for the border.
inline constexpr u32 second_is_home = 1u << 31;
inline constexpr u32 result_goes_home = 1u << 30;
inline constexpr u32 border_home = special_bit - 1;

// One slab, as `slabs` finds it.
struct Slab {
    u32 first_bucket;
    u32 buckets;
    // Entries first_entry to end_entry - 1.
    u32 first_entry;
    u32 end_entry;
};

// Slab `index` as far as its buckets exist.
CUZK_FN Slab slab_of(const Slab* slabs, u32 index, u32 buckets) {
    Slab slab = slabs[index];
    slab.first_bucket = slab.first_bucket < buckets ? slab.first_bucket : buckets;
    slab.buckets = slab.buckets < buckets - slab.first_bucket ? slab.buckets : buckets - slab.first_bucket;
    return slab;
}

// What a bucket has in a slab.
struct Bucket {
    u32 first_entry;
    u32 count;
    u32 existing;
    // Its number, or border_home.
    u32 home;
};

// Bucket `local` of the slab. Offsets that do not ascend give counts that still lie within the slab.
CUZK_FN Bucket bucket_of(const u32* offsets, const Slab& slab, u32 local, u32 existing) {
    const u32 id = slab.first_bucket + local;
    const u32 begin = offsets[id];
    const u32 end = offsets[id + 1];
    const bool is_border = begin < slab.first_entry;
    Bucket bucket;
    bucket.first_entry = is_border ? slab.first_entry : begin;
    const u32 last = end < slab.end_entry ? end : slab.end_entry;
    bucket.count = last > bucket.first_entry ? last - bucket.first_entry : 0;
    bucket.existing = is_border ? 0 : existing;
    bucket.home = is_border ? border_home : id;
    return bucket;
}

// t(level)
CUZK_FN u32 points_at(const Bucket& bucket, u32 level) {
    const u32 points = bucket.count + bucket.existing;
    return (points >> level) + ((points & ((1u << level) - 1)) != 0 ? 1 : 0);
}

CUZK_FN u32 home_taken(const Bucket& bucket, u32 level) {
    return level == 0 ? bucket.existing : points_at(bucket, level - 1) & 1;
}

CUZK_FN u32 nodes_at(const Bucket& bucket, u32 level) {
    return level == 0 ? bucket.count : points_at(bucket, level - 1) >> 1;
}

// Whether the last node of the level is to wait in the home. A single node of a later level is home already.
CUZK_FN bool last_node_waits(const Bucket& bucket, u32 level) {
    const u32 points = points_at(bucket, level);
    return (points & 1) != 0 && home_taken(bucket, level) == 0 && (level == 0 || points > 1);
}

// Chunks of the stage-th step of the tail, stage >= 1: ceil(t(rounds) / arity^stage), or none if there was one before.
CUZK_FN u32 tail_chunks(u32 points, u32 stage) {
    for (u32 i = 0; i < stage; i++) {
        if (points < 2) {
            return 0;
        }
        points = (points + tail_arity - 1) / tail_arity;
    }
    return points;
}

// Work items of a bucket in one *step*: steps 0 to rounds - 1 are rounds, whose items are pairs; the others are stages of the
// tail, whose items are chunks.
CUZK_FN u32 items_of(const Bucket& bucket, u32 step, u32 rounds) {
    return step < rounds ? points_at(bucket, step) >> 1 : tail_chunks(points_at(bucket, rounds), step - rounds + 1);
}

// The last index below `end` with offsets[index] <= item, at or after `first`; offsets[first] <= item.
CUZK_FN u32 owner_of(const u32* offsets, u32 first, u32 end, u32 item) {
    u32 low = first;
    u32 high = end;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (offsets[middle] <= item) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

}  // namespace pair_plan
}  // namespace cuzk
