// Products of elements of Fr with factors known in advance (Shoup's multiplication, as in V. Shoup's NTL and in
// D. Harvey, "Faster arithmetic for number-theoretic transforms", 2014).
//
// A factor w < r, not in Montgomery form, carries W = floor(2^256 w / r). For any x of eight words and
// q = floor(x W / 2^256), x w - q r lies in [0, 2r): W is short of 2^256 w / r by less than 1, which costs less than
// x / 2^256, and q of its quotient by less than 1. So only the upper half of x W is needed and, as the result has eight
// words, the lower halves of x w and q r: 86 wide products and 14 narrow ones, none waiting for a digit, where a
// Montgomery product takes 112. Columns 0 to 5 of x W are left out: they are below 2^-29 of a unit of q. The result is
// below (1 + x / 2^256 + 2^-29) r, and in Montgomery form if x is.
#pragma once

#include "cuzk/fr.cuh"

namespace cuzk {

struct alignas(16) FrFactor {
    u32 v[8];
    u32 quotient[8];
};

namespace factor {

// -1/r modulo 2^256
inline constexpr Limbs<8> minus_inverse = {{0xffffffff, 0xfffffffe, 0xfffe5bfd, 0x53ba5bff, 0x0004ec06,
                                            0x181b2c17, 0xd7bf2839, 0x3d443ab0}};

// 2^256 - r. Its lowest words are 2^32 - 1 and 0.
CUZK_CONST Limbs<8> negated(const Limbs<8>& m) {
    Limbs<8> out{};
    u64 carry = 1;
    for (int i = 0; i < 8; i++) {
        carry += static_cast<u32>(~m.v[i]);
        out.v[i] = static_cast<u32>(carry);
        carry >>= 32;
    }
    return out;
}

// floor(x W / 2^256), but for columns 0 to 5. Word c - 6 of `even` and c - 7 of `odd` have place c.
CUZK_FN void quotient(u32 (&q)[8], const u32 (&w)[8], const u32 (&x)[8]) {
    u32 even[10];
    u32 odd[8];
    CUZK_UNROLL
    for (int i = 0; i < 8; i++) {
        const int lowest = i < 6 ? 6 : i;
        // The chain that ends in a new pair, at place i + 7, then the other; its carry has the place of the new
        // pair's upper word.
        CUZK_UNROLL
        for (int chain = 0; chain < 2; chain++) {
            const int last = i + 7 - chain;
            const int first = lowest + ((lowest ^ last) & 1);
            CUZK_UNROLL
            for (int c = first; c <= last; c += 2) {
                u32& lo = (c & 1) != 0 ? odd[c - 7] : even[c - 6];
                u32& hi = (c & 1) != 0 ? odd[c - 6] : even[c - 5];
                const bool is_new = c == i + 7 || i == 0;
                if (is_new && c == first) {
                    mul_wide(lo, hi, w[c - i], x[i]);
                } else if (is_new) {
                    madc_wide_top(lo, hi, w[c - i], x[i], 0, 0);
                } else if (c == first) {
                    mad_wide_cc(lo, hi, w[c - i], x[i], lo, hi);
                } else {
                    madc_wide_cc(lo, hi, w[c - i], x[i], lo, hi);
                }
            }
            if (chain == 1 && i > 0) {
                u32& top = (i & 1) != 0 ? even[i + 2] : odd[i + 1];
                top = addc_top(top, 0);
            }
        }
    }
    (void)add_cc(even[1], odd[0]);
    CUZK_UNROLL
    for (int k = 0; k < 7; k++) {
        q[k] = addc_cc(even[k + 2], odd[k + 1]);
    }
    q[7] = addc_top(even[9], 0);
}

// even + 2^32 odd += a_first 2^(32 first) b at place i, modulo 2^256; new if FRESH, else added. Word c of both has
// place c.
template <bool FRESH>
CUZK_FN void low_row(u32 (&even)[8], u32 (&odd)[8], const u32 (&a)[8], u32 b, int i, int first) {
    CUZK_UNROLL
    for (int parity = 0; parity < 2; parity++) {
        const int begin = i + first + ((i + first + parity) & 1);
        CUZK_UNROLL
        for (int c = begin; c < 7; c += 2) {
            u32& lo = parity == 0 ? even[c] : odd[c];
            u32& hi = parity == 0 ? even[c + 1] : odd[c + 1];
            if (FRESH) {
                mul_wide(lo, hi, a[c - i], b);
            } else if (c == 6 && c == begin) {
                mad_wide(lo, hi, a[c - i], b, lo, hi);
            } else if (c == 6) {
                madc_wide(lo, hi, a[c - i], b, lo, hi);
            } else if (c == begin) {
                mad_wide_cc(lo, hi, a[c - i], b, lo, hi);
            } else {
                madc_wide_cc(lo, hi, a[c - i], b, lo, hi);
            }
        }
        if (parity == 1 && i + first <= 7) {
            if (FRESH) {
                odd[7] = a[7 - i] * b;
            } else if (begin < 7) {
                odd[7] = madc_lo(a[7 - i], b, odd[7]);
            } else {
                odd[7] += a[7 - i] * b;
            }
        }
    }
}

}  // namespace factor

// x w, below (1 + x / 2^256 + 2^-29) r
CUZK_FN Fr mul_lazy(const FrFactor& w, const Fr& x) {
    constexpr Limbs<8> m = factor::negated(fr::modulus);
    static_assert(m.v[0] == 0xffffffff && m.v[1] == 0);
    u32 q[8];
    factor::quotient(q, w.quotient, x.v);
    u32 even[8];
    u32 odd[8];
    factor::low_row<true>(even, odd, w.v, x.v[0], 0, 0);
    CUZK_UNROLL
    for (int i = 1; i < 8; i++) {
        factor::low_row<false>(even, odd, w.v, x.v[i], i, 0);
    }
    // Words 2 to 7 of -r; the lowest two add 2^32 q - q.
    CUZK_UNROLL
    for (int i = 0; i < 6; i++) {
        factor::low_row<false>(even, odd, m.v, q[i], i, 2);
    }
    Fr r;
    r.v[0] = even[0];
    r.v[1] = add_cc(even[1], odd[1]);
    CUZK_UNROLL
    for (int k = 2; k < 7; k++) {
        r.v[k] = addc_cc(even[k], odd[k]);
    }
    r.v[7] = addc(even[7], odd[7]);
    r.v[1] = add_cc(r.v[1], q[0]);
    CUZK_UNROLL
    for (int k = 2; k < 7; k++) {
        r.v[k] = addc_cc(r.v[k], q[k - 1]);
    }
    r.v[7] = addc(r.v[7], q[6]);
    sub_limbs(r.v, r.v, q);
    return r;
}

// The factor of an element, canonical and in Montgomery form: W = (2^256 w - m) / r for m = 2^256 w mod r, which is that
// form itself; so W = -m / r modulo 2^256.
CUZK_FN FrFactor to_factor(const Fr& element) {
    constexpr Limbs<8> inverse = factor::minus_inverse;
    const Fr one{{1, 0, 0, 0, 0, 0, 0, 0}};
    const Fr w = canonical(mul_lazy(one, element));
    FrFactor f;
    u64 column = 0;
    u64 above = 0;
    CUZK_UNROLL
    for (int k = 0; k < 8; k++) {
        f.v[k] = w.v[k];
        CUZK_UNROLL
        for (int i = 0; i <= k; i++) {
            const u64 product = static_cast<u64>(element.v[i]) * inverse.v[k - i];
            column += static_cast<u32>(product);
            above += product >> 32;
        }
        f.quotient[k] = static_cast<u32>(column);
        column = above + (column >> 32);
        above = 0;
    }
    return f;
}

}  // namespace cuzk
