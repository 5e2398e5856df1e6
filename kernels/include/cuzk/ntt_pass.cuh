// What a pass of a transform over Fr does with its tile before, after and between butterflies: loads, stores, products,
// twiddles.
#pragma once

#include "cuzk/ntt.cuh"

namespace cuzk {

// Eight elements, `step` apart, from where the thread's first lies. What lies behind the transform's length is zero.
CUZK_FN void load(Fr (&x)[8], const Fr* source, const NttPass& pass, u64 first, u32 log_step) {
    const u64 mask = (u64{1} << pass.log_n) - 1;
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        const u64 i = first + (static_cast<u64>(j) << log_step);
        x[j] = (i & mask) < pass.length && i < pass.total ? source[i] : fr_zero();
    }
}

CUZK_FN void store(const Fr (&x)[8], Fr* data, const NttPass& pass, u64 first, u32 log_step) {
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        const u64 i = first + (static_cast<u64>(j) << log_step);
        if (i < pass.total) {
            data[i] = pass.last != 0 ? canonical(x[j]) : x[j];
        }
    }
}

// Where the thread's first element lies while it owns `field`.
CUZK_FN u64 first_index(const NttPass& pass, u32 field) {
    return ntt_index(pass, ntt_base(pass), ntt_spread(field));
}

// log2 of the distance between elements whose tile indices differ in bit `field`.
CUZK_FN u32 log_step(const NttPass& pass, u32 field) { return field + pass.log_stride - pass.log_columns; }

// A round of radix 8 in `field` has sub-blocks of 8^level elements.
CUZK_FN u32 level_of(const NttPass& pass, u32 field) { return log_step(pass, field) / 3; }

CUZK_FN u32 column_of(const NttPass& pass, u32 field, u32 log_sub_block) {
    return static_cast<u32>(first_index(pass, field)) & ((1u << log_sub_block) - 1);
}

// Multiplies the thread's elements of the tile, but the first unless `all`: that at j, the k-th output or input of
// a butterfly for k = j with its three bits reversed, by the k-th of some factors: quarters row / 4 apart, `row` between
// them, and `one` the factor for k = 1. Two products' code in a loop, so that a round stays within the instruction cache;
// the next factor is on its way meanwhile.
CUZK_FN void multiply(NttQuad* tile, u32 field, const NttQuad* one, u32 row, bool all) {
    const NttSlots slots = ntt_slots(field);
    // j = 0, 2, 4, 6 is k = 0, 2, 1, 3, and j + 1 is k + 4.
    const NttQuad* const zero = one - row;
    FrFactor even = ntt_factor(all ? zero : one, row / 4);
    u32 slot = slots.first;
    CUZK_NO_UNROLL
    for (u32 j = 0; j < 8; j += 2) {
        const FrFactor odd = ntt_factor(zero + ((j & 2) + (j >> 2) + 4) * row, row / 4);
        if (all || j > 0) {
            ntt_put(tile, slot, mul_lazy(even, ntt_get(tile, slot)));
        }
        if (j < 6) {
            const u32 next = j + 2;
            even = ntt_factor(zero + ((next & 2) + (next >> 2)) * row, row / 4);
        }
        const u32 odd_slot = slot ^ slots.bit0;
        ntt_put(tile, odd_slot, mul_lazy(odd, ntt_get(tile, odd_slot)));
        slot ^= slots.bit1 ^ ((j & 2) != 0 ? slots.bit2 : 0);
    }
}

// The factors of a round of radix 8 in `field`, to the tile.
CUZK_FN void twist(NttQuad* tile, const NttQuad* tables, const NttLevel* levels, const NttQuad* scale, const NttPass& pass,
                   u32 field) {
    const u32 level = level_of(pass, field);
    if (level == 0) {
        if (pass.scaled != 0) {
            multiply(tile, field, scale + 4, 4, true);
        }
        return;
    }
    const NttColumn column = ntt_column(tables, levels[level], column_of(pass, field, 3 * level));
    CUZK_NO_UNROLL
    for (u32 factor = 0; factor < column.factors; factor++) {
        multiply(tile, field, factor == 0 ? column.low : column.high, ntt_row, false);
    }
}

// Those of a round of radix 2 or 4: element j = 4 a + (column) or 2 a + (column) is the output or input a with its bits
// reversed. What is x^k in radix 8 is x^(4k) in radix 2 and x^(2k) in radix 4.
template <u32 LOG_RADIX>
CUZK_FN void twist_short(NttQuad* tile, const NttQuad* tables, const NttLevel* levels, const NttPass& pass, u32 field) {
    const u32 log_sub_block = pass.log_block - LOG_RADIX;
    const u32 first_column = column_of(pass, field, log_sub_block);
    const NttLevel level = levels[log_sub_block / 3];
    const NttSlots slots = ntt_slots(field);
    constexpr u32 columns = 8 >> LOG_RADIX;
    CUZK_NO_UNROLL
    for (u32 j = columns; j < 8; j++) {
        const u32 c = first_column + ((j & (columns - 1)) << log_step(pass, field));
        const u32 exponent = reverse3(j & ~(columns - 1)) * columns;
        const NttColumn column = ntt_column(tables, level, c);
        const u32 place = ntt_slot_of(slots, j);
        Fr x = ntt_get(tile, place);
        CUZK_NO_UNROLL
        for (u32 factor = 0; factor < column.factors; factor++) {
            const NttQuad* const at = (factor == 0 ? column.low : column.high) + (exponent - 1) * ntt_row;
            x = mul_lazy(ntt_factor(at, 32), x);
        }
        ntt_put(tile, place, x);
    }
}

// What a pass takes is a b: to the tile, in a loop, the next elements on their way.
CUZK_FN void load_product(NttQuad* tile, const Fr* a, const Fr* b, const NttPass& pass, u32 field) {
    const NttSlots slots = ntt_slots(field);
    const u64 mask = (u64{1} << pass.log_n) - 1;
    u64 i = first_index(pass, field);
    const u64 step = u64{1} << log_step(pass, field);
    const auto present = [&] { return (i & mask) < pass.length && i < pass.total; };
    Fr x = present() ? a[i] : fr_zero();
    Fr y = present() ? b[i] : fr_zero();
    CUZK_NO_UNROLL
    for (u32 j = 0; j < 8; j++) {
        i += step;
        const bool more = j < 7 && present();
        const Fr next_x = more ? a[i] : fr_zero();
        const Fr next_y = more ? b[i] : fr_zero();
        ntt_put(tile, ntt_slot_of(slots, j), mul_lazy(x, y));
        x = next_x;
        y = next_y;
    }
}

// What a pass gives is data x / R, or data x / R - c, to the place of `data`.
CUZK_FN void store_product(NttQuad* tile, const Fr (&x)[8], Fr* data, const Fr* c, const NttPass& pass, u32 field) {
    const NttSlots slots = ntt_slots(field);
    ntt_scatter(tile, x, slots);
    u64 i = first_index(pass, field);
    const u64 step = u64{1} << log_step(pass, field);
    Fr factor = i < pass.total ? data[i] : fr_zero();
    CUZK_NO_UNROLL
    for (u32 j = 0; j < 8; j++) {
        const u64 next = i + step;
        const Fr next_factor = j < 7 && next < pass.total ? data[next] : fr_zero();
        if (i < pass.total) {
            const Fr less = pass.minus != 0 ? c[i] : fr_zero();
            Fr value = mul_lazy(factor, ntt_get(tile, ntt_slot_of(slots, j)));
            if (pass.minus != 0) {
                value = sub_lazy(value, less);
            }
            data[i] = pass.last != 0 ? canonical(value) : value;
        }
        i = next;
        factor = next_factor;
    }
}

}  // namespace cuzk
