// Which points a pair tree adds when: the bookkeeping of a slab of sorted entries, without arithmetic of its own.
//
// A *slab* is a range of entries. A *bucket* of it has `count` entries in the slab and a *home*, the place of its sum; a
// point that is there already (`existing`) counts as one of its points. So the bucket has t(0) = count + existing points
// on level 0, and t(l) = ceil(t(l-1) / 2) on level l: round l + 1 adds those of level l in pairs, and an odd one out waits.
//
// One of the points of a level may lie in the home; the others are *nodes*, one after another. It is there
//
//   on level 0      if one existed, or t(0) is odd: then the last entry goes there before the first round
//   on later levels if t(l-1) is odd, the one that waited, or t(l) is odd: the last sum goes there, as it will wait next
//
// So nodes are paired among themselves, and the last of an odd number with the home. Nodes of a level lie at the numbers of
// the pairs they are sums of: nothing is moved. The last sum of a bucket is in its home by the same rule.
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

// Whether one of the points of the level is at home.
CUZK_FN u32 home_taken(const Bucket& bucket, u32 level) {
    const u32 odd = points_at(bucket, level) & 1;
    return (level == 0 ? bucket.existing : points_at(bucket, level - 1) & 1) | odd;
}

CUZK_FN u32 nodes_at(const Bucket& bucket, u32 level) { return points_at(bucket, level) - home_taken(bucket, level); }

// Whether the last entry goes home before the first round.
CUZK_FN bool last_entry_waits(const Bucket& bucket) { return bucket.existing == 0 && (bucket.count & 1) != 0; }

// Whether the sum of the last pair of the level goes home.
CUZK_FN bool last_sum_goes_home(const Bucket& bucket, u32 level) {
    return (points_at(bucket, level) & 1) == 0 && (points_at(bucket, level + 1) & 1) != 0;
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
