// Transforms over Fr, a tile at a time: butterflies, twiddles, exchange through shared memory. docs/ntt.md has the
// mathematics.
//
// A block of 256 threads owns a tile of 2048 elements, each thread eight of them: those whose tile indices differ in
// the three bits from `field` on. A round is a radix-8 butterfly over these; between rounds the tile goes through
// shared memory and the field moves.
//
// Ranges, in multiples of r: elements are below 2 between rounds, also in memory between passes; below 1 in what a
// transform takes and gives. Products are below 1.71, of elements that a pass has just loaded below 1.91. Within a
// butterfly they are signed numbers of nine words, so that sums and differences need no comparison; before a product, and
// at its end, `fold` brings them into [0, 1.553).
#pragma once

#include "cuzk/factor.cuh"
#include "cuzk/shared.cuh"

namespace cuzk {

// What a pass does; the same for all its blocks.
struct alignas(16) NttPass {
    FrFactor i;                // w8^2, w8 the direction's primitive eighth root
    FrFactor half_sum;         // (w8 + w8^3) / 2
    FrFactor half_difference;  // (w8 - w8^3) / 2
    u64 length;          // elements of each transform that are read; those behind them are zero
    u64 total;           // elements of the array: transforms side by side
    u32 log_n;           // elements of a transform
    u32 log_block;       // elements of a block of this pass: what its rounds and those of later passes (of earlier
                         // ones, in the other direction) work on
    u32 log_columns;     // adjacent columns of a tile; 0 where the rows are adjacent themselves
    u32 log_stride;      // between rows
    u32 log_rows;        // what the rounds of this pass work on
    u32 minus;           // whether a product has something taken from it
    u32 last;            // whether results are made canonical
    u32 scaled;          // whether the finest round multiplies by `scale`
};

constexpr u32 ntt_threads = 256;
constexpr u32 ntt_tile = 2048;

// 16 bytes of an element.
struct alignas(16) NttQuad {
    u32 w[4];
};

CUZK_FN Fr ntt_join(const NttQuad& low, const NttQuad& high) {
    return Fr{{low.w[0], low.w[1], low.w[2], low.w[3], high.w[0], high.w[1], high.w[2], high.w[3]}};
}

// A signed number of nine words.
struct FrWide {
    u32 v[9];
};

CUZK_FN FrWide widen(const Fr& a) {
    FrWide r;
    CUZK_UNROLL
    for (int i = 0; i < 8; i++) {
        r.v[i] = a.v[i];
    }
    r.v[8] = 0;
    return r;
}

CUZK_FN FrWide operator+(const FrWide& a, const FrWide& b) {
    FrWide r;
    add_limbs(r.v, a.v, b.v);
    return r;
}

CUZK_FN FrWide operator-(const FrWide& a, const FrWide& b) {
    FrWide r;
    sub_limbs(r.v, a.v, b.v);
    return r;
}

// Multiples of r for `fold`: entry k is the largest not above (k - 16) 2^254, modulo 2^256; two planes of 16 bytes.
constexpr u32 fold_entries = 48;
constexpr u32 fold_bias = 16;

CUZK_FN void fold_prepare(NttQuad* table) {
    const u32 entry = threadIdx.x;
    if (entry >= fold_entries) {
        return;
    }
    constexpr Limbs<8> r = fr::modulus;
    // 2^254 / r = 0.55207; the product is exact for all entries.
    const i64 times = (static_cast<i64>(entry) - static_cast<i64>(fold_bias)) * 36180 >> 16;
    i64 sum = 0;
    NttQuad quad[2];
    CUZK_UNROLL
    for (int i = 0; i < 8; i++) {
        sum += times * static_cast<i64>(r.v[i]);
        quad[i / 4].w[i % 4] = static_cast<u32>(sum);
        sum >>= 32;
    }
    table[entry] = quad[0];
    table[fold_entries + entry] = quad[1];
}

// From [-8 r, 17 r) to [0, r + 2^254), which is below 1.553 r.
CUZK_FN Fr fold(const FrWide& x, const NttQuad* table) {
    const i32 entry = static_cast<i32>((x.v[8] << 2) | (x.v[7] >> 30)) + static_cast<i32>(fold_bias);
    const Fr multiple = ntt_join(table[entry], table[static_cast<i32>(fold_entries) + entry]);
    Fr r;
    r.v[0] = sub_cc(x.v[0], multiple.v[0]);
    CUZK_UNROLL
    for (int i = 1; i < 7; i++) {
        r.v[i] = subc_cc(x.v[i], multiple.v[i]);
    }
    r.v[7] = subc(x.v[7], multiple.v[7]);
    return r;
}

// X_k = sum_j x_j w8^(jk), both in natural order, from [0, 2r) to [0, 1.553 r).
//
// Odd outputs with two products for w8 and w8^3: with p = (w8 + w8^3)/2 (d1 + d3) and m = (w8 - w8^3)/2 (d1 - d3),
// w8 d1 + w8^3 d3 = p + m and w8^3 d1 + w8 d3 = p - m. Four products in all.
CUZK_FN void butterfly8(Fr (&x)[8], const NttPass& pass, const NttQuad* table) {
    const FrWide x0 = widen(x[0]), x1 = widen(x[1]), x2 = widen(x[2]), x3 = widen(x[3]);
    const FrWide x4 = widen(x[4]), x5 = widen(x[5]), x6 = widen(x[6]), x7 = widen(x[7]);
    // Sums in [0, 4), differences in (-2, 2).
    const FrWide s0 = x0 + x4, s1 = x1 + x5, s2 = x2 + x6, s3 = x3 + x7;
    const FrWide d0 = x0 - x4, d1 = x1 - x5, d2 = x2 - x6, d3 = x3 - x7;

    const FrWide p = widen(mul_lazy(pass.half_sum, fold(d1 + d3, table)));
    const FrWide m = widen(mul_lazy(pass.half_difference, fold(d1 - d3, table)));
    const FrWide e2 = widen(mul_lazy(pass.i, fold(d2, table)));
    const FrWide y0 = d0 + e2, y1 = d0 - e2;  // (-2, 4), (-4, 2)
    const FrWide a = p + m, b = p - m;        // [0, 4), (-2, 2)
    x[1] = fold(y0 + a, table);
    x[5] = fold(y0 - a, table);
    x[3] = fold(y1 + b, table);
    x[7] = fold(y1 - b, table);

    const FrWide u0 = s0 + s2, u1 = s1 + s3, v0 = s0 - s2;  // [0, 8), [0, 8), (-4, 4)
    const FrWide v1 = widen(mul_lazy(pass.i, fold(s1 - s3, table)));
    x[0] = fold(u0 + u1, table);  // [0, 16)
    x[4] = fold(u0 - u1, table);  // (-8, 8)
    x[2] = fold(v0 + v1, table);
    x[6] = fold(v0 - v1, table);
}

// The same of four.
CUZK_FN void butterfly4(Fr& a0, Fr& a1, Fr& a2, Fr& a3, const NttPass& pass, const NttQuad* table) {
    const FrWide x0 = widen(a0), x1 = widen(a1), x2 = widen(a2), x3 = widen(a3);
    const FrWide u0 = x0 + x2, u1 = x1 + x3, v0 = x0 - x2;
    const FrWide v1 = widen(mul_lazy(pass.i, fold(x1 - x3, table)));
    a0 = fold(u0 + u1, table);
    a1 = fold(v0 + v1, table);
    a2 = fold(u0 - u1, table);
    a3 = fold(v0 - v1, table);
}

// The same of two.
CUZK_FN void butterfly2(Fr& a0, Fr& a1, const NttQuad* table) {
    const FrWide x0 = widen(a0), x1 = widen(a1);
    a0 = fold(x0 + x1, table);
    a1 = fold(x0 - x1, table);
}

// Three bits the other way round.
CUZK_FN u32 reverse3(u32 j) { return (j & 1) << 2 | (j & 2) | j >> 2; }

// Tables of twiddles, in chunks of 32 columns: (chunk, exponent 1 to 7, quarter of a factor, column).
//
// Level l serves sub-blocks of S = 8^l elements: the twiddle of column c < S and exponent k is t(S, c)^k, where t is
// w_(8S)^c on the domain and w_(16S)^(2c + 1) on the odd coset. A level is whole, or a product of two: the table of
// the low bits of c and that of the high bits.
constexpr u32 ntt_chunk = 7 * 4 * 32;
constexpr u32 ntt_row = 4 * 32;

struct alignas(16) NttLevel {
    u32 low;       // first chunk
    u32 high;      // first chunk of the second factor
    u32 low_bits;  // of c that count for the first factor; all if 32
    u32 unused;
};

// Where the twiddles of one column are.
struct NttColumn {
    const NttQuad* low;
    const NttQuad* high;
    u32 factors;
};

CUZK_FN NttColumn ntt_column(const NttQuad* tables, const NttLevel& level, u32 c) {
    const bool whole = level.low_bits == 32;
    const u32 low = whole ? c : c & ((1u << level.low_bits) - 1);
    const u32 high = whole ? 0 : c >> level.low_bits;
    return NttColumn{
        tables + static_cast<u64>(level.low + (low >> 5)) * ntt_chunk + (low & 31),
        tables + static_cast<u64>(level.high + (high >> 5)) * ntt_chunk + (high & 31),
        whole ? 1u : 2u,
    };
}

// Quarters `step` apart.
CUZK_FN FrFactor ntt_factor(const NttQuad* at, u32 step) {
    FrFactor f;
    CUZK_UNROLL
    for (u32 k = 0; k < 4; k++) {
        const NttQuad quarter = at[k * step];
        u32* const to = k < 2 ? f.v + 4 * k : f.quotient + 4 * (k - 2);
        CUZK_UNROLL
        for (u32 i = 0; i < 4; i++) {
            to[i] = quarter.w[i];
        }
    }
    return f;
}

// The thread's place in a tile while it owns the three bits from `field` on.
CUZK_FN u32 ntt_spread(u32 field) {
    const u32 thread = threadIdx.x;
    return (thread >> field) << (field + 3) | (thread & ((1u << field) - 1));
}

// Where a tile index lies in shared memory, in bytes within a plane of 16-byte halves. Eight lanes in a row never meet in
// a bank, whichever field they own: bits 3 to 5 are added to bits 0 to 2. The map is linear over exclusive or.
CUZK_FN u32 ntt_slot(u32 t) { return (t ^ ((t >> 3) & 7)) * 16; }

// The slots of the eight elements that a thread owns.
struct NttSlots {
    u32 first;
    u32 bit0;
    u32 bit1;
    u32 bit2;
};

// Of the element that comes j-th.
CUZK_FN u32 ntt_slot_of(const NttSlots& slots, u32 j) {
    return slots.first ^ ((j & 1) != 0 ? slots.bit0 : 0) ^ ((j & 2) != 0 ? slots.bit1 : 0) ^
           ((j & 4) != 0 ? slots.bit2 : 0);
}

CUZK_FN NttSlots ntt_slots(u32 field) {
    return NttSlots{ntt_slot(ntt_spread(field)), ntt_slot(1u << field), ntt_slot(2u << field), ntt_slot(4u << field)};
}

// The same with the three bits of j the other way round.
CUZK_FN NttSlots ntt_mirrored(const NttSlots& slots) {
    return NttSlots{slots.first, slots.bit2, slots.bit1, slots.bit0};
}

CUZK_FN void ntt_put(NttQuad* tile, u32 slot, const Fr& x) {
    char* const at = reinterpret_cast<char*>(tile) + slot;
    *reinterpret_cast<NttQuad*>(at) = NttQuad{{x.v[0], x.v[1], x.v[2], x.v[3]}};
    *reinterpret_cast<NttQuad*>(at + 16 * ntt_tile) = NttQuad{{x.v[4], x.v[5], x.v[6], x.v[7]}};
}

CUZK_FN Fr ntt_get(const NttQuad* tile, u32 slot) {
    const char* const at = reinterpret_cast<const char*>(tile) + slot;
    return ntt_join(*reinterpret_cast<const NttQuad*>(at), *reinterpret_cast<const NttQuad*>(at + 16 * ntt_tile));
}

// The eight elements that a thread owns, to the tile and back. To move to another field: scatter, barrier, gather. A
// thread writes where it alone has read before, so no barrier is needed between a gather and the next scatter.
CUZK_FN void ntt_scatter(NttQuad* tile, const Fr (&x)[8], const NttSlots& slots) {
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        ntt_put(tile, ntt_slot_of(slots, j), x[j]);
    }
}

CUZK_FN void ntt_scatter(NttQuad* tile, const Fr (&x)[8], u32 field) { ntt_scatter(tile, x, ntt_slots(field)); }

// As above, but x[j] where x[-j mod 8] would go, if `negated`: the transform by w8 becomes that by its inverse.
CUZK_FN void ntt_scatter_negated(NttQuad* tile, const Fr (&x)[8], const NttSlots& slots, bool negated) {
    const u32 one = negated ? slots.bit1 ^ slots.bit2 : 0;
    const u32 two = negated ? slots.bit2 : 0;
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        ntt_put(tile, ntt_slot_of(slots, j) ^ ((j & 1) != 0 ? one : (j & 3) == 2 ? two : 0), x[j]);
    }
}

CUZK_FN void ntt_gather(const NttQuad* tile, Fr (&x)[8], const NttSlots& slots) {
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        x[j] = ntt_get(tile, ntt_slot_of(slots, j));
    }
}

CUZK_FN void ntt_gather(const NttQuad* tile, Fr (&x)[8], u32 field) { ntt_gather(tile, x, ntt_slots(field)); }

// The index in the array of a tile's first element.
CUZK_FN u64 ntt_base(const NttPass& pass) {
    const u64 block = blockIdx.x;
    if (pass.log_stride == 0) {
        return block * ntt_tile;
    }
    const u32 log_groups = pass.log_stride - pass.log_columns;
    return (block >> log_groups) << pass.log_block | (block & ((u64{1} << log_groups) - 1)) << pass.log_columns;
}

// The index in the array of tile index t.
CUZK_FN u64 ntt_index(const NttPass& pass, u64 base, u32 t) {
    return base + (static_cast<u64>(t >> pass.log_columns) << pass.log_stride) + (t & ((1u << pass.log_columns) - 1));
}

}  // namespace cuzk
