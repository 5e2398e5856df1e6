// One row of a multiplication in even/odd form.
//
// A value T is kept as two arrays of N words (N even), T = even + 2^32 odd. The products of one word b with the even
// words of a lie at even places, so they are disjoint 64-bit pairs and form one carry chain into `even`; those with
// the odd words form one chain into `odd`. The carry out of the even chain has the place of the top word of `odd`.
// No other carry can leave while T < 2^(32(N+1)); docs/kernels.md has the bounds and kernels/tests/bounds.cpp
// checks them.
//
// Dropping the lowest word, which a reduction step has used up, swaps the roles: `odd` becomes the new even part, and
// the old even part, two words down, the new odd part. Its second word is left over at place 0: adding it there starts
// the chain of the new odd part, which begins at place 1.
#pragma once

#include "cuzk/wide.cuh"

namespace cuzk {

// even + 2^32 odd = a b
template <int N>
CUZK_FN void row_multiply(u32 (&even)[N], u32 (&odd)[N], const u32 (&a)[N], u32 b) {
    CUZK_UNROLL
    for (int j = 0; j < N; j += 2) {
        mul_wide(even[j], even[j + 1], a[j], b);
        mul_wide(odd[j], odd[j + 1], a[j + 1], b);
    }
}

// even + 2^32 odd += a b
template <int N>
CUZK_FN void row_multiply_add(u32 (&even)[N], u32 (&odd)[N], const u32 (&a)[N], u32 b) {
    mad_wide_cc(odd[0], odd[1], a[1], b, odd[0], odd[1]);
    CUZK_UNROLL
    for (int j = 2; j < N - 2; j += 2) {
        madc_wide_cc(odd[j], odd[j + 1], a[j + 1], b, odd[j], odd[j + 1]);
    }
    madc_wide_top(odd[N - 2], odd[N - 1], a[N - 1], b, odd[N - 2], odd[N - 1]);
    mad_wide_cc(even[0], even[1], a[0], b, even[0], even[1]);
    CUZK_UNROLL
    for (int j = 2; j < N; j += 2) {
        madc_wide_cc(even[j], even[j + 1], a[j], b, even[j], even[j + 1]);
    }
    odd[N - 1] = addc_top(odd[N - 1], 0);
}

// The part of a shifted row that follows the addition of the left-over word: that addition has set the carry.
// old_even, two words down, plus the odd words of a times b; then the even words of a times b into old_odd.
template <int N>
CUZK_FN void row_shifted_chains(u32 (&old_even)[N], u32 (&old_odd)[N], const u32 (&a)[N], u32 b) {
    CUZK_UNROLL
    for (int j = 0; j < N - 2; j += 2) {
        madc_wide_cc(old_even[j], old_even[j + 1], a[j + 1], b, old_even[j + 2], old_even[j + 3]);
    }
    madc_wide_top(old_even[N - 2], old_even[N - 1], a[N - 1], b, 0, 0);
    mad_wide_cc(old_odd[0], old_odd[1], a[0], b, old_odd[0], old_odd[1]);
    CUZK_UNROLL
    for (int j = 2; j < N; j += 2) {
        madc_wide_cc(old_odd[j], old_odd[j + 1], a[j], b, old_odd[j], old_odd[j + 1]);
    }
    old_even[N - 1] = addc_top(old_even[N - 1], 0);
}

// Drops the lowest word and adds a b. Afterwards old_odd is the even part and old_even the odd part.
template <int N>
CUZK_FN void row_shift_multiply_add(u32 (&old_even)[N], u32 (&old_odd)[N], const u32 (&a)[N], u32 b) {
    old_odd[0] = add_cc(old_odd[0], old_even[1]);
    row_shifted_chains(old_even, old_odd, a, b);
}

// out = (even + 2^32 odd) / 2^32, which fits; the lowest word is used up
template <int N>
CUZK_FN void row_merge_shifted(u32 (&out)[N], const u32 (&even)[N], const u32 (&odd)[N]) {
    out[0] = add_cc(odd[0], even[1]);
    CUZK_UNROLL
    for (int j = 1; j < N - 1; j++) {
        out[j] = addc_cc(odd[j], even[j + 1]);
    }
    out[N - 1] = addc_top(odd[N - 1], 0);
}

// x += a_i (a_first + 2^64 a_(first+2) + ...) at place i + first: one row of the products a_i a_j with i < j.
//
// The row's last pair is new if it ends with a_(N-1). If not, it lies where row i - 1 ended, and its carry goes into the
// last pair of row i + 1, which must be there already.
template <int N>
CUZK_FN void square_row(u32 (&x)[2 * N], const u32 (&a)[N], int i, int first) {
    CUZK_UNROLL
    for (int j = first; j < N; j += 2) {
        const int k = i + j;
        if (i == 0 || (j == first && j == N - 1)) {
            mul_wide(x[k], x[k + 1], a[i], a[j]);
        } else if (j == N - 1) {
            madc_wide_top(x[k], x[k + 1], a[i], a[j], 0, 0);
        } else if (j == first) {
            mad_wide_cc(x[k], x[k + 1], a[i], a[j], x[k], x[k + 1]);
        } else {
            madc_wide_cc(x[k], x[k + 1], a[i], a[j], x[k], x[k + 1]);
        }
        if (i > 0 && j == N - 2) {
            x[k + 2] = addc_cc(x[k + 2], 0);
            x[k + 3] = addc_top(x[k + 3], 0);
        }
    }
}

// t = a^2, with N (N + 1) / 2 wide products: the products a_i a_j with i < j in even/odd form, twice their sum, then the
// squares. Word k of `even` and `odd` has place k; pairs begin at even places in one and at odd places in the other.
template <int N>
CUZK_FN void square_words(u32 (&t)[2 * N], const u32 (&a)[N]) {
    u32 even[2 * N];
    u32 odd[2 * N];
    square_row(odd, a, 0, 1);
    square_row(even, a, 0, 2);
    square_row(even, a, 1, 3);
    CUZK_UNROLL
    for (int i = 1; i < N - 2; i += 2) {
        square_row(odd, a, i + 1, i + 2);
        square_row(odd, a, i, i + 1);
        if (i + 2 < N - 2) {
            square_row(even, a, i + 2, i + 4);
            square_row(even, a, i + 1, i + 3);
        }
    }
    // Places 1 to 2N - 2; `even` has 2 to 2N - 3.
    t[2] = add_cc(even[2], odd[2]);
    CUZK_UNROLL
    for (int k = 3; k < 2 * N - 2; k++) {
        t[k] = addc_cc(even[k], odd[k]);
    }
    t[2 * N - 2] = addc_top(odd[2 * N - 2], 0);
    t[1] = add_cc(odd[1], odd[1]);
    CUZK_UNROLL
    for (int k = 2; k < 2 * N - 1; k++) {
        t[k] = addc_cc(t[k], t[k]);
    }
    t[2 * N - 1] = addc_top(0, 0);
    mad_wide_cc(t[0], t[1], a[0], a[0], 0, t[1]);
    CUZK_UNROLL
    for (int i = 1; i < N - 1; i++) {
        madc_wide_cc(t[2 * i], t[2 * i + 1], a[i], a[i], t[2 * i], t[2 * i + 1]);
    }
    madc_wide_top(t[2 * N - 2], t[2 * N - 1], a[N - 1], a[N - 1], t[2 * N - 2], t[2 * N - 1]);
}

}  // namespace cuzk
