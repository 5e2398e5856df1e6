// How the coordinates of a pair of points lie on the lanes of a warp, and where points come from.
//
// In G1 a lane has a pair to itself. In G2 two neighbouring lanes share one: lane h of the two has the coefficients of u^h,
// and a product exchanges operands. So both groups have the same code, registers and memory accesses: a *component* is
// one Fp, an affine point is two of them on each lane.
//
// All functions with `both` or a product in them are for whole warps.
#pragma once

#include "cuzk/async_copy.cuh"
#include "cuzk/g1.cuh"
#include "cuzk/g2.cuh"
#include "cuzk/pair_plan.cuh"
#include "cuzk/shared.cuh"

namespace cuzk {

inline constexpr u32 all_lanes = 0xffffffffu;

struct alignas(16) Chunk {
    u32 v[4];
};

struct G1Lanes {
    using Field = Fp;
    static constexpr u32 lanes = 1;

    CUZK_FN u32 half() { return 0; }
    // Whether it holds on all lanes of the pair.
    CUZK_FN bool both(bool here) { return here; }
    CUZK_FN Fp one() { return fp_one(); }
    CUZK_FN Fp mul(const Fp& a, const Fp& b) { return cuzk::mul(a, b); }
    CUZK_FN Fp sqr(const Fp& a) { return cuzk::sqr(a); }
};

struct G2Lanes {
    using Field = Fp2;
    static constexpr u32 lanes = 2;

    CUZK_FN u32 half() { return threadIdx.x & 1; }
    CUZK_FN bool both(bool here) { return (__shfl_xor_sync(all_lanes, here ? 1u : 0u, 1) & (here ? 1u : 0u)) != 0; }
    CUZK_FN Fp one() {
        const u32 mask = half() - 1;
        constexpr Limbs<12> m = fp::one_limbs;
        Fp r;
        CUZK_UNROLL
        for (int i = 0; i < 12; i++) {
            r.v[i] = m.v[i] & mask;
        }
        return r;
    }
    CUZK_FN Fp exchange(const Fp& a) {
        Fp r;
        CUZK_UNROLL
        for (int i = 0; i < 12; i++) {
            r.v[i] = __shfl_xor_sync(all_lanes, a.v[i], 1);
        }
        return r;
    }
    CUZK_FN Fp select(bool first, const Fp& a, const Fp& b) {
        Fp r;
        CUZK_UNROLL
        for (int i = 0; i < 12; i++) {
            r.v[i] = first ? a.v[i] : b.v[i];
        }
        return r;
    }
    // Lane 0: a0 b0 - a1 b1, lane 1: a1 b0 + a0 b1; operands and result below 2p.
    CUZK_FN Fp mul(const Fp& a, const Fp& b) {
        const bool is_first = half() == 0;
        const Fp a_other = exchange(a);
        const Fp b_other = exchange(b);
        return mul_sum(select(is_first, a, a_other), b, select(is_first, neg_raw<2>(a_other), a), b_other);
    }
    // Lane 0: (a0 + a1)(a0 - a1), lane 1: 2 a0 a1.
    CUZK_FN Fp sqr(const Fp& a) {
        const bool is_first = half() == 0;
        const Fp a_other = exchange(a);
        return cuzk::mul(add_raw(a_other, select(is_first, a, a_other)), select(is_first, sub(a, a_other), a));
    }
};

// Component planes: plane k of an array of `stride` places has chunk k of each. An array of components has 3 planes for
// each lane, one of points 6; the order is x before y, then u^0 before u^1.
CUZK_FN Fp load_planes(const Chunk* planes, u32 stride, u32 component, u32 place) {
    const Chunk* from = planes + (static_cast<u64>(3 * component) * stride + place);
    Fp r;
    CUZK_UNROLL
    for (int c = 0; c < 3; c++) {
        const Chunk chunk = *from;
        CUZK_UNROLL
        for (int i = 0; i < 4; i++) {
            r.v[4 * c + i] = chunk.v[i];
        }
        from += stride;
    }
    return r;
}

CUZK_FN void store_planes(Chunk* planes, u32 stride, u32 component, u32 place, const Fp& a) {
    Chunk* to = planes + (static_cast<u64>(3 * component) * stride + place);
    CUZK_UNROLL
    for (int c = 0; c < 3; c++) {
        Chunk chunk;
        CUZK_UNROLL
        for (int i = 0; i < 4; i++) {
            chunk.v[i] = a.v[4 * c + i];
        }
        *to = chunk;
        to += stride;
    }
}

// p - y for the component of a canonical point, 0 for 0.
CUZK_FN Fp negated(const Fp& y) { return is_exact_zero(y) ? y : neg_raw<1>(y); }

CUZK_FN bool is_equal(const Fp& a, const Fp& b) { return limbs_are_equal(a.v, b.v); }

// This lane's components of a point in an array of structures.
template <class G>
CUZK_FN const Fp* components(const Affine<typename G::Field>* point) {
    return reinterpret_cast<const Fp*>(point) + G::half();
}

// What one round reads and where it writes, in device memory.
template <class G>
struct PairArrays {
    const u64* pairs;
    const u32* owners;
    Affine<typename G::Field>* sums;
    u32 buckets;
    Affine<typename G::Field>* border;

    // The flags of a pair's owner, if it is special, else 0.
    CUZK_FN_MEMBER u32 owner_of(u32 place) const {
        const u32 first = static_cast<u32>(pairs[place]);
        return (first & pair_plan::special_bit) != 0 ? owners[place] : 0;
    }

    // The border's number is none of a bucket.
    CUZK_FN_MEMBER Affine<typename G::Field>* home(u32 owner) const {
        const u32 bucket = owner & pair_plan::index_mask;
        return bucket < buckets ? sums + bucket : border;
    }
};

// The operands of a pair of entries, as points of a table or a home. A null address is infinity. A lane without a pair, that
// is not `is_live`, takes any, but no home: that may be written at the same time.
template <class G>
struct BasePair {
    const Affine<typename G::Field>* first;
    const Affine<typename G::Field>* second;
    bool negate_first;
    bool negate_second;

    CUZK_FN_MEMBER BasePair(const PairArrays<G>& arrays, const Affine<typename G::Field>* points, u32 point_count, u32 place, bool is_live) {
        const u64 pair = arrays.pairs[place];
        const u32 a = static_cast<u32>(pair);
        const u32 b = static_cast<u32>(pair >> 32);
        const u32 index_a = a & pair_plan::index_mask;
        const u32 index_b = b & pair_plan::index_mask;
        first = index_a < point_count ? points + index_a : nullptr;
        second = index_b < point_count ? points + index_b : nullptr;
        negate_first = (a & pair_plan::negate_bit) != 0;
        negate_second = (b & pair_plan::negate_bit) != 0;
        if (is_live && (a & pair_plan::special_bit) != 0) {
            const u32 owner = arrays.owners[place];
            if ((owner & pair_plan::second_is_home) != 0) {
                second = arrays.home(owner);
                negate_second = false;
            }
        }
    }

    // x or y of one of the two, straight from memory.
    CUZK_FN_MEMBER Fp get(bool of_second, u32 coordinate) const {
        const auto* point = of_second ? second : first;
        if (point == nullptr) {
            return fp_zero();
        }
        const Fp value = components<G>(point)[coordinate * G::lanes];
        return coordinate == 1 && (of_second ? negate_second : negate_first) ? negated(value) : value;
    }
};

// The operands of a pair of nodes; the same holds.
template <class G>
struct NodePair {
    const Chunk* nodes;
    u32 stride;
    u32 first;
    u32 second;
    // In place of the second node, or null.
    const Affine<typename G::Field>* home;

    CUZK_FN_MEMBER NodePair(const PairArrays<G>& arrays, const Chunk* nodes_, u32 stride_, u32 place, bool is_live)
        : nodes(nodes_), stride(stride_), home(nullptr) {
        const u64 pair = arrays.pairs[place];
        first = static_cast<u32>(pair) & pair_plan::index_mask;
        second = static_cast<u32>(pair >> 32);
        first = first < stride ? first : stride - 1;
        second = second < stride ? second : stride - 1;
        if (is_live && (static_cast<u32>(pair) & pair_plan::special_bit) != 0) {
            const u32 owner = arrays.owners[place];
            if ((owner & pair_plan::second_is_home) != 0) {
                home = arrays.home(owner);
            }
        }
    }

    CUZK_FN_MEMBER Fp get(bool of_second, u32 coordinate) const {
        if (of_second && home != nullptr) {
            return components<G>(home)[coordinate * G::lanes];
        }
        return load_planes(nodes, stride, coordinate * G::lanes + G::half(), of_second ? second : first);
    }
};

// What a pair needs that has no chord.
struct Resolved {
    PairKind kind;
    Fp denominator;
};

// The kind of a pair and this lane's component of its denominator, all from memory; a lane without a pair counts as one with
// an infinite point. A call, as it is rare: what it needs in registers should not weigh on its caller.
template <class G, class Pair>
CUZK_CALL Resolved resolve(Pair pair, bool is_live) {
    const Fp x1 = pair.get(false, 0);
    const Fp y1 = pair.get(false, 1);
    const Fp x2 = pair.get(true, 0);
    const Fp y2 = pair.get(true, 1);
    const bool first_infinite = G::both(is_exact_zero(x1) && is_exact_zero(y1));
    const bool second_infinite = G::both(is_exact_zero(x2) && is_exact_zero(y2));
    const bool same_x = G::both(is_equal(x1, x2));
    const bool same_y = G::both(is_equal(y1, y2));
    Resolved r;
    r.denominator = G::one();
    if (!is_live || first_infinite) {
        r.kind = PairKind::first_infinite;
    } else if (second_infinite) {
        r.kind = PairKind::second_infinite;
    } else if (!same_x) {
        r.kind = PairKind::chord;
        r.denominator = sub_raw<1>(x2, x1);
    } else if (!same_y) {
        r.kind = PairKind::opposite;
    } else {
        r.kind = PairKind::tangent;
        r.denominator = dbl_raw(y1);
    }
    return r;
}

// 3 x^2, below 2p: the numerator of a tangent
template <class G>
CUZK_CALL Fp tangent_numerator(Fp x) {
    const Fp xx = G::sqr(x);
    return add(dbl(xx), xx);
}

// Whether a pair may lack a chord: x2 - x1 + p is p, or an x is 0, as far as the lowest words tell.
CUZK_FN bool is_suspicious(const Fp& x1, const Fp& x2) { return x1.v[0] == x2.v[0] || x1.v[0] == 0 || x2.v[0] == 0; }

}  // namespace cuzk
