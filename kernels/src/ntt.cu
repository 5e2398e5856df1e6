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
// `scale` (8): canonical; by which the finest round of all multiplies its k-th output (dif) or input (dit), if
// pass.scaled; that is 1/n and the shift of a coset.

#include "cuzk/ntt.cuh"

using cuzk::Fr;
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

// Multiplies x[k] by the k-th power of the column's twiddle.
CUZK_FN void twist(Fr (&x)[8], const NttQuad* tables, const NttLevel& level, u32 c) {
    const NttColumn column = cuzk::ntt_column(tables, level, c);
    CUZK_NO_UNROLL
    for (u32 factor = 0; factor < column.factors; factor++) {
        const NttQuad* at = factor == 0 ? column.low : column.high;
        CUZK_UNROLL
        for (u32 k = 1; k < 8; k++) {
            x[k] = cuzk::mul_lazy(cuzk::ntt_twiddle(at, k), x[k]);
        }
    }
}

// Multiplies x by one power of the column's twiddle.
CUZK_FN void twist_one(Fr& x, const NttQuad* tables, const NttLevel& level, u32 c, u32 exponent) {
    const NttColumn column = cuzk::ntt_column(tables, level, c);
    CUZK_NO_UNROLL
    for (u32 factor = 0; factor < column.factors; factor++) {
        const NttQuad* at = factor == 0 ? column.low : column.high;
        x = cuzk::mul_lazy(cuzk::ntt_twiddle(at, exponent), x);
    }
}

// Multiplies x[k] by scale[k].
CUZK_FN void rescale(Fr (&x)[8], const Fr* scale) {
    CUZK_UNROLL
    for (u32 k = 0; k < 8; k++) {
        x[k] = cuzk::mul_lazy(scale[k], x[k]);
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

// The twiddles of a round of radix 2 or 4: register j = 4 a + (column) or 2 a + (column); those of the natural output
// or input a, which lies at a with its bits reversed. x^k of radix 8 is x^(4k) of radix 2, x^(2k) of radix 4.
template <u32 LOG_RADIX>
CUZK_FN void twist_short(Fr (&x)[8], const NttQuad* tables, const NttLevel& level, u32 c, u32 log_step) {
    if (LOG_RADIX == 1) {
        CUZK_UNROLL
        for (u32 j = 0; j < 4; j++) {
            twist_one(x[4 + j], tables, level, c + (j << log_step), 4);
        }
    } else {
        CUZK_UNROLL
        for (u32 j = 0; j < 2; j++) {
            twist_one(x[4 + j], tables, level, c + (j << log_step), 2);
            twist_one(x[2 + j], tables, level, c + (j << log_step), 4);
            twist_one(x[6 + j], tables, level, c + (j << log_step), 6);
        }
    }
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

template <u32 LOG_RADIX>
CUZK_FN void dif(const Fr* source, Fr* data, const NttQuad* tables, const NttLevel* levels, const Fr* scale,
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
        const u32 log_sub_block = pass.log_block - LOG_RADIX;
        twist_short<LOG_RADIX>(x, tables, levels[log_sub_block / 3], column_of(pass, field, log_sub_block),
                               log_step(pass, field));
        cuzk::ntt_exchange(tile, x, field, field - LOG_RADIX);
        field -= LOG_RADIX;
    }
    CUZK_NO_UNROLL
    while (true) {
        cuzk::butterfly8(x, pass, multiples);
        const u32 level = level_of(pass, field);
        if (level > 0) {
            twist(x, tables, levels[level], column_of(pass, field, 3 * level));
        } else if (pass.scaled != 0) {
            rescale(x, scale);
        }
        reverse_registers(x);
        if (field == pass.log_columns) {
            break;
        }
        cuzk::ntt_exchange(tile, x, field, field - 3);
        field -= 3;
    }
    if (pass.log_stride == 0) {
        cuzk::ntt_exchange(tile, x, 0, wide_field);
        field = wide_field;
    }
    store(x, data, pass, first_index(pass, field), log_step(pass, field));
}

template <u32 LOG_RADIX>
CUZK_FN void dit(const Fr* source, Fr* data, const NttQuad* tables, const NttLevel* levels, const Fr* scale,
                 const NttPass& pass) {
    CUZK_SHARED(NttQuad, multiples, 2 * cuzk::fold_entries);
    CUZK_SHARED_DYNAMIC(NttQuad, tile);
    const u32 loaded = pass.log_stride == 0 ? wide_field : pass.log_columns;
    Fr x[8];
    load(x, source, pass, first_index(pass, loaded), log_step(pass, loaded));
    cuzk::fold_prepare(multiples);
    __syncthreads();
    u32 field = pass.log_columns;
    if (pass.log_stride == 0) {
        cuzk::ntt_exchange(tile, x, wide_field, field);
    }
    CUZK_NO_UNROLL
    while (true) {
        reverse_registers(x);
        const u32 level = level_of(pass, field);
        if (level > 0) {
            twist(x, tables, levels[level], column_of(pass, field, 3 * level));
        } else if (pass.scaled != 0) {
            rescale(x, scale);
        }
        cuzk::butterfly8(x, pass, multiples);
        const u32 next = field + 3;
        if (next + 3 > pass.log_columns + pass.log_rows) {
            break;
        }
        cuzk::ntt_exchange(tile, x, field, next);
        field = next;
    }
    if (LOG_RADIX < 3) {
        cuzk::ntt_exchange(tile, x, field, field + LOG_RADIX);
        field += LOG_RADIX;
        const u32 log_sub_block = pass.log_block - LOG_RADIX;
        twist_short<LOG_RADIX>(x, tables, levels[log_sub_block / 3], column_of(pass, field, log_sub_block),
                               log_step(pass, field));
        butterfly_short<LOG_RADIX, true>(x, pass, multiples);
    }
    store(x, data, pass, first_index(pass, field), log_step(pass, field));
}

}  // namespace

#define NTT_ENTRY(direction, radix, log_radix)                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                             \
        cuzk_ntt_##direction##_##radix(const Fr* source, Fr* data, const Fr* tables, const u32* levels,              \
                                       const Fr* scale, NttPass pass) {                                              \
        direction<log_radix>(source, data, reinterpret_cast<const NttQuad*>(tables),                                 \
                             reinterpret_cast<const NttLevel*>(levels), scale, pass);                                \
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
extern "C" __global__ void __launch_bounds__(256) cuzk_ntt_small(Fr* data, const Fr* scale, Fr i, u64 count, u32 log_n,
                                                                 u32 length, u32 reversed_in, u32 scaled) {
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
                x[k] = cuzk::mul(scale[k], x[k]);
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
            const Fr v1 = cuzk::mul(i, cuzk::sub(x[1], x[3]));
            x[0] = cuzk::add(u0, u1);
            x[1] = cuzk::add(v0, v1);
            x[2] = cuzk::sub(u0, u1);
            x[3] = cuzk::sub(v0, v1);
        }
        if (scaled != 0 && reversed_in == 0) {
            CUZK_UNROLL
            for (u32 k = 0; k < 4; k++) {
                x[k] = cuzk::mul(scale[k], x[k]);
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
    cuzk_ntt_twiddles(Fr* out, const Fr* roots, u32 log_order, u32 odd, u32 count) {
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
        const Fr value = cuzk::canonical(power);
        at[0] = NttQuad{{value.v[0], value.v[1], value.v[2], value.v[3]}};
        at[32] = NttQuad{{value.v[4], value.v[5], value.v[6], value.v[7]}};
        at += 64;
        power = cuzk::mul_lazy(base, power);
    }
}
