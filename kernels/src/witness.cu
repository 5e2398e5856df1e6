// Packed witnesses (cuzk/witness.cuh), unpacked.
//
// All entries: a grid of one dimension, blocks of up to 256 threads, at least one thread for each element said below; no
// shared memory. Outputs alias nothing.

#include "cuzk/witness.cuh"

using cuzk::Fr;
using cuzk::u32;
using cuzk::u64;

// out[i] = variable first + i, a canonical integer. A thread for each of `count` elements.
// bits and ranks have a word for each 32 variables up to first + count; full (full_count).
extern "C" __global__ void __launch_bounds__(256) cuzk_witness_unpack(
    const u64* bits, const u32* ranks, const Fr* full, u32 full_count, u32 first, Fr* out, u32 count) {
    const u32 i = cuzk::grid_first();
    if (i >= count) {
        return;
    }
    const u32 variable = first + i;
    const u64 both = bits[variable / 32];
    const u32 bit = variable % 32;
    Fr value = cuzk::fr_zero();
    value.v[0] = (static_cast<u32>(both) >> bit) & 1;
    const u32 full_bits = static_cast<u32>(both >> 32);
    if (((full_bits >> bit) & 1) != 0 && full_count != 0) {
        value = cuzk::full_value(cuzk::Witness{bits, ranks, full, full_count}, variable / 32, full_bits, bit);
    }
    out[i] = value;
}

// variables[k] = the variable of list entry k. A thread for each of `words` words of bits and ranks.
// variables (full_count).
extern "C" __global__ void __launch_bounds__(256)
    cuzk_witness_full_variables(const u64* bits, const u32* ranks, u32* variables, u32 full_count, u32 words) {
    const u32 word = cuzk::grid_first();
    if (word >= words) {
        return;
    }
    u32 left = static_cast<u32>(bits[word] >> 32);
    u32 rank = ranks[word];
    while (left != 0 && rank < full_count) {
        variables[rank] = 32 * word + static_cast<u32>(__ffs(static_cast<int>(left))) - 1;
        rank++;
        left &= left - 1;
    }
}
