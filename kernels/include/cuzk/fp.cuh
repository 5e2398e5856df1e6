// The base field of BLS12-381: 12 words of 32 bits, Montgomery form with R = 2^384.
//
// p has 381 bits, so 2^384 = 9.84 p and values need not be canonical inside a computation. Functions say in which
// range they take and give values, in multiples of p:
//   closed    add, sub, neg, dbl, mul, sqr, mul_sum, mul_diff take and give [0, 2p);
//   raw       add_raw, sub_raw<K>, dbl_raw do not reduce; the caller answers for the range;
//   canonical canonical() gives [0, p), which is what memory holds at every kernel boundary.
// mul, sqr, mul_sum also take wider operands, with the result below (A B / 9.84 + 1 + 2^-32) p.
// docs/kernels.md states the bounds, kernels/tests/bounds.cpp checks them.
//
// The multiplication is a row multiplication in even/odd form (rows.cuh) with a reduction that needs no quotient
// digit. Let N = c p with c = -p^-1 mod 2^32. N is -1 modulo 2^32, so the lowest word q of a value T is itself the
// digit: (T + q N) / 2^32 = floor(T / 2^32) + q M with M = (N + 1) / 2^32, which again has 381 bits. Rows 0 to 9 use
// M; rows 10 and 11 use p with the usual digit, so that the multiple of p left in the result stays below 1 + 2^-32.
#pragma once

#include "cuzk/rows.cuh"

namespace cuzk {

struct alignas(16) Fp {
    u32 v[12];
};

namespace fp {

// p = (z - 1)^2 (z^4 - z^2 + 1) / 3 + z, z = -0xd201000000010000
inline constexpr Limbs<12> modulus = {{0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                                       0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea}};
// 2^384 mod p
inline constexpr Limbs<12> one_limbs = {{0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
                                         0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3}};
// 2^768 mod p
inline constexpr Limbs<12> r2_limbs = {{0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6, 0x4c95b6d5, 0x8de5476c,
                                        0x939d83c0, 0x67eb88a9, 0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5}};
// c = -p^-1 mod 2^32
inline constexpr u32 minus_inverse = 0xfffcfffd;
static_assert(minus_inverse * modulus.v[0] == 0xffffffff);

// K p as an array that code can index with constants only.
template <int K>
struct Multiple {
    static_assert(K >= 1 && K <= 9, "9 p < 2^384 < 10 p");
    static CUZK_CONST Limbs<12> value() { return multiple(modulus, K); }
};

// The chains of one Montgomery product or reduction. `a` is the row operand: each of its words is multiplied in each
// row; the words of `b` are taken one by one.

// q M with a shift: the step of rows 0 to 9. Afterwards the roles are swapped.
CUZK_FN void reduce_row(u32 (&even)[12], u32 (&odd)[12]) {
    constexpr Limbs<12> m = multiple_shifted(modulus, minus_inverse);
    const u32 q = even[0];
    row_shift_multiply_add(even, odd, m.v, q);
}

// q p without a shift: the lowest word becomes zero and the next row or the merge drops it.
CUZK_FN void reduce_last_row(u32 (&even)[12], u32 (&odd)[12]) {
    constexpr Limbs<12> m = modulus;
    const u32 q = even[0] * minus_inverse;
    row_multiply_add(even, odd, m.v, q);
}

// out = t / 2^384 modulo p for the 12 words t, below (1 + 2^-32) p; t is used up.
CUZK_FN void reduce_words(u32 (&out)[12], u32 (&even)[12]) {
    constexpr Limbs<12> m = multiple_shifted(modulus, minus_inverse);
    constexpr Limbs<12> p = modulus;
    u32 odd[12];
    {
        // Row 0: the odd part is still zero.
        const u32 q = even[0];
        const u32 left_over = even[1];
        mad_wide_cc(even[0], even[1], m.v[1], q, even[2], even[3]);
        CUZK_UNROLL
        for (int j = 2; j < 10; j += 2) {
            madc_wide_cc(even[j], even[j + 1], m.v[j + 1], q, even[j + 2], even[j + 3]);
        }
        madc_wide_top(even[10], even[11], m.v[11], q, 0, 0);
        mad_wide_cc(odd[0], odd[1], m.v[0], q, left_over, 0);
        CUZK_UNROLL
        for (int j = 2; j < 12; j += 2) {
            madc_wide_cc(odd[j], odd[j + 1], m.v[j], q, 0, 0);
        }
    }
    CUZK_UNROLL
    for (int i = 1; i < 9; i += 2) {
        reduce_row(odd, even);
        reduce_row(even, odd);
    }
    reduce_row(odd, even);
    // Row 10, then row 11 with the shift of row 10 in its chains; its digit needs the left-over word first.
    reduce_last_row(even, odd);
    odd[0] = add_cc(odd[0], even[1]);
    row_shifted_chains(even, odd, p.v, odd[0] * minus_inverse);
    row_merge_shifted(out, odd, even);
}

}  // namespace fp

CUZK_FN Fp fp_zero() { return Fp{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}; }

CUZK_FN Fp fp_one() {
    constexpr Limbs<12> m = fp::one_limbs;
    Fp r;
    CUZK_UNROLL
    for (int i = 0; i < 12; i++) {
        r.v[i] = m.v[i];
    }
    return r;
}

// a + b, not reduced: A + B < 9.84
CUZK_FN Fp add_raw(const Fp& a, const Fp& b) {
    Fp r;
    add_limbs(r.v, a.v, b.v);
    return r;
}

// 2 a, not reduced: A < 4.92
CUZK_FN Fp dbl_raw(const Fp& a) { return add_raw(a, a); }

// a - b + K p, not reduced: B <= K, A + K < 9.84. The difference wraps around and K p brings it back: a constant minus
// a variable would cost an inversion more for each word.
template <int K>
CUZK_FN Fp sub_raw(const Fp& a, const Fp& b) {
    constexpr Limbs<12> m = fp::Multiple<K>::value();
    Fp r;
    sub_limbs(r.v, a.v, b.v);
    add_limbs(r.v, r.v, m.v);
    return r;
}

// K p - b, not reduced: B <= K
template <int K>
CUZK_FN Fp neg_raw(const Fp& b) {
    constexpr Limbs<12> m = fp::Multiple<K>::value();
    Fp r;
    sub_limbs(r.v, m.v, b.v);
    return r;
}

// a - K p if that is not negative, else a: from below max(K, A) to below max(K, A - K)
template <int K>
CUZK_FN Fp reduce_by(const Fp& a) {
    constexpr Limbs<12> m = fp::Multiple<K>::value();
    Fp r = a;
    subtract_if_not_less(r.v, m.v);
    return r;
}

CUZK_FN Fp add(const Fp& a, const Fp& b) { return reduce_by<2>(add_raw(a, b)); }
CUZK_FN Fp dbl(const Fp& a) { return reduce_by<2>(dbl_raw(a)); }

CUZK_FN Fp sub(const Fp& a, const Fp& b) {
    constexpr Limbs<12> m = fp::Multiple<2>::value();
    Fp r;
    sub_limbs_modulo(r.v, a.v, b.v, m.v);
    return r;
}

CUZK_FN Fp neg(const Fp& a) { return sub(fp_zero(), a); }

// From [0, 2p) to [0, p).
CUZK_FN Fp canonical(const Fp& a) { return reduce_by<1>(a); }

// From [0, 2^384) to [0, p).
CUZK_FN Fp canonical_wide(const Fp& a) { return reduce_by<1>(reduce_by<2>(reduce_by<4>(reduce_by<8>(a)))); }

// Whether all words are zero.
CUZK_FN bool is_exact_zero(const Fp& a) { return limbs_are_zero(a.v); }

// Whether a is 0 modulo p, for any twelve words.
CUZK_CALL bool is_zero_wide_call(Fp a) { return is_exact_zero(canonical_wide(a)); }

// Whether a is 0 modulo p, for a below (K + 1) p: it is one of 0, p, ..., K p. p = -21845 modulo 2^32, so
// their lowest words lie in a window of 21845 K + 1 words that ends at 0, in which other values rarely fall.
template <int K>
CUZK_FN bool is_multiple(const Fp& a) {
    constexpr u32 lowest = fp::modulus.v[0] * static_cast<u32>(K);
    static_assert(0u - lowest == 21845u * K);
    return a.v[0] - lowest <= 0u - lowest && is_zero_wide_call(a);
}

// For a in [0, 2p).
CUZK_FN bool is_zero(const Fp& a) { return is_multiple<1>(a); }

// a b / R: 288 wide products. A < 7.6, below (A B / 9.84 + 1 + 2^-32) p.
CUZK_FN Fp mul(const Fp& a, const Fp& b) {
    u32 even[12];
    u32 odd[12];
    row_multiply(even, odd, a.v, b.v[0]);
    CUZK_UNROLL
    for (int i = 1; i < 11; i += 2) {
        fp::reduce_row(even, odd);
        row_multiply_add(odd, even, a.v, b.v[i]);
        fp::reduce_row(odd, even);
        row_multiply_add(even, odd, a.v, b.v[i + 1]);
    }
    fp::reduce_last_row(even, odd);
    row_shift_multiply_add(even, odd, a.v, b.v[11]);
    fp::reduce_last_row(odd, even);
    Fp r;
    row_merge_shifted(r.v, odd, even);
    return r;
}

// (a b + c d) / R: 432 wide products. A + C < 7.6, below ((A B + C D) / 9.84 + 1 + 2^-32) p.
CUZK_FN Fp mul_sum(const Fp& a, const Fp& b, const Fp& c, const Fp& d) {
    u32 even[12];
    u32 odd[12];
    row_multiply(even, odd, a.v, b.v[0]);
    row_multiply_add(even, odd, c.v, d.v[0]);
    CUZK_UNROLL
    for (int i = 1; i < 11; i += 2) {
        fp::reduce_row(even, odd);
        row_multiply_add(odd, even, a.v, b.v[i]);
        row_multiply_add(odd, even, c.v, d.v[i]);
        fp::reduce_row(odd, even);
        row_multiply_add(even, odd, a.v, b.v[i + 1]);
        row_multiply_add(even, odd, c.v, d.v[i + 1]);
    }
    fp::reduce_last_row(even, odd);
    row_shift_multiply_add(even, odd, a.v, b.v[11]);
    row_multiply_add(odd, even, c.v, d.v[11]);
    fp::reduce_last_row(odd, even);
    Fp r;
    row_merge_shifted(r.v, odd, even);
    return r;
}

// (a b - c d) / R for operands in [0, 2p), in [0, 2p).
CUZK_FN Fp mul_diff(const Fp& a, const Fp& b, const Fp& c, const Fp& d) { return mul_sum(a, b, neg_raw<2>(c), d); }

// a^2 / R: 66 + 12 + 144 wide products. A < 9.2, below (A^2 / 9.84 + 1 + 2^-32) p. The lower half of
// the square is reduced and the upper half added to it.
CUZK_FN Fp sqr(const Fp& a) {
    u32 t[24];
    square_words(t, a.v);
    u32 low[12];
    u32 high[12];
    CUZK_UNROLL
    for (int k = 0; k < 12; k++) {
        low[k] = t[k];
        high[k] = t[k + 12];
    }
    Fp r;
    fp::reduce_words(r.v, low);
    add_limbs(r.v, r.v, high);
    return r;
}

// mul and sqr as functions, operands and result in registers: for code that would outgrow the instruction cache.
CUZK_CALL Fp mul_call(Fp a, Fp b) { return mul(a, b); }
CUZK_CALL Fp sqr_call(Fp a) { return sqr(a); }

}  // namespace cuzk
