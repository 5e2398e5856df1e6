// The scalar field of BLS12-381: 8 words of 32 bits, Montgomery form with R = 2^256.
//
// r has 255 bits, 2^256 = 2.208 r. Ranges, in multiples of r:
//   add, sub, neg, dbl, mul, sqr         take and give canonical values, [0, r);
//   add_lazy, sub_lazy                   take and give [0, 2r);
//   mul_lazy(row, x)                     row < 1.2, x any word pattern; below (ROW X / 2.208 + 1) r. A canonical row
//                                        and x < 2r give less than 1.906 r, so chains stay in [0, 2r). The operands
//                                        do not commute: with a lazy row operand carries are lost.
//   sqr_lazy(x)                          x < 1.2, below (X^2 / 2.208 + 1) r.
//
// The reduction takes two words at a time. r mod 2^64 = 2^64 - 2^32 + 1, so for the lowest words X = (t1, t0) the
// digit Q = -X r^-1 mod 2^64 is q0 = -t0, q1 = q0 - t1 - [t0 != 0], and X + Q (r mod 2^64) = 2^64 (Q - q1 + k) where k
// says whether that last subtraction borrowed. What remains is to add Q - q1 + k at place 2 and Q times words 2 to 7 of
// r: 12 wide products for two words, none of them for the digit.
#pragma once

#include "cuzk/rows.cuh"

namespace cuzk {

struct alignas(16) Fr {
    u32 v[8];
};

// A canonical integer below r: the same words, not in Montgomery form.
using Scalar = Fr;

namespace fr {

// r = z^4 - z^2 + 1, z = -0xd201000000010000
inline constexpr Limbs<8> modulus = {{0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808,
                                      0x299d7d48, 0x73eda753}};
// 2^256 mod r
inline constexpr Limbs<8> one_limbs = {{0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa, 0xecbc4ff5, 0x998c4fef,
                                        0xacc5056f, 0x1824b159}};
// 2^512 mod r
inline constexpr Limbs<8> r2_limbs = {{0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb, 0x7254398f, 0x05d31496,
                                       0x9f59ff11, 0x0748d9d9}};
static_assert(modulus.v[0] == 1 && modulus.v[1] == 0xffffffff);

// A value between two reduction steps: even + 2^32 odd, `even` with places 0 to 9 and `odd` with places 1 to 8.
struct Accumulator {
    u32 even[10];
    u32 odd[8];
};

// Adds the multiple of r that clears places 0 and 1, and drops them. On entry the value is below 2^320; afterwards
// below 2^256: even has places 0 to 7, odd places 1 to 6. Without ROWS the entry is such a value, too: nothing is read
// at the places above, where a multiplication has added its rows.
template <bool ROWS>
CUZK_FN void reduce_two_words(Accumulator& t) {
    constexpr Limbs<8> r = modulus;
    const u32 t0 = t.even[0];
    const u32 q0 = negate_hidden(t0);
    // Place 1 from both parts; the word of `odd` at place 2 moves to `even`, its carry to place 3 of `odd`.
    const u32 t1 = add_cc(t.even[1], t.odd[0]);
    const u32 even2 = addc_cc(t.even[2], t.odd[1]);
    u32 odd[6];
    madc_wide_cc(odd[0], odd[1], r.v[3], q0, t.odd[2], t.odd[3]);
    madc_wide_cc(odd[2], odd[3], r.v[5], q0, t.odd[4], t.odd[5]);
    u32 even9 = 0;
    if (ROWS) {
        madc_wide_cc(odd[4], odd[5], r.v[7], q0, t.odd[6], t.odd[7]);
        even9 = addc_top(t.even[9], 0);
    } else {
        madc_wide_top(odd[4], odd[5], r.v[7], q0, 0, 0);
    }

    // borrow = [t0 != 0], then k
    (void)sub_cc(0, t0);
    const u32 q1 = subc_cc(q0, t1);
    const u32 minus_k = subc(0, 0);
    // The 64-bit value (q1, q0) - q1 + k; it is not negative.
    const u32 w0_raw = sub_cc(q0, q1);
    const u32 w1_raw = subc(q1, 0);
    const u32 w0 = sub_cc(w0_raw, minus_k);
    const u32 w1 = subc(w1_raw, minus_k);

    u32 even[8];
    even[0] = add_cc(even2, w0);
    even[1] = addc_cc(t.even[3], w1);
    madc_wide_cc(even[2], even[3], r.v[3], q1, t.even[4], t.even[5]);
    madc_wide_cc(even[4], even[5], r.v[5], q1, t.even[6], t.even[7]);
    madc_wide_top(even[6], even[7], r.v[7], q1, ROWS ? t.even[8] : 0, even9);
    mad_wide_cc(even[0], even[1], r.v[2], q0, even[0], even[1]);
    madc_wide_cc(even[2], even[3], r.v[4], q0, even[2], even[3]);
    madc_wide_cc(even[4], even[5], r.v[6], q0, even[4], even[5]);
    even[6] = addc_cc(even[6], 0);
    even[7] = addc_top(even[7], 0);
    mad_wide_cc(odd[0], odd[1], r.v[2], q1, odd[0], odd[1]);
    madc_wide_cc(odd[2], odd[3], r.v[4], q1, odd[2], odd[3]);
    madc_wide_cc(odd[4], odd[5], r.v[6], q1, odd[4], odd[5]);
    even[7] = addc_top(even[7], 0);

    CUZK_UNROLL
    for (int j = 0; j < 8; j++) {
        t.even[j] = even[j];
    }
    CUZK_UNROLL
    for (int j = 0; j < 6; j++) {
        t.odd[j] = odd[j];
    }
}

// out = even + 2^32 odd, which fits, after a reduction step
CUZK_FN void merge(u32 (&out)[8], const Accumulator& t) {
    out[0] = t.even[0];
    out[1] = add_cc(t.even[1], t.odd[0]);
    CUZK_UNROLL
    for (int j = 2; j < 7; j++) {
        out[j] = addc_cc(t.even[j], t.odd[j - 1]);
    }
    out[7] = addc_top(t.even[7], 0);
}

}  // namespace fr

CUZK_FN Fr fr_zero() { return Fr{{0, 0, 0, 0, 0, 0, 0, 0}}; }

CUZK_FN Fr fr_one() {
    constexpr Limbs<8> m = fr::one_limbs;
    Fr r;
    CUZK_UNROLL
    for (int i = 0; i < 8; i++) {
        r.v[i] = m.v[i];
    }
    return r;
}

// From [0, 2r) to [0, r).
CUZK_FN Fr canonical(const Fr& a) {
    constexpr Limbs<8> m = fr::modulus;
    Fr r = a;
    subtract_if_not_less(r.v, m.v);
    return r;
}

CUZK_FN Fr add(const Fr& a, const Fr& b) {
    Fr r;
    add_limbs(r.v, a.v, b.v);
    return canonical(r);
}

CUZK_FN Fr dbl(const Fr& a) { return add(a, a); }

CUZK_FN Fr sub(const Fr& a, const Fr& b) {
    constexpr Limbs<8> m = fr::modulus;
    Fr r;
    sub_limbs_modulo(r.v, a.v, b.v, m.v);
    return r;
}

CUZK_FN Fr neg(const Fr& a) { return sub(fr_zero(), a); }

// The sum of two values below 2r has up to 257 bits.
CUZK_FN Fr add_lazy(const Fr& a, const Fr& b) {
    constexpr Limbs<8> m = multiple(fr::modulus, 2);
    Fr sum;
    const u32 carry = add_limbs_carry(sum.v, a.v, b.v);
    Fr reduced;
    const u32 borrow = sub_limbs_borrow(reduced.v, sum.v, m.v);
    const bool keep = carry == 0 && borrow != 0;
    CUZK_UNROLL
    for (int i = 0; i < 8; i++) {
        sum.v[i] = keep ? sum.v[i] : reduced.v[i];
    }
    return sum;
}

CUZK_FN Fr sub_lazy(const Fr& a, const Fr& b) {
    constexpr Limbs<8> m = multiple(fr::modulus, 2);
    Fr r;
    sub_limbs_modulo(r.v, a.v, b.v, m.v);
    return r;
}

CUZK_FN bool is_exact_zero(const Fr& a) { return limbs_are_zero(a.v); }

// row x / R: 64 + 48 wide products.
CUZK_FN Fr mul_lazy(const Fr& row, const Fr& x) {
    fr::Accumulator t;
    const u32(&a)[8] = row.v;
    CUZK_UNROLL
    for (int i = 0; i < 8; i += 2) {
        const u32 b0 = x.v[i];
        const u32 b1 = x.v[i + 1];
        if (i == 0) {
            CUZK_UNROLL
            for (int j = 0; j < 8; j += 2) {
                mul_wide(t.even[j], t.even[j + 1], a[j], b0);
                mul_wide(t.odd[j], t.odd[j + 1], a[j + 1], b0);
            }
        } else {
            // Row i at place 0; places 7 and 8 of `odd` are new.
            mad_wide_cc(t.odd[0], t.odd[1], a[1], b0, t.odd[0], t.odd[1]);
            madc_wide_cc(t.odd[2], t.odd[3], a[3], b0, t.odd[2], t.odd[3]);
            madc_wide_cc(t.odd[4], t.odd[5], a[5], b0, t.odd[4], t.odd[5]);
            madc_wide_top(t.odd[6], t.odd[7], a[7], b0, 0, 0);
            mad_wide_cc(t.even[0], t.even[1], a[0], b0, t.even[0], t.even[1]);
            madc_wide_cc(t.even[2], t.even[3], a[2], b0, t.even[2], t.even[3]);
            madc_wide_cc(t.even[4], t.even[5], a[4], b0, t.even[4], t.even[5]);
            madc_wide_cc(t.even[6], t.even[7], a[6], b0, t.even[6], t.even[7]);
            t.odd[7] = addc_top(t.odd[7], 0);
        }
        // Row i + 1 at place 1: the parts change over; places 8 and 9 of `even` are new.
        mad_wide_cc(t.even[2], t.even[3], a[1], b1, t.even[2], t.even[3]);
        madc_wide_cc(t.even[4], t.even[5], a[3], b1, t.even[4], t.even[5]);
        madc_wide_cc(t.even[6], t.even[7], a[5], b1, t.even[6], t.even[7]);
        madc_wide_top(t.even[8], t.even[9], a[7], b1, 0, 0);
        mad_wide_cc(t.odd[0], t.odd[1], a[0], b1, t.odd[0], t.odd[1]);
        madc_wide_cc(t.odd[2], t.odd[3], a[2], b1, t.odd[2], t.odd[3]);
        madc_wide_cc(t.odd[4], t.odd[5], a[4], b1, t.odd[4], t.odd[5]);
        madc_wide_cc(t.odd[6], t.odd[7], a[6], b1, t.odd[6], t.odd[7]);
        t.even[9] = addc_top(t.even[9], 0);
        fr::reduce_two_words<true>(t);
    }
    Fr r;
    fr::merge(r.v, t);
    return r;
}

CUZK_FN Fr mul(const Fr& a, const Fr& b) { return canonical(mul_lazy(a, b)); }

// x^2 / R: 28 + 8 + 48 wide products.
CUZK_FN Fr sqr_lazy(const Fr& x) {
    u32 s[16];
    square_words(s, x.v);
    fr::Accumulator t;
    u32 high[8];
    CUZK_UNROLL
    for (int k = 0; k < 8; k++) {
        t.even[k] = s[k];
        t.odd[k] = 0;
        high[k] = s[k + 8];
    }
    CUZK_UNROLL
    for (int i = 0; i < 4; i++) {
        fr::reduce_two_words<false>(t);
    }
    Fr r;
    fr::merge(r.v, t);
    add_limbs(r.v, r.v, high);
    return r;
}

CUZK_FN Fr sqr(const Fr& a) { return canonical(sqr_lazy(a)); }

}  // namespace cuzk
