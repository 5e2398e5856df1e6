// Multiples of one point: which entries of its table each of them is the sum of.
//
// The table has d 2^b P for each window of the scalars, b its first bit and d the magnitudes of its digits, at the number of
// the bucket that stands for d (cuzk/windows.cuh). So a multiple is the sum of one entry a window, with the sign of the digit.

#include "cuzk/pair_plan.cuh"
#include "cuzk/shared.cuh"
#include "cuzk/windows.cuh"

using cuzk::u32;
using cuzk::u64;

// entries[i][w] = the table's entry for digit w of scalars[i], bit 31 for a negative one; a digit of 0 names an entry that is
// in no table. offsets[i] = window_count i. Grid of one dimension, one thread a scalar, blocks of exactly 128; scalars (count),
// any value; entries (count, window_count); offsets (count + 1).
extern "C" __global__ void __launch_bounds__(128) cuzk_fixed_base_entries(
    const cuzk::Scalar* scalars, u32 count, cuzk::Windows windows, u32 window_count, u32* entries, u32* offsets) {
    // The words of a recoded scalar and a zero beyond, thread by thread.
    CUZK_SHARED(u32, words, 9 * 128);
    const u32 i = cuzk::grid_first();
    if (i > count) {
        return;
    }
    offsets[i] = i * window_count;
    if (i == count) {
        return;
    }
    const cuzk::Fr recoded = cuzk::recode(windows, scalars[i]);
    u32* const mine = words + threadIdx.x;
    CUZK_UNROLL
    for (u32 k = 0; k < 8; k++) {
        mine[k * 128] = recoded.v[k];
    }
    mine[8 * 128] = 0;
    u32* const out = entries + static_cast<u64>(i) * window_count;
    for (u32 w = 0; w < window_count; w++) {
        const u32 word = cuzk::first_bit(windows, w) / 32;
        const cuzk::Digit digit = cuzk::digit(windows, w, mine[word * 128], mine[(word + 1) * 128]);
        const u32 index = cuzk::first_bucket(windows, w) + digit.magnitude - 1;
        out[w] = digit.magnitude == 0 ? cuzk::pair_plan::index_mask
                                      : index | (digit.is_negative ? cuzk::pair_plan::negate_bit : 0);
    }
}
