// One round of a pair tree: affine additions that share inversions (Montgomery's trick), for either group.
//
//   forward   a thread goes through `per_thread` pairs, places 128 / lanes apart; it multiplies their denominators x2 - x1
//             up, keeps the product before each pair, and leaves the whole product
//   invert    the products of many threads share one inversion
//   backward  a thread goes back through its pairs: 1 / d = inverse * product before, inverse *= d; then the chord
//
// So a sum costs five products and a square. Pairs without a chord (equal, opposite or infinite points) take part with the
// denominator 2y or 1. Warps meet them rarely; then all lanes take the longer way together. Results are canonical.
//
// Places count the pairs of a round; a *tile* is what one block goes through at a time. All warps of a block work alone.
#pragma once

#include "cuzk/pair_lanes.cuh"

namespace cuzk {
namespace pair_tree {

inline constexpr u32 threads = 128;

// Pairs of a block and of a warp at a time.
template <class G>
inline constexpr u32 groups = threads / G::lanes;
template <class G>
inline constexpr u32 warp_groups = 32 / G::lanes;

// A coordinate of a point in chunks of 16 bytes; half a point.
template <class G>
inline constexpr u32 coordinate_chunks = 3 * G::lanes;

// Components at places, in planes.
struct Planes {
    Chunk* chunks;
    u32 stride;
};

// Where a lane is.
template <class G>
struct Place {
    u32 count;
    u32 per_thread;
    u64 tile;

    CUZK_FN_MEMBER Place(const u32* total, u32 capacity, u32 per_thread_) : count(*total), per_thread(per_thread_), tile(blockIdx.x) {
        if (count > capacity) {
            count = capacity;
        }
    }
    CUZK_FN u32 group() { return threadIdx.x / G::lanes; }
    CUZK_FN_MEMBER u64 first() const { return tile * (groups<G> * per_thread); }
    CUZK_FN_MEMBER bool is_inside() const { return first() < count; }
    CUZK_FN_MEMBER void advance() { tile += gridDim.x; }
    // How often this warp finds a pair in its tile.
    CUZK_FN_MEMBER u32 steps() const {
        const u64 mine = first() + threadIdx.x / 32 * warp_groups<G>;
        if (mine >= count) {
            return 0;
        }
        const u32 left = (count - static_cast<u32>(mine) + groups<G> - 1) / groups<G>;
        return left < per_thread ? left : per_thread;
    }
    // Where this lane's pair of a step is, if it is below count; there is one to read at `clamped` in any case.
    CUZK_FN_MEMBER u32 clamped(u32 place) const { return place < count ? place : count - 1; }
    CUZK_FN_MEMBER u32 pair(u32 step) const { return static_cast<u32>(first()) + step * groups<G> + group(); }
    // The number of this thread's product.
    CUZK_FN_MEMBER u32 product() const { return static_cast<u32>(tile) * groups<G> + group(); }
};

// The common end of a forward step.
template <class G>
CUZK_FN void multiply_up(Fp& product, const Fp& denominator, const Planes& prefixes, u32 step, u32 place, bool is_live) {
    if (step == 0) {
        product = denominator;
        return;
    }
    if (is_live) {
        store_planes(prefixes.chunks, prefixes.stride, G::half(), place, product);
    }
    product = G::mul(product, denominator);
}

template <class G>
CUZK_FN void forward_nodes(
    const PairArrays<G>& arrays, const Chunk* nodes, u32 node_stride, const Planes& prefixes, const Planes& products,
    const Place<G>& at) {
    if (!at.is_inside()) {
        return;
    }
    const u32 steps = at.steps();
    Fp product = G::one();
    CUZK_NO_UNROLL
    for (u32 step = 0; step < steps; step++) {
        const u32 place = at.pair(step);
        const bool is_live = place < at.count;
        const NodePair<G> pair(arrays, nodes, node_stride, at.clamped(place), is_live);
        const Fp x1 = pair.get(false, 0);
        const Fp x2 = pair.get(true, 0);
        Fp denominator = sub_raw<1>(x2, x1);
        if (__any_sync(all_lanes, !is_live || is_suspicious(x1, x2))) {
            const NodePair<G> again(arrays, nodes, node_stride, at.clamped(forgotten(place)), is_live);
            denominator = resolve<G, NodePair<G>>(again, is_live).denominator;
        }
        multiply_up<G>(product, denominator, prefixes, step, place, is_live);
    }
    store_planes(products.chunks, products.stride, G::half(), at.product(), product);
}

// Points on their way from a table into shared memory, fetched by a whole warp: neighbouring lanes take neighbouring
// chunks of one point, which doubles the rate of random accesses against a lane for each point. The first operands of the
// warp's pairs come first, then the second ones.
template <class G, u32 CHUNKS, u32 STRIDE>
struct Fetch {
    static constexpr u32 points = 2 * warp_groups<G>;

    u64* addresses;
    Chunk* slots;

    // Begins to copy the first CHUNKS chunks of each point; an address of 0 gives zeros. Between two calls a warp has passed
    // a barrier, which is after its last read if they are for the same slots.
    CUZK_FN_MEMBER void begin(u64 first, u64 second, Chunk* to) const {
        const u32 lane = threadIdx.x % 32;
        const u32 group = lane / G::lanes;
        if (G::lanes == 1) {
            addresses[group] = first;
            addresses[warp_groups<G> + group] = second;
        } else {
            addresses[(lane & 1) * warp_groups<G> + group] = (lane & 1) == 0 ? first : second;
        }
        __syncwarp(all_lanes);
        // 96 lanes make a whole number of points.
        constexpr u32 points_of_96 = 96 / CHUNKS;
        const u32 start = forgotten(lane);
        CUZK_UNROLL
        for (u32 third = 0; third < 3; third++) {
            const u32 first_point = (32 * third + start) / CHUNKS;
            const u32 chunk = (32 * third + start) % CHUNKS;
            CUZK_UNROLL
            for (u32 i = 0; i < points / points_of_96; i++) {
                const u32 point = first_point + i * points_of_96;
                const u64 address = addresses[point];
                Chunk* slot = to + (point * STRIDE + chunk);
                if (address != 0) {
                    copy_async_16(slot, reinterpret_cast<const Chunk*>(address) + chunk);
                } else {
                    *slot = Chunk{{0, 0, 0, 0}};
                }
            }
        }
        copy_async_commit();
    }

    // This lane's component of x or y.
    CUZK_FN_MEMBER Fp get(const Chunk* from, bool of_second, u32 coordinate) const {
        const u32 group = threadIdx.x % 32 / G::lanes + (of_second ? warp_groups<G> : 0);
        return *reinterpret_cast<const Fp*>(from + (group * STRIDE + 3 * (coordinate * G::lanes + G::half())));
    }
};

template <class G>
CUZK_FN u64 address_of(const Affine<typename G::Field>* point) {
    return reinterpret_cast<u64>(point);
}

// x alone, in slots without a gap: lane by lane they meet each bank once.
template <class G>
using FetchX = Fetch<G, coordinate_chunks<G>, coordinate_chunks<G>>;
// Both coordinates, a chunk of padding for each lane of the pair: again each bank once.
template <class G>
using FetchPoints = Fetch<G, 2 * coordinate_chunks<G>, 7 * G::lanes>;

template <class G>
CUZK_FN void forward_bases(
    const PairArrays<G>& arrays, const Affine<typename G::Field>* points, u32 point_count, const Planes& prefixes,
    const Planes& products, Place<G> at) {
    constexpr u32 stage_chunks = FetchX<G>::points * coordinate_chunks<G>;
    constexpr u32 warps = threads / 32;
    CUZK_SHARED(u64, addresses, FetchX<G>::points * warps);
    CUZK_SHARED(Chunk, slots, 2 * stage_chunks * warps);
    const u32 warp = threadIdx.x / 32;
    const FetchX<G> fetch = {addresses + warp * FetchX<G>::points, slots + 2 * stage_chunks * warp};
    for (; at.is_inside(); at.advance()) {
        const u32 steps = at.steps();
        Fp product = G::one();
        const auto begin = [&](u32 step) {
            const u32 place = at.pair(step);
            const BasePair<G> pair(arrays, points, point_count, at.clamped(place), place < at.count);
            fetch.begin(address_of<G>(pair.first), address_of<G>(pair.second), fetch.slots + (step & 1) * stage_chunks);
        };
        if (steps > 0) {
            begin(0);
            __syncwarp(all_lanes);
        }
        CUZK_NO_UNROLL
        for (u32 step = 0; step < steps; step++) {
            begin(step + 1);
            copy_async_wait_but_last();
            __syncwarp(all_lanes);
            const u32 place = at.pair(step);
            const bool is_live = place < at.count;
            const Chunk* stage = fetch.slots + (step & 1) * stage_chunks;
            const Fp x1 = fetch.get(stage, false, 0);
            const Fp x2 = fetch.get(stage, true, 0);
            Fp denominator = sub_raw<1>(x2, x1);
            if (__any_sync(all_lanes, !is_live || is_suspicious(x1, x2))) {
                const BasePair<G> again(arrays, points, point_count, at.clamped(forgotten(place)), is_live);
                denominator = resolve<G, BasePair<G>>(again, is_live).denominator;
            }
            multiply_up<G>(product, denominator, prefixes, step, place, is_live);
        }
        copy_async_wait();
        __syncwarp(all_lanes);
        store_planes(products.chunks, products.stride, G::half(), at.product(), product);
    }
}

// How the sum of a pair gets from the inverse of its denominator to memory.
struct Slope {
    Fp numerator;
    // 1 / denominator
    Fp inverse;
};

// inverse: of the product up to and with this pair; afterwards up to the one before.
template <class G>
CUZK_FN Fp divide_out(Fp& inverse, const Fp& denominator, const Planes& prefixes, u32 step, u32 place) {
    if (step == 0) {
        return inverse;
    }
    const Fp before = load_planes(prefixes.chunks, prefixes.stride, G::half(), place);
    const Fp result = G::mul(inverse, before);
    inverse = G::mul(inverse, denominator);
    return result;
}

// x3 and y3 of the chord through (x1, y1) and (x2, .) or of a tangent, canonical. The numerator and the inverse are below 2p,
// the rest is canonical. slope^2 < 1.75, so x3 + 2p - x1 - x2 is below 3.75; slope * (x1 - x3) < 1.82.
template <class G>
CUZK_FN void chord(Fp& x3, Fp& y3, const Fp& slope, const Fp& x1, const Fp& y1, const Fp& x2) {
    x3 = canonical(reduce_by<2>(sub_raw<2>(G::sqr(slope), add_raw(x1, x2))));
    const Fp product = G::mul(slope, sub_raw<1>(x1, x3));
    constexpr Limbs<12> m = fp::Multiple<1>::value();
    sub_limbs_modulo(y3.v, product.v, y1.v, m.v);
    y3 = canonical(y3);
}

// Puts right what the formulas do not cover.
template <class G, class Pair>
CUZK_FN void override_sum(Fp& x3, Fp& y3, PairKind kind, const Pair& pair) {
    if (kind == PairKind::first_infinite) {
        x3 = pair.get(true, 0);
        y3 = pair.get(true, 1);
    } else if (kind == PairKind::second_infinite) {
        x3 = pair.get(false, 0);
        y3 = pair.get(false, 1);
    } else if (kind == PairKind::opposite) {
        x3 = fp_zero();
        y3 = fp_zero();
    }
}

template <class G>
CUZK_FN void store_sum(const PairArrays<G>& arrays, const Planes& out, u32 place, const Fp& x, const Fp& y) {
    const u32 owner = arrays.owner_of(place);
    if ((owner & pair_plan::result_goes_home) != 0) {
        Fp* to = reinterpret_cast<Fp*>(arrays.home(owner)) + G::half();
        to[0] = x;
        to[G::lanes] = y;
    } else {
        store_planes(out.chunks, out.stride, G::half(), place, x);
        store_planes(out.chunks, out.stride, G::lanes + G::half(), place, y);
    }
}

template <class G>
CUZK_FN void backward_nodes(
    const PairArrays<G>& arrays, const Chunk* nodes, u32 node_stride, const Planes& prefixes, const Planes& inverses,
    const Planes& out, const Place<G>& at) {
    if (!at.is_inside()) {
        return;
    }
    Fp inverse = load_planes(inverses.chunks, inverses.stride, G::half(), at.product());
    CUZK_NO_UNROLL
    for (u32 step = at.steps(); step-- > 0;) {
        const u32 place = at.pair(step);
        const bool is_live = place < at.count;
        const NodePair<G> pair(arrays, nodes, node_stride, at.clamped(place), is_live);
        const Fp x1 = pair.get(false, 0);
        const Fp x2 = pair.get(true, 0);
        Fp denominator = sub_raw<1>(x2, x1);
        PairKind kind = PairKind::chord;
        const bool is_rare = __any_sync(all_lanes, !is_live || is_suspicious(x1, x2)) != 0;
        if (is_rare) {
            const NodePair<G> again(arrays, nodes, node_stride, at.clamped(forgotten(place)), is_live);
            const Resolved resolved = resolve<G, NodePair<G>>(again, is_live);
            kind = resolved.kind;
            denominator = resolved.denominator;
        }
        const Fp factor = divide_out<G>(inverse, denominator, prefixes, step, at.clamped(place));
        const Fp y1 = pair.get(false, 1);
        Fp numerator = sub_raw<1>(pair.get(true, 1), y1);
        if (is_rare) {
            const Fp tangent = tangent_numerator<G>(x1);
            if (kind == PairKind::tangent) {
                numerator = tangent;
            }
        }
        const Fp slope = G::mul(numerator, factor);
        Fp x3;
        Fp y3;
        chord<G>(x3, y3, slope, x1, y1, x2);
        if (is_live) {
            if (kind != PairKind::chord && kind != PairKind::tangent) {
                override_sum<G>(x3, y3, kind, NodePair<G>(arrays, nodes, node_stride, forgotten(place), true));
            }
            store_sum<G>(arrays, out, forgotten(place), x3, y3);
        }
    }
}

template <class G>
CUZK_FN void backward_bases(
    const PairArrays<G>& arrays, const Affine<typename G::Field>* points, u32 point_count, const Planes& prefixes,
    const Planes& inverses, const Planes& out, const Place<G>& at) {
    constexpr u32 warp_chunks = FetchPoints<G>::points * 7 * G::lanes;
    constexpr u32 warps = threads / 32;
    CUZK_SHARED(u64, addresses, FetchPoints<G>::points * warps);
    CUZK_SHARED(Chunk, slots, warp_chunks * warps);
    const u32 warp = threadIdx.x / 32;
    const FetchPoints<G> fetch = {addresses + warp * FetchPoints<G>::points, slots + warp_chunks * warp};
    if (!at.is_inside()) {
        return;
    }
    const u32 steps = at.steps();
    // Begins to fetch the pair of a step; the signs of its points.
    const auto begin = [&](u32 step) -> u32 {
        const u32 place = at.pair(step);
        const BasePair<G> pair(arrays, points, point_count, at.clamped(place), place < at.count);
        const u32 signs = (pair.negate_first ? 1u : 0u) | (pair.negate_second ? 2u : 0u);
        fetch.begin(address_of<G>(pair.first), address_of<G>(pair.second), fetch.slots);
        return signs;
    };
    // y of one of the two, from shared memory.
    const auto fetched_y = [&](bool of_second, u32 signs) {
        const Fp y = fetch.get(fetch.slots, of_second, 1);
        return (signs & (of_second ? 2u : 1u)) != 0 ? negated(y) : y;
    };
    Fp inverse = load_planes(inverses.chunks, inverses.stride, G::half(), at.product());
    u32 signs = steps > 0 ? begin(steps - 1) : 0;
    CUZK_NO_UNROLL
    for (u32 step = steps; step-- > 0;) {
        const u32 place = at.pair(step);
        const bool is_live = place < at.count;
        copy_async_wait();
        __syncwarp(all_lanes);
        const Fp x1 = fetch.get(fetch.slots, false, 0);
        const Fp x2 = fetch.get(fetch.slots, true, 0);
        Fp denominator = sub_raw<1>(x2, x1);
        PairKind kind = PairKind::chord;
        const bool is_rare = __any_sync(all_lanes, !is_live || is_suspicious(x1, x2)) != 0;
        if (is_rare) {
            const BasePair<G> again(arrays, points, point_count, at.clamped(forgotten(place)), is_live);
            const Resolved resolved = resolve<G, BasePair<G>>(again, is_live);
            kind = resolved.kind;
            denominator = resolved.denominator;
        }
        const Fp factor = divide_out<G>(inverse, denominator, prefixes, step, at.clamped(place));
        const Fp y1 = fetched_y(false, signs);
        Fp numerator = sub_raw<1>(fetched_y(true, signs), y1);
        __syncwarp(all_lanes);
        if (step > 0) {
            signs = begin(step - 1);
        }
        if (is_rare) {
            const Fp tangent = tangent_numerator<G>(x1);
            if (kind == PairKind::tangent) {
                numerator = tangent;
            }
        }
        const Fp slope = G::mul(numerator, factor);
        Fp x3;
        Fp y3;
        chord<G>(x3, y3, slope, x1, y1, x2);
        if (is_live) {
            if (kind != PairKind::chord && kind != PairKind::tangent) {
                override_sum<G>(x3, y3, kind, BasePair<G>(arrays, points, point_count, forgotten(place), true));
            }
            store_sum<G>(arrays, out, forgotten(place), x3, y3);
        }
    }
}

CUZK_FN Fp load_field(const Planes& planes, u32 place, const Fp&) { return load_planes(planes.chunks, planes.stride, 0, place); }
CUZK_FN Fp2 load_field(const Planes& planes, u32 place, const Fp2&) {
    return Fp2{load_planes(planes.chunks, planes.stride, 0, place), load_planes(planes.chunks, planes.stride, 1, place)};
}
CUZK_FN void store_field(const Planes& planes, u32 place, const Fp& a) { store_planes(planes.chunks, planes.stride, 0, place, a); }
CUZK_FN void store_field(const Planes& planes, u32 place, const Fp2& a) {
    store_planes(planes.chunks, planes.stride, 0, place, a.c0);
    store_planes(planes.chunks, planes.stride, 1, place, a.c1);
}

// Each product is replaced by its inverse; a thread inverts the product of those that are one grid apart.
template <class F>
CUZK_FN void invert(const Planes& products, const Planes& scratch, u32 count) {
    const u32 first = cuzk::grid_first();
    const u32 stride = cuzk::grid_stride();
    if (first >= count) {
        return;
    }
    F running = load_field(products, first, F{});
    u32 last = first;
    CUZK_NO_UNROLL
    while (count - last > stride) {
        last += stride;
        store_field(scratch, last, running);
        running = mul_call(running, load_field(products, last, F{}));
    }
    running = inverse_call(canonical(running));
    CUZK_NO_UNROLL
    for (; last != first; last -= stride) {
        const F product = load_field(products, last, F{});
        store_field(products, last, mul_call(running, load_field(scratch, last, F{})));
        running = mul_call(running, product);
    }
    store_field(products, first, running);
}

}  // namespace pair_tree
}  // namespace cuzk
