// Fp2 = Fp[u] / (u^2 + 1).
//
// Everything takes and gives coefficients in [0, 2p), except canonical() and what is named raw. A product is two sums
// of products with one reduction each (864 wide products); the Karatsuba form would need 720, but 24-word values
// beside them, and additions are not free (docs/kernels.md).
#pragma once

#include "cuzk/inverse.cuh"

namespace cuzk {

struct alignas(16) Fp2 {
    Fp c0;
    Fp c1;
};

CUZK_FN Fp2 fp2_zero() { return Fp2{fp_zero(), fp_zero()}; }
CUZK_FN Fp2 fp2_one() { return Fp2{fp_one(), fp_zero()}; }

CUZK_FN Fp2 add(const Fp2& a, const Fp2& b) { return Fp2{add(a.c0, b.c0), add(a.c1, b.c1)}; }
CUZK_FN Fp2 sub(const Fp2& a, const Fp2& b) { return Fp2{sub(a.c0, b.c0), sub(a.c1, b.c1)}; }
CUZK_FN Fp2 dbl(const Fp2& a) { return Fp2{dbl(a.c0), dbl(a.c1)}; }
CUZK_FN Fp2 neg(const Fp2& a) { return Fp2{neg(a.c0), neg(a.c1)}; }
CUZK_FN Fp2 canonical(const Fp2& a) { return Fp2{canonical(a.c0), canonical(a.c1)}; }
CUZK_FN bool is_exact_zero(const Fp2& a) { return is_exact_zero(a.c0) && is_exact_zero(a.c1); }
CUZK_FN bool is_zero(const Fp2& a) { return is_zero(a.c0) && is_zero(a.c1); }

// (a0 b0 - a1 b1) + (a0 b1 + a1 b0) u
CUZK_FN Fp2 mul(const Fp2& a, const Fp2& b) {
    return Fp2{mul_sum(a.c0, b.c0, neg_raw<2>(a.c1), b.c1), mul_sum(a.c0, b.c1, a.c1, b.c0)};
}

// (a0 + a1)(a0 - a1) + 2 a0 a1 u
CUZK_FN Fp2 sqr(const Fp2& a) { return Fp2{mul(add_raw(a.c0, a.c1), sub(a.c0, a.c1)), mul(dbl_raw(a.c0), a.c1)}; }

CUZK_CALL Fp mul_sum_call(Fp a, Fp b, Fp c, Fp d) { return mul_sum(a, b, c, d); }

// The same through functions: one body of each for all products.
CUZK_FN Fp2 mul_call(const Fp2& a, const Fp2& b) {
    return Fp2{mul_sum_call(a.c0, b.c0, neg_raw<2>(a.c1), b.c1), mul_sum_call(a.c0, b.c1, a.c1, b.c0)};
}
CUZK_FN Fp2 sqr_call(const Fp2& a) {
    return Fp2{mul_call(add_raw(a.c0, a.c1), sub(a.c0, a.c1)), mul_call(dbl_raw(a.c0), a.c1)};
}

// a b - c d
CUZK_FN Fp mul_diff_call(const Fp& a, const Fp& b, const Fp& c, const Fp& d) {
    return mul_sum_call(a, b, neg_raw<2>(c), d);
}
CUZK_FN Fp2 mul_diff_call(const Fp2& a, const Fp2& b, const Fp2& c, const Fp2& d) {
    return sub(mul_call(a, b), mul_call(c, d));
}

CUZK_CALL Fp inverse_call(Fp a) { return inverse_of(a); }

// (a0 - a1 u) / (a0^2 + a1^2). Takes canonical values, gives canonical values; zero goes to zero.
CUZK_FN Fp2 inverse_of(const Fp2& a) {
    const Fp norm = canonical(mul_sum(a.c0, a.c0, a.c1, a.c1));
    const Fp t = inverse_call(norm);
    return Fp2{canonical(mul(a.c0, t)), canonical(mul(neg(a.c1), t))};
}
CUZK_FN Fp2 inverse_call(const Fp2& a) { return inverse_of(a); }

}  // namespace cuzk
