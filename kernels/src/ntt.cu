// Transforms over Fr in passes over memory, each of up to eleven of their log2 n stages. docs/ntt.md has the mathematics.
//
// Entries `dif`: natural to bit-reversed order (Gentleman and Sande), passes from the coarsest to the finest.
// Entries `dit`: bit-reversed to natural order (Cooley and Tukey), passes from the finest to the coarsest.
// The suffix is the radix of the coarsest round of the pass, which is 8 but in the coarsest pass of a transform.
//
// Common to them: a grid of one dimension, one block of exactly 256 threads for each tile of 2048 elements of `data`;
// 65,536 bytes of dynamic shared memory. `data` (pass.total) holds transforms of 2^log_n elements side by side, in
// [0, 2r), in Montgomery form. `source` is `data`, or an array that does not overlap it. In pass:
//   log_block >= log_rows >= 3, of which log_rows is a multiple of 3 plus log2 of a radix below 8; log_rows <= 11;
//   either log_stride = log_block - log_rows and log_columns = 11 - log_rows <= log_stride and total is a multiple of
//   2^log_block, or log_stride = log_columns = 0 and log_block = log_rows.
// `tables` and `levels` as cuzk/ntt.cuh says, of the transform's direction, for levels 1 to that of the coarsest round,
// whose sub-blocks have 2^log_block elements over its radix.
// `scale` (8): by which the finest round of all multiplies its k-th output (dif) or input (dit), if
// pass.scaled; that is 1/n and the shift of a coset.

#include "cuzk/ntt.cuh"

using cuzk::Fr;
using cuzk::FrFactor;
using cuzk::NttColumn;
using cuzk::NttLevel;
using cuzk::NttPass;
using cuzk::NttQuad;
using cuzk::u32;
using cuzk::u64;

namespace {

// Eight elements, `step` apart, from where the thread's first lies. What lies behind the transform's length is zero.
CUZK_FN void load(Fr (&x)[8], const Fr* source, const NttPass& pass, u64 first, u32 log_step) {
    const u64 mask = (u64{1} << pass.log_n) - 1;
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        const u64 i = first + (static_cast<u64>(j) << log_step);
        x[j] = (i & mask) < pass.length && i < pass.total ? source[i] : cuzk::fr_zero();
    }
}

CUZK_FN void store(const Fr (&x)[8], Fr* data, const NttPass& pass, u64 first, u32 log_step) {
    CUZK_UNROLL
    for (u32 j = 0; j < 8; j++) {
        const u64 i = first + (static_cast<u64>(j) << log_step);
        if (i < pass.total) {
            data[i] = pass.last != 0 ? cuzk::canonical(x[j]) : x[j];
        }
    }
}

// Where the thread's first element lies while it owns `field`.
CUZK_FN u64 first_index(const NttPass& pass, u32 field) {
    return cuzk::ntt_index(pass, cuzk::ntt_base(pass), cuzk::ntt_spread(field));
}

// log2 of the distance between elements whose tile indices differ in bit `field`.
CUZK_FN u32 log_step(const NttPass& pass, u32 field) { return field + pass.log_stride - pass.log_columns; }

// A round of radix 8 in `field` has sub-blocks of 8^level elements.
CUZK_FN u32 level_of(const NttPass& pass, u32 field) { return log_step(pass, field) / 3; }

CUZK_FN u32 column_of(const NttPass& pass, u32 field, u32 log_sub_block) {
    return static_cast<u32>(first_index(pass, field)) & ((1u << log_sub_block) - 1);
}

// Multiplies the thread's elements of the tile, but the first unless `all`: that at j, which is the k-th output or input of
// a butterfly for k = j with its three bits reversed, by the k-th of some factors: quarters row / 4 apart, `row` between
// them, and `one` the factor for k = 1. Two products' code in a loop, so that a round stays within the instruction cache;
// the next factor is on its way meanwhile.
CUZK_FN void multiply(NttQuad* tile, u32 field, const NttQuad* one, u32 row, bool all) {
    const cuzk::NttSlots slots = cuzk::ntt_slots(field);
    // j = 0, 2, 4, 6 is k = 0, 2, 1, 3, and j + 1 is k + 4.
    const NttQuad* const zero = one - row;
    FrFactor even = cuzk::ntt_factor(all ? zero : one, row / 4);
    u32 slot = slots.first;
    CUZK_NO_UNROLL
    for (u32 j = 0; j < 8; j += 2) {
        const FrFactor odd = cuzk::ntt_factor(zero + ((j & 2) + (j >> 2) + 4) * row, row / 4);
        if (all || j > 0) {
            cuzk::ntt_put(tile, slot, cuzk::mul_lazy(even, cuzk::ntt_get(tile, slot)));
        }
        if (j < 6) {
            const u32 next = j + 2;
            even = cuzk::ntt_factor(zero + ((next & 2) + (next >> 2)) * row, row / 4);
        }
        const u32 odd_slot = slot ^ slots.bit0;
        cuzk::ntt_put(tile, odd_slot, cuzk::mul_lazy(odd, cuzk::ntt_get(tile, odd_slot)));
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
    const NttColumn column = cuzk::ntt_column(tables, levels[level], column_of(pass, field, 3 * level));
    CUZK_NO_UNROLL
    for (u32 factor = 0; factor < column.factors; factor++) {
        multiply(tile, field, factor == 0 ? column.low : column.high, cuzk::ntt_row, false);
    }
}

// Those of a round of radix 2 or 4: element j = 4 a + (column) or 2 a + (column) is the output or input a with its bits
// reversed. What is x^k in radix 8 is x^(4k) in radix 2 and x^(2k) in radix 4.
template <u32 LOG_RADIX>
CUZK_FN void twist_short(NttQuad* tile, const NttQuad* tables, const NttLevel* levels, const NttPass& pass, u32 field) {
    const u32 log_sub_block = pass.log_block - LOG_RADIX;
    const u32 first_column = column_of(pass, field, log_sub_block);
    const NttLevel level = levels[log_sub_block / 3];
    const cuzk::NttSlots slots = cuzk::ntt_slots(field);
    constexpr u32 columns = 8 >> LOG_RADIX;
    CUZK_NO_UNROLL
    for (u32 j = columns; j < 8; j++) {
        const u32 c = first_column + ((j & (columns - 1)) << log_step(pass, field));
        const u32 exponent = cuzk::reverse3(j & ~(columns - 1)) * columns;
        const NttColumn column = cuzk::ntt_column(tables, level, c);
        const u32 place = cuzk::ntt_slot_of(slots, j);
        Fr x = cuzk::ntt_get(tile, place);
        CUZK_NO_UNROLL
        for (u32 factor = 0; factor < column.factors; factor++) {
            const NttQuad* const at = (factor == 0 ? column.low : column.high) + (exponent - 1) * cuzk::ntt_row;
            x = cuzk::mul_lazy(cuzk::ntt_factor(at, 32), x);
        }
        cuzk::ntt_put(tile, place, x);
    }
}

// The registers of a butterfly in bit-reversed order.
CUZK_FN void reverse_registers(Fr (&x)[8]) {
    Fr t = x[1];
    x[1] = x[4];
    x[4] = t;
    t = x[3];
    x[3] = x[6];
    x[6] = t;
}

// Natural order in; bit-reversed order out for dif, and the reverse for dit, by which registers it names.
template <u32 LOG_RADIX, bool REVERSED_IN>
CUZK_FN void butterfly_short(Fr (&x)[8], const NttPass& pass, const NttQuad* multiples) {
    if (LOG_RADIX == 1) {
        CUZK_UNROLL
        for (u32 j = 0; j < 4; j++) {
            cuzk::butterfly2(x[j], x[4 + j], multiples);
        }
    } else {
        CUZK_UNROLL
        for (u32 j = 0; j < 2; j++) {
            if (REVERSED_IN) {
                const Fr t = x[2 + j];
                x[2 + j] = x[4 + j];
                x[4 + j] = t;
            }
            cuzk::butterfly4(x[j], x[2 + j], x[4 + j], x[6 + j], pass, multiples);
            if (!REVERSED_IN) {
                const Fr t = x[2 + j];
                x[2 + j] = x[4 + j];
                x[4 + j] = t;
            }
        }
    }
}

// The whole tile is loaded and stored through this field where its rows are adjacent: lanes side by side.
constexpr u32 wide_field = 8;

template <u32 LOG_RADIX>
CUZK_FN void dif(const Fr* source, Fr* data, const NttQuad* tables, const NttLevel* levels, const NttQuad* scale,
                 const NttPass& pass) {
    CUZK_SHARED(NttQuad, multiples, 2 * cuzk::fold_entries);
    CUZK_SHARED_DYNAMIC(NttQuad, tile);
    u32 field = pass.log_columns + pass.log_rows - 3;
    Fr x[8];
    load(x, source, pass, first_index(pass, field), log_step(pass, field));
    cuzk::fold_prepare(multiples);
    __syncthreads();
    if (LOG_RADIX < 3) {
        butterfly_short<LOG_RADIX, false>(x, pass, multiples);
        cuzk::ntt_scatter(tile, x, field);
        twist_short<LOG_RADIX>(tile, tables, levels, pass, field);
        __syncthreads();
        field -= LOG_RADIX;
        cuzk::ntt_gather(tile, x, field);
    }
    CUZK_NO_UNROLL
    while (true) {
        cuzk::butterfly8(x, pass, multiples);
        reverse_registers(x);
        cuzk::ntt_scatter(tile, x, field);
        twist(tile, tables, levels, scale, pass, field);
        if (field == pass.log_columns) {
            break;
        }
        __syncthreads();
        field -= 3;
        cuzk::ntt_gather(tile, x, field);
    }
    if (pass.log_stride == 0) {
        __syncthreads();
        field = wide_field;
    }
    cuzk::ntt_gather(tile, x, field);
    store(x, data, pass, first_index(pass, field), log_step(pass, field));
}

template <u32 LOG_RADIX>
CUZK_FN void dit(const Fr* source, Fr* data, const NttQuad* tables, const NttLevel* levels, const NttQuad* scale,
                 const NttPass& pass) {
    CUZK_SHARED(NttQuad, multiples, 2 * cuzk::fold_entries);
    CUZK_SHARED_DYNAMIC(NttQuad, tile);
    u32 field = pass.log_stride == 0 ? wide_field : pass.log_columns;
    Fr x[8];
    load(x, source, pass, first_index(pass, field), log_step(pass, field));
    cuzk::fold_prepare(multiples);
    cuzk::ntt_scatter(tile, x, field);
    __syncthreads();
    field = pass.log_columns;
    CUZK_NO_UNROLL
    while (true) {
        twist(tile, tables, levels, scale, pass, field);
        cuzk::ntt_gather(tile, x, field);
        reverse_registers(x);
        cuzk::butterfly8(x, pass, multiples);
        if (field + 6 > pass.log_columns + pass.log_rows) {
            break;
        }
        cuzk::ntt_scatter(tile, x, field);
        __syncthreads();
        field += 3;
    }
    if (LOG_RADIX < 3) {
        cuzk::ntt_scatter(tile, x, field);
        __syncthreads();
        field += LOG_RADIX;
        twist_short<LOG_RADIX>(tile, tables, levels, pass, field);
        cuzk::ntt_gather(tile, x, field);
        butterfly_short<LOG_RADIX, true>(x, pass, multiples);
    }
    store(x, data, pass, first_index(pass, field), log_step(pass, field));
}

}  // namespace

#define NTT_ENTRY(direction, radix, log_radix)                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                             \
        cuzk_ntt_##direction##_##radix(const Fr* source, Fr* data, const FrFactor* tables, const u32* levels,        \
                                       const FrFactor* scale, NttPass pass) {                                        \
        direction<log_radix>(source, data, reinterpret_cast<const NttQuad*>(tables),                                 \
                             reinterpret_cast<const NttLevel*>(levels), reinterpret_cast<const NttQuad*>(scale),     \
                             pass);                                                                                  \
    }
NTT_ENTRY(dif, 2, 1)
NTT_ENTRY(dif, 4, 2)
NTT_ENTRY(dif, 8, 3)
NTT_ENTRY(dit, 2, 1)
NTT_ENTRY(dit, 4, 2)
NTT_ENTRY(dit, 8, 3)

// Transforms of 1, 2 or 4 elements, 2^log_n, `count` of them side by side, one a thread; any number of blocks of at most
// 256 threads. data (count, 2^log_n), canonical on entry and exit. `length` as in NttPass. With `scaled`, the k-th
// coefficient is multiplied by scale[k]: an input in bit-reversed order if `reversed_in`, else an output, which then is.
extern "C" __global__ void __launch_bounds__(256) cuzk_ntt_small(Fr* data, const FrFactor* scale, FrFactor i, u64 count,
                                                                 u32 log_n, u32 length, u32 reversed_in, u32 scaled) {
    const u32 n = 1u << log_n;
    for (u64 at = cuzk::grid_first(); at < count; at += cuzk::grid_stride()) {
        Fr x[4];
        CUZK_UNROLL
        for (u32 j = 0; j < 4; j++) {
            x[j] = j < length && j < n ? data[(at << log_n) + j] : cuzk::fr_zero();
        }
        if (log_n == 2 && reversed_in != 0) {
            const Fr t = x[1];
            x[1] = x[2];
            x[2] = t;
        }
        if (scaled != 0 && reversed_in != 0) {
            CUZK_UNROLL
            for (u32 k = 0; k < 4; k++) {
                x[k] = cuzk::canonical(cuzk::mul_lazy(scale[k], x[k]));
            }
        }
        if (log_n == 1) {
            const Fr sum = cuzk::add(x[0], x[1]);
            x[1] = cuzk::sub(x[0], x[1]);
            x[0] = sum;
        } else if (log_n == 2) {
            const Fr u0 = cuzk::add(x[0], x[2]);
            const Fr u1 = cuzk::add(x[1], x[3]);
            const Fr v0 = cuzk::sub(x[0], x[2]);
            const Fr v1 = cuzk::canonical(cuzk::mul_lazy(i, cuzk::sub(x[1], x[3])));
            x[0] = cuzk::add(u0, u1);
            x[1] = cuzk::add(v0, v1);
            x[2] = cuzk::sub(u0, u1);
            x[3] = cuzk::sub(v0, v1);
        }
        if (scaled != 0 && reversed_in == 0) {
            CUZK_UNROLL
            for (u32 k = 0; k < 4; k++) {
                x[k] = cuzk::canonical(cuzk::mul_lazy(scale[k], x[k]));
            }
        }
        if (log_n == 2 && reversed_in == 0) {
            const Fr t = x[1];
            x[1] = x[2];
            x[2] = t;
        }
        CUZK_UNROLL
        for (u32 j = 0; j < 4; j++) {
            if (j < n) {
                data[(at << log_n) + j] = x[j];
            }
        }
    }
}

// Twiddles of columns 0 to count - 1, one column a thread; any number of blocks of at most 256 threads.
// out: ceil(count / 32) chunks. roots (33): a primitive 2^b-th root at b, canonical. The k-th power of
// w^c for `odd` = 0, of w^c v otherwise; w = roots[log_order], v = roots[log_order + 1].
extern "C" __global__ void __launch_bounds__(256)
    cuzk_ntt_twiddles(FrFactor* out, const Fr* roots, u32 log_order, u32 odd, u32 count) {
    const u32 c = cuzk::grid_first();
    if (c >= count) {
        return;
    }
    Fr base = odd != 0 ? roots[log_order + 1] : cuzk::fr_one();
    CUZK_NO_UNROLL
    for (u32 b = 0; c >> b != 0; b++) {
        if ((c >> b & 1) != 0) {
            base = cuzk::mul_lazy(roots[log_order - b], base);
        }
    }
    base = cuzk::canonical(base);
    NttQuad* at = reinterpret_cast<NttQuad*>(out) + static_cast<u64>(c >> 5) * cuzk::ntt_chunk + (c & 31);
    Fr power = base;
    CUZK_NO_UNROLL
    for (u32 k = 1; k < 8; k++) {
        const FrFactor factor = cuzk::to_factor(cuzk::canonical(power));
        CUZK_UNROLL
        for (u32 quarter = 0; quarter < 4; quarter++) {
            const u32* const from = quarter < 2 ? factor.v + 4 * quarter : factor.quotient + 4 * (quarter - 2);
            at[32 * quarter] = NttQuad{{from[0], from[1], from[2], from[3]}};
        }
        at += cuzk::ntt_row;
        power = cuzk::mul_lazy(base, power);
    }
}
