// Points on y^2 = x^3 + b over a field F, for G1 (F = Fp) and G2 (F = Fp2): affine and XYZZ coordinates.
//
// x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2. Affine infinity is x = y = 0, XYZZ infinity is ZZ = 0, word for word. The formulas
// are madd-2008-s, add-2008-s, dbl-2008-s-1 and mdbl-2008-s-1 of the Explicit-Formulas Database, made complete: equal,
// opposite and infinite operands give the right sum. Neither curve has a point of order two (both group orders are
// odd), so a doubling never meets y = 0.
//
// At kernel boundaries all coordinates are canonical. Between, affine coordinates are canonical and XYZZ
// coordinates in [0, 2p); the accumulator of add_affine_lazy lets Y grow to 3p (g1.cuh).
//
// ZZ and ZZZ of a finite point are products of numbers that are not 0 modulo p, so they never are: testing the words
// of ZZ decides infinity.
#pragma once

#include "cuzk/fp2.cuh"

namespace cuzk {

template <class F>
struct alignas(32) Affine {
    F x;
    F y;
};

template <class F>
struct alignas(32) Xyzz {
    F x;
    F y;
    F zz;
    F zzz;
};

CUZK_FN Fp zero_of(const Fp&) { return fp_zero(); }
CUZK_FN Fp2 zero_of(const Fp2&) { return fp2_zero(); }
CUZK_FN Fp one_of(const Fp&) { return fp_one(); }
CUZK_FN Fp2 one_of(const Fp2&) { return fp2_one(); }

template <class F>
CUZK_FN bool is_infinity(const Affine<F>& a) {
    return is_exact_zero(a.x) && is_exact_zero(a.y);
}

template <class F>
CUZK_FN bool is_infinity(const Xyzz<F>& a) {
    return is_exact_zero(a.zz);
}

template <class F>
CUZK_FN void set_infinity(Xyzz<F>& a) {
    const F zero = zero_of(a.x);
    a = Xyzz<F>{zero, zero, zero, zero};
}

template <class F>
CUZK_FN void set_affine(Xyzz<F>& a, const Affine<F>& b) {
    if (is_infinity(b)) {
        set_infinity(a);
        return;
    }
    const F one = one_of(b.x);
    a = Xyzz<F>{b.x, b.y, one, one};
}

template <class F>
CUZK_FN Affine<F> neg(const Affine<F>& a) {
    return Affine<F>{a.x, canonical(neg(a.y))};
}

template <class F>
CUZK_FN Xyzz<F> neg(const Xyzz<F>& a) {
    return Xyzz<F>{a.x, neg(a.y), a.zz, a.zzz};
}

template <class F>
CUZK_FN Xyzz<F> canonical(const Xyzz<F>& a) {
    return Xyzz<F>{canonical(a.x), canonical(a.y), canonical(a.zz), canonical(a.zzz)};
}

// s = 2 s (dbl-2008-s-1). Infinity stays infinity: ZZ = 0 makes V ZZ = 0.
template <class F>
CUZK_FN void double_xyzz(Xyzz<F>& a) {
    const F u = dbl(a.y);
    const F v = sqr_call(u);
    const F w = mul_call(u, v);
    a.zz = mul_call(v, a.zz);
    a.zzz = mul_call(w, a.zzz);
    const F s = mul_call(a.x, v);
    const F xx = sqr_call(a.x);
    const F m = add(dbl(xx), xx);
    a.x = sub(sqr_call(m), dbl(s));
    a.y = mul_diff_call(m, sub(s, a.x), w, a.y);
}

// s = 2 q for a finite q (mdbl-2008-s-1)
template <class F>
CUZK_FN void double_affine(Xyzz<F>& a, const Affine<F>& q) {
    const F u = dbl(q.y);
    a.zz = sqr_call(u);
    a.zzz = mul_call(u, a.zz);
    const F s = mul_call(q.x, a.zz);
    const F xx = sqr_call(q.x);
    const F m = add(dbl(xx), xx);
    a.x = sub(sqr_call(m), dbl(s));
    a.y = mul_diff_call(m, sub(s, a.x), a.zzz, q.y);
}

// s += q (madd-2008-s)
template <class F>
CUZK_FN void add_affine(Xyzz<F>& a, const Affine<F>& q) {
    if (is_infinity(q)) {
        return;
    }
    if (is_infinity(a)) {
        set_affine(a, q);
        return;
    }
    const F p = sub(mul_call(q.x, a.zz), a.x);
    const F r = sub(mul_call(q.y, a.zzz), a.y);
    if (is_zero(p)) {
        if (is_zero(r)) {
            double_affine(a, q);
        } else {
            set_infinity(a);
        }
        return;
    }
    const F pp = sqr_call(p);
    const F ppp = mul_call(p, pp);
    a.zz = mul_call(a.zz, pp);
    a.zzz = mul_call(a.zzz, ppp);
    const F qq = mul_call(a.x, pp);
    a.x = sub(sub(sqr_call(r), ppp), dbl(qq));
    a.y = mul_diff_call(r, sub(qq, a.x), a.y, ppp);
}

// s += b (add-2008-s)
template <class F>
CUZK_FN void add_xyzz(Xyzz<F>& a, const Xyzz<F>& b) {
    if (is_infinity(b)) {
        return;
    }
    if (is_infinity(a)) {
        a = b;
        return;
    }
    const F u1 = mul_call(a.x, b.zz);
    const F s1 = mul_call(a.y, b.zzz);
    const F p = sub(mul_call(b.x, a.zz), u1);
    const F r = sub(mul_call(b.y, a.zzz), s1);
    if (is_zero(p)) {
        if (is_zero(r)) {
            double_xyzz(a);
        } else {
            set_infinity(a);
        }
        return;
    }
    const F pp = sqr_call(p);
    const F ppp = mul_call(p, pp);
    a.zz = mul_call(mul_call(a.zz, b.zz), pp);
    a.zzz = mul_call(mul_call(a.zzz, b.zzz), ppp);
    const F qq = mul_call(u1, pp);
    a.x = sub(sub(sqr_call(r), ppp), dbl(qq));
    a.y = mul_diff_call(r, sub(qq, a.x), s1, ppp);
}

// The affine point, canonical: one inversion. 1/ZZ = (ZZ/ZZZ)^2.
template <class F>
CUZK_FN Affine<F> to_affine(const Xyzz<F>& a) {
    const F zzz_inv = inverse_call(canonical(a.zzz));
    const F zz_inv = sqr_call(mul_call(zzz_inv, a.zz));
    return Affine<F>{canonical(mul_call(a.x, zz_inv)), canonical(mul_call(a.y, zzz_inv))};
}

// How two affine points add: what the denominator of the slope is, and whether there is one.
enum class PairKind : u32 {
    chord,           // x2 - x1
    tangent,         // equal points: 2 y1
    first_infinite,  // the sum is the second
    second_infinite, // the sum is the first
    opposite,        // the sum is infinity
};

// The kind of a pair and the denominator of its slope, which is never 0: it is 1 where there is no slope, so that a
// product over many pairs stays invertible.
template <class F>
CUZK_FN PairKind pair_denominator(F& denominator, const Affine<F>& a, const Affine<F>& b) {
    denominator = one_of(a.x);
    if (is_infinity(a)) {
        return PairKind::first_infinite;
    }
    if (is_infinity(b)) {
        return PairKind::second_infinite;
    }
    const F dx = sub(b.x, a.x);
    if (!is_zero(dx)) {
        denominator = dx;
        return PairKind::chord;
    }
    if (!is_zero(sub(b.y, a.y))) {
        return PairKind::opposite;
    }
    denominator = dbl(a.y);
    return PairKind::tangent;
}

// The sum of a pair, given its kind and the inverse of its denominator; canonical.
template <class F>
CUZK_FN Affine<F> pair_sum(const Affine<F>& a, const Affine<F>& b, PairKind kind, const F& inverse) {
    if (kind == PairKind::first_infinite) {
        return b;
    }
    if (kind == PairKind::second_infinite) {
        return a;
    }
    if (kind == PairKind::opposite) {
        return Affine<F>{zero_of(a.x), zero_of(a.x)};
    }
    F numerator;
    if (kind == PairKind::chord) {
        numerator = sub(b.y, a.y);
    } else {
        const F xx = sqr_call(a.x);
        numerator = add(dbl(xx), xx);
    }
    const F slope = mul_call(numerator, inverse);
    const F x = canonical(sub(sqr_call(slope), add(a.x, b.x)));
    const F y = canonical(sub(mul_call(slope, sub(a.x, x)), a.y));
    return Affine<F>{x, y};
}

}  // namespace cuzk
