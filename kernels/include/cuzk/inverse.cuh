// Inversion modulo p and r by division steps (Bernstein and Yang, "Fast constant-time gcd computation and modular
// inversion", IACR ePrint 2019/266, in the variant that starts at delta = 1/2).
//
// The number of steps is fixed, so the threads of a warp stay together and the time says nothing about the value.
// For a modulus of b bits (45907 b + 26313) / 19929 steps suffice: 879 for p, 588 for r; they are taken in groups of
// 30, whose transition matrix has entries of at most 2^30 in size. Numbers are signed, in words of 30 bits: all but
// the top word lie in [0, 2^30).
//
// Zero goes to zero.
#pragma once

#include "cuzk/fp.cuh"
#include "cuzk/fr.cuh"

namespace cuzk {
namespace inverse {

inline constexpr i32 mask30 = 0x3fffffff;

// m^-1 mod 2^30 for odd m, at compile time, by Newton's iteration
CUZK_CONST u32 inverse_mod_2_30(u32 m) {
    u32 x = m;  // right to 3 bits
    for (int i = 0; i < 4; i++) {
        x *= 2 - m * x;
    }
    return x & 0x3fffffff;
}

// N words of 32 bits as W words of 30 bits
template <int N, int W>
CUZK_CONST Limbs<W> to_30_const(const Limbs<N>& a) {
    Limbs<W> out{};
    for (int i = 0; i < W; i++) {
        const int bit = 30 * i;
        const int word = bit / 32;
        const int shift = bit % 32;
        u64 pair = word < N ? a.v[word] : 0;
        if (word + 1 < N) {
            pair |= static_cast<u64>(a.v[word + 1]) << 32;
        }
        out.v[i] = static_cast<u32>(pair >> shift) & 0x3fffffff;
    }
    return out;
}

template <int N, int W>
CUZK_FN void to_30(i32 (&out)[W], const u32 (&a)[N]) {
    CUZK_UNROLL
    for (int i = 0; i < W; i++) {
        const int bit = 30 * i;
        const int word = bit / 32;
        const int shift = bit % 32;
        u64 pair = word < N ? a[word] : 0;
        if (word + 1 < N) {
            pair |= static_cast<u64>(a[word + 1]) << 32;
        }
        out[i] = static_cast<i32>(pair >> shift) & mask30;
    }
}

// The other way, for a value in [0, 2^(32N)).
template <int N, int W>
CUZK_FN void from_30(u32 (&out)[N], const i32 (&a)[W]) {
    CUZK_UNROLL
    for (int i = 0; i < N; i++) {
        const int bit = 32 * i;
        const int word = bit / 30;
        const int shift = bit % 30;
        u64 pair = static_cast<u32>(a[word]);
        if (word + 1 < W) {
            pair |= static_cast<u64>(static_cast<u32>(a[word + 1])) << 30;
        }
        // 60 - shift bits are there, and shift is at most 22 here.
        out[i] = static_cast<u32>(pair >> shift);
    }
}

// 2^30 times what a group of 30 steps does to (f, g): (u f + v g, q f + r g).
struct Matrix {
    i32 u, v, q, r;
};

// 30 steps, for which the lowest 30 bits of f and g suffice. zeta = -(delta + 1/2).
CUZK_FN Matrix steps_30(i32& zeta, u32 f, u32 g) {
    u32 u = 1;
    u32 v = 0;
    u32 q = 0;
    u32 r = 1;
    // Products with 0, 1 and -1 rather than masks: they run beside the logic, not in its pipe.
    CUZK_NO_UNROLL
    for (int block = 0; block < 6; block++) {
        CUZK_UNROLL
        for (int i = 0; i < 5; i++) {
            // If g is odd: subtract f from g where delta > 0, else add it. If both hold f becomes the old g.
            const u32 odd = g & 1u;
            const u32 swap = odd & (static_cast<u32>(zeta) >> 31);
            const u32 factor = odd - 2u * swap;
            g += f * factor;
            q += u * factor;
            r += v * factor;
            zeta = static_cast<i32>((static_cast<u32>(zeta) ^ (0u - swap)) - 1u);
            f += g * swap;
            u += q * swap;
            v += r * swap;
            g >>= 1;
            u <<= 1;
            v <<= 1;
        }
    }
    return Matrix{static_cast<i32>(u), static_cast<i32>(v), static_cast<i32>(q), static_cast<i32>(r)};
}

// (f, g) = t (f, g) / 2^30, which is exact.
template <int W>
CUZK_FN void update_fg(i32 (&f)[W], i32 (&g)[W], const Matrix& t) {
    i64 cf = static_cast<i64>(t.u) * f[0] + static_cast<i64>(t.v) * g[0];
    i64 cg = static_cast<i64>(t.q) * f[0] + static_cast<i64>(t.r) * g[0];
    cf >>= 30;
    cg >>= 30;
    CUZK_UNROLL
    for (int i = 1; i < W; i++) {
        const i32 fi = f[i];
        const i32 gi = g[i];
        cf += static_cast<i64>(t.u) * fi + static_cast<i64>(t.v) * gi;
        cg += static_cast<i64>(t.q) * fi + static_cast<i64>(t.r) * gi;
        f[i - 1] = static_cast<i32>(cf) & mask30;
        g[i - 1] = static_cast<i32>(cg) & mask30;
        cf >>= 30;
        cg >>= 30;
    }
    f[W - 1] = static_cast<i32>(cf);
    g[W - 1] = static_cast<i32>(cg);
}

// (d, e) = t (d, e) / 2^30 modulo m; d and e in (-2m, m) before and after.
template <int W>
CUZK_FN void update_de(i32 (&d)[W], i32 (&e)[W], const Matrix& t, const Limbs<W>& m, u32 m_inverse) {
    // Multiples of m: first those that make negative d and e count as d + m and e + m, then those that clear the
    // lowest 30 bits.
    const i32 sd = d[W - 1] >> 31;
    const i32 se = e[W - 1] >> 31;
    i32 md = (t.u & sd) + (t.v & se);
    i32 me = (t.q & sd) + (t.r & se);
    i64 cd = static_cast<i64>(t.u) * d[0] + static_cast<i64>(t.v) * e[0];
    i64 ce = static_cast<i64>(t.q) * d[0] + static_cast<i64>(t.r) * e[0];
    md -= static_cast<i32>((m_inverse * static_cast<u32>(cd) + static_cast<u32>(md)) & 0x3fffffffu);
    me -= static_cast<i32>((m_inverse * static_cast<u32>(ce) + static_cast<u32>(me)) & 0x3fffffffu);
    cd += static_cast<i64>(static_cast<i32>(m.v[0])) * md;
    ce += static_cast<i64>(static_cast<i32>(m.v[0])) * me;
    cd >>= 30;
    ce >>= 30;
    CUZK_UNROLL
    for (int i = 1; i < W; i++) {
        const i32 di = d[i];
        const i32 ei = e[i];
        const i64 mi = static_cast<i32>(m.v[i]);
        cd += static_cast<i64>(t.u) * di + static_cast<i64>(t.v) * ei + mi * md;
        ce += static_cast<i64>(t.q) * di + static_cast<i64>(t.r) * ei + mi * me;
        d[i - 1] = static_cast<i32>(cd) & mask30;
        e[i - 1] = static_cast<i32>(ce) & mask30;
        cd >>= 30;
        ce >>= 30;
    }
    d[W - 1] = static_cast<i32>(cd);
    e[W - 1] = static_cast<i32>(ce);
}

// d = (negate ? -d : d) modulo m in [0, m), for d in (-2m, m).
template <int W>
CUZK_FN void normalize(i32 (&d)[W], i32 negate, const Limbs<W>& m) {
    i32 add = d[W - 1] >> 31;
    CUZK_UNROLL
    for (int i = 0; i < W; i++) {
        d[i] += static_cast<i32>(m.v[i]) & add;
        d[i] = (d[i] ^ negate) - negate;
    }
    CUZK_UNROLL
    for (int i = 0; i + 1 < W; i++) {
        d[i + 1] += d[i] >> 30;
        d[i] &= mask30;
    }
    add = d[W - 1] >> 31;
    CUZK_UNROLL
    for (int i = 0; i < W; i++) {
        d[i] += static_cast<i32>(m.v[i]) & add;
    }
    CUZK_UNROLL
    for (int i = 0; i + 1 < W; i++) {
        d[i + 1] += d[i] >> 30;
        d[i] &= mask30;
    }
}

// scale / a modulo m for a in [0, m), canonical; GROUPS groups of 30 steps.
template <int N, int W, int GROUPS>
CUZK_FN void divide(u32 (&out)[N], const u32 (&a)[N], const Limbs<W>& m, u32 m_inverse, const Limbs<W>& scale) {
    i32 f[W];
    i32 g[W];
    i32 d[W];
    i32 e[W];
    to_30(g, a);
    CUZK_UNROLL
    for (int i = 0; i < W; i++) {
        f[i] = static_cast<i32>(m.v[i]);
        d[i] = 0;
        e[i] = static_cast<i32>(scale.v[i]);
    }
    i32 zeta = -1;
    CUZK_NO_UNROLL
    for (int group = 0; group < GROUPS; group++) {
        const Matrix t = steps_30(zeta, static_cast<u32>(f[0]), static_cast<u32>(g[0]));
        update_de(d, e, t, m, m_inverse);
        update_fg(f, g, t);
    }
    // f is 1 or -1 (or the modulus, for a = 0, where d is 0).
    normalize(d, f[W - 1] >> 31, m);
    from_30(out, d);
}

}  // namespace inverse

// 1/a in Montgomery form: R^2 / (a R) for the word value a R. Takes [0, p), gives [0, p); 30 groups are 900 steps.
CUZK_FN Fp inverse_of(const Fp& a) {
    constexpr Limbs<13> m = inverse::to_30_const<12, 13>(fp::modulus);
    constexpr Limbs<13> r2 = inverse::to_30_const<12, 13>(fp::r2_limbs);
    constexpr u32 m_inverse = inverse::inverse_mod_2_30(fp::modulus.v[0]);
    Fp r;
    inverse::divide<12, 13, 30>(r.v, a.v, m, m_inverse, r2);
    return r;
}

// The same for the scalar field; 20 groups are 600 steps.
CUZK_FN Fr inverse_of(const Fr& a) {
    constexpr Limbs<9> m = inverse::to_30_const<8, 9>(fr::modulus);
    constexpr Limbs<9> r2 = inverse::to_30_const<8, 9>(fr::r2_limbs);
    constexpr u32 m_inverse = inverse::inverse_mod_2_30(fr::modulus.v[0]);
    Fr r;
    inverse::divide<8, 9, 20>(r.v, a.v, m, m_inverse, r2);
    return r;
}

}  // namespace cuzk
