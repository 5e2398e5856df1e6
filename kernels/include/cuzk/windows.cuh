// Signed digits of scalars, windows of one or two widths.
//
// A scalar x below r stands for k = x or x - r, whichever has |k| < r/2 < 2^254. The windows have 255 bits in all. With
// B = sum_i 2^(first_i + width_i - 1), the value k + B is neither negative nor as large as 2^255 for widths of at least
// 4 (B <= 2^254 (1 + 1/16 + 1/256 + ..) and r/2 = 0.906 2^254), and digit i is window i of it less 2^(width_i - 1), which
// lies in [-2^(width_i - 1), 2^(width_i - 1) - 1]. Each digit is independent of the others.
#pragma once

#include "cuzk/fr.cuh"

namespace cuzk {

// Windows are in groups of `sets`, whose bits begin `group_bits` after those of the group before: windows of one place in
// their groups share their buckets, where multiples of the bases by 2^group_bits and so on are at hand. Without such there
// is one group. In a group, the first `wide` windows have `width` bits, the others one less; the last window ends at bit
// 255. Set s has 2^(width_s - 1) buckets, one for each magnitude from 1; their numbers begin where those of the set before
// end.
struct Windows {
    u32 bias[8];
    u32 width;
    u32 wide;
    u32 sets;
    u32 group_bits;
};

inline constexpr u32 window_bits = 255;

// Of the window at place s of its group, or with one group of window s.
CUZK_FN u32 set_width(const Windows& windows, u32 s) { return windows.width - (s < windows.wide ? 0 : 1); }

CUZK_FN u32 first_bit(const Windows& windows, u32 w) {
    const u32 s = w % windows.sets;
    return w / windows.sets * windows.group_bits + s * windows.width - (s > windows.wide ? s - windows.wide : 0);
}

CUZK_FN u32 window_width(const Windows& windows, u32 w) {
    const u32 width = set_width(windows, w % windows.sets);
    const u32 left = window_bits - first_bit(windows, w);
    return width < left ? width : left;
}

// The number of the first bucket of set s; of the one behind the last, the number of all buckets.
CUZK_FN u32 first_bucket(const Windows& windows, u32 s) {
    const u32 wide = s < windows.wide ? s : windows.wide;
    return (wide << (windows.width - 1)) + ((s - wide) << (windows.width - 2));
}

// k + B of a scalar below 2^256, which is reduced first.
CUZK_FN Fr recode(const Windows& windows, const Fr& scalar) {
    constexpr Limbs<8> m = fr::modulus;
    // (r + 1) / 2
    constexpr Limbs<8> half = {{0x80000001, 0x7fffffff, 0x7fff2dff, 0xa9ded201, 0x04d0ec02, 0x199cec04, 0x94cebea4,
                                0x39f6d3a9}};
    Fr x = canonical(canonical(scalar));
    u32 ignored[8];
    const bool is_lower = sub_limbs_borrow(ignored, x.v, half.v) != 0;
    Fr sum;
    add_limbs(sum.v, x.v, windows.bias);
    u32 subtrahend[8];
    CUZK_UNROLL
    for (int i = 0; i < 8; i++) {
        subtrahend[i] = is_lower ? 0 : m.v[i];
    }
    Fr out;
    sub_limbs(out.v, sum.v, subtrahend);
    return out;
}

// A digit: its magnitude, 0 for none, and whether it is negative.
struct Digit {
    u32 magnitude;
    bool is_negative;
};

// The digit of `width` bits that begins at bit `shift` of a word and ends in it or in the next one.
CUZK_FN Digit digit_at(u32 shift, u32 width, u32 word, u32 next) {
    const u64 pair = (static_cast<u64>(next) << 32) | word;
    const u32 bits = static_cast<u32>(pair >> shift) & ((1u << width) - 1);
    const u32 middle = 1u << (width - 1);
    return bits >= middle ? Digit{bits - middle, false} : Digit{middle - bits, true};
}

// Window w, from the word in which it begins and the next one.
CUZK_FN Digit digit(const Windows& windows, u32 w, u32 word, u32 next) {
    return digit_at(first_bit(windows, w) % 32, window_width(windows, w), word, next);
}

}  // namespace cuzk
