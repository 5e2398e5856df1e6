// A packed witness: two bits a variable, and the values that are neither 0 nor 1 in a list of their own.
//
// bits[i] is about variables 32 i to 32 i + 31: its low half says which are 1, its high half which are in the list.
// ranks[i] is how many list entries there are before those. The list holds canonical integers, in variable order.
// Whatever the arrays hold, nothing is read outside of them.
#pragma once

#include "cuzk/fr.cuh"
#include "cuzk/kernel.cuh"

namespace cuzk {

struct Witness {
    const u64* bits;
    const u32* ranks;
    const Fr* full;
    u32 full_count;
};

// Where batches of bases begin, as ranks in a base set; the next one is the end of the last.
struct RankBounds {
    u32 at[64];
};

// The list entry of the variable at `bit` of a word, which has one; the last one where the ranks lead astray.
CUZK_FN Fr full_value(const Witness& witness, u32 word, u32 full_bits, u32 bit) {
    const u32 before = full_bits & ((1u << bit) - 1);
    const u32 index = witness.ranks[word] + static_cast<u32>(__popc(before));
    return witness.full[index < witness.full_count ? index : witness.full_count - 1];
}

}  // namespace cuzk
