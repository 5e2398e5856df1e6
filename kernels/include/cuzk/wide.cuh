// Additions and subtractions over whole limb arrays, and constants made from them.
#pragma once

#include "cuzk/carry.cuh"

namespace cuzk {

// out = a + b; the carry out of the top word is lost
template <int N>
CUZK_FN void add_limbs(u32 (&out)[N], const u32 (&a)[N], const u32 (&b)[N]) {
    out[0] = add_cc(a[0], b[0]);
    CUZK_UNROLL
    for (int i = 1; i < N - 1; i++) {
        out[i] = addc_cc(a[i], b[i]);
    }
    out[N - 1] = addc(a[N - 1], b[N - 1]);
}

// out = a + b; the carry
template <int N>
CUZK_FN u32 add_limbs_carry(u32 (&out)[N], const u32 (&a)[N], const u32 (&b)[N]) {
    out[0] = add_cc(a[0], b[0]);
    CUZK_UNROLL
    for (int i = 1; i < N; i++) {
        out[i] = addc_cc(a[i], b[i]);
    }
    return addc(0, 0);
}

// out = a - b modulo 2^(32N)
template <int N>
CUZK_FN void sub_limbs(u32 (&out)[N], const u32 (&a)[N], const u32 (&b)[N]) {
    out[0] = sub_cc(a[0], b[0]);
    CUZK_UNROLL
    for (int i = 1; i < N - 1; i++) {
        out[i] = subc_cc(a[i], b[i]);
    }
    out[N - 1] = subc(a[N - 1], b[N - 1]);
}

// out = a - b modulo 2^(32N); all ones if it borrowed, else zero
template <int N>
CUZK_FN u32 sub_limbs_borrow(u32 (&out)[N], const u32 (&a)[N], const u32 (&b)[N]) {
    out[0] = sub_cc(a[0], b[0]);
    CUZK_UNROLL
    for (int i = 1; i < N; i++) {
        out[i] = subc_cc(a[i], b[i]);
    }
    return subc(0, 0);
}

// a - m if that is not negative, else a
template <int N>
CUZK_FN void subtract_if_not_less(u32 (&a)[N], const u32 (&m)[N]) {
    u32 t[N];
    const u32 borrow = sub_limbs_borrow(t, a, m);
    CUZK_UNROLL
    for (int i = 0; i < N; i++) {
        a[i] = borrow != 0 ? a[i] : t[i];
    }
}

// out = a - b, plus m if that borrowed
template <int N>
CUZK_FN void sub_limbs_modulo(u32 (&out)[N], const u32 (&a)[N], const u32 (&b)[N], const u32 (&m)[N]) {
    const u32 mask = sub_limbs_borrow(out, a, b);
    out[0] = add_cc(out[0], m[0] & mask);
    CUZK_UNROLL
    for (int i = 1; i < N - 1; i++) {
        out[i] = addc_cc(out[i], m[i] & mask);
    }
    out[N - 1] = addc(out[N - 1], m[N - 1] & mask);
}

// Whether all limbs are zero. The lowest limb nearly always decides.
template <int N>
CUZK_FN bool limbs_are_zero(const u32 (&a)[N]) {
    if (a[0] != 0) {
        return false;
    }
    u32 any = 0;
    CUZK_UNROLL
    for (int i = 1; i < N; i++) {
        any |= a[i];
    }
    return any == 0;
}

template <int N>
CUZK_FN bool limbs_are_equal(const u32 (&a)[N], const u32 (&b)[N]) {
    u32 any = 0;
    CUZK_UNROLL
    for (int i = 0; i < N; i++) {
        any |= a[i] ^ b[i];
    }
    return any == 0;
}

// k m, at compile time
template <int N>
CUZK_CONST Limbs<N> multiple(const Limbs<N>& m, u32 k) {
    Limbs<N> out{};
    u64 carry = 0;
    for (int i = 0; i < N; i++) {
        carry += static_cast<u64>(m.v[i]) * k;
        out.v[i] = static_cast<u32>(carry);
        carry >>= 32;
    }
    return out;
}

// (k m + 1) / 2^32, at compile time; k m is -1 modulo 2^32
template <int N>
CUZK_CONST Limbs<N> multiple_shifted(const Limbs<N>& m, u32 k) {
    Limbs<N> out{};
    u64 carry = static_cast<u64>(m.v[0]) * k + 1;
    carry >>= 32;
    for (int i = 1; i < N; i++) {
        carry += static_cast<u64>(m.v[i]) * k;
        out.v[i - 1] = static_cast<u32>(carry);
        carry >>= 32;
    }
    out.v[N - 1] = static_cast<u32>(carry);
    return out;
}

}  // namespace cuzk
