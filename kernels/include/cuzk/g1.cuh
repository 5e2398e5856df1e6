// G1: y^2 = x^3 + 4 over Fp.
#pragma once

#include "cuzk/curve.cuh"

namespace cuzk {

using G1Affine = Affine<Fp>;
using G1Xyzz = Xyzz<Fp>;

static_assert(sizeof(Fp) == 48 && alignof(Fp) == 16);
static_assert(sizeof(G1Affine) == 96 && alignof(G1Affine) == 32);
static_assert(sizeof(G1Xyzz) == 192 && alignof(G1Xyzz) == 32);

// a += q (madd-2008-s) with as few reductions as the ranges allow, for sums of many points: X, ZZ, ZZZ below 2p and
// Y below 3p before and after, q canonical. Ten products, of which the last two share a reduction: 2,604 wide
// products. `a` may lie in shared memory: each coordinate is read when it is needed and written once, which keeps the
// function within 128 registers. F is Fp, or the interval type with which kernels/tests/bounds.cpp walks through this
// very function.
template <class F>
CUZK_FN void add_affine_lazy(Xyzz<F>& a, const Affine<F>& q) {
    if (is_infinity(q)) {
        return;
    }
    if (is_infinity(a)) {
        set_affine(a, q);
        return;
    }
    const F p = sub_raw<2>(mul_call(q.x, a.zz), a.x);
    const F r = sub_raw<3>(mul_call(q.y, a.zzz), a.y);
    if (is_multiple<3>(p)) {
        if (is_multiple<4>(r)) {
            a.y = reduce_by<2>(a.y);
            double_xyzz(a);
        } else {
            set_infinity(a);
        }
        return;
    }
    const F pp = sqr_call(p);
    const F ppp = mul_call(p, pp);
    const F qq = mul_call(a.x, pp);
    a.zz = mul_call(a.zz, pp);
    a.zzz = mul_call(a.zzz, ppp);
    const F x = reduce_by<2>(reduce_by<4>(sub_raw<5>(sqr_call(r), add_raw(ppp, dbl_raw(qq)))));
    a.x = x;
    a.y = mul_sum(r, sub_raw<2>(qq, x), neg_raw<3>(a.y), ppp);
}

// The sum of add_affine_lazy with y below 2p, as the other functions take it.
CUZK_FN void finish_lazy(G1Xyzz& a) { a.y = reduce_by<2>(a.y); }

}  // namespace cuzk
