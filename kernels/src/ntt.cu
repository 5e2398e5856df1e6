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
//
// Entries `dif_product` are a transform's first pass and take source other / R: two arrays as long as `data`, canonical, that
// do not overlap it. Entries `dit_product` are a transform's last pass, of what `source` holds, as long as `data` and apart
// from it: where dit would give x they give data x / R, or data x / R - other if pass.minus; `data` and `other` are canonical.

#include "cuzk/ntt_pass.cuh"

using cuzk::Fr;
using cuzk::FrFactor;
using cuzk::NttLevel;
using cuzk::NttPass;
using cuzk::NttQuad;
using cuzk::u32;
using cuzk::u64;

namespace {

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

template <u32 LOG_RADIX, bool PRODUCT>
CUZK_FN void dif(const Fr* source, const Fr* other, Fr* data, const NttQuad* tables, const NttLevel* levels,
                 const NttQuad* scale, const NttPass& pass) {
    CUZK_SHARED(NttQuad, multiples, 2 * cuzk::fold_entries);
    CUZK_SHARED_DYNAMIC(NttQuad, tile);
    u32 field = pass.log_columns + pass.log_rows - 3;
    Fr x[8];
    if (PRODUCT) {
        cuzk::load_product(tile, source, other, pass, field);
        cuzk::ntt_gather(tile, x, field);
    } else {
        cuzk::load(x, source, pass, cuzk::first_index(pass, field), cuzk::log_step(pass, field));
    }
    cuzk::fold_prepare(multiples);
    __syncthreads();
    if (LOG_RADIX < 3) {
        butterfly_short<LOG_RADIX, false>(x, pass, multiples);
        cuzk::ntt_scatter(tile, x, field);
        cuzk::twist_short<LOG_RADIX>(tile, tables, levels, pass, field);
        __syncthreads();
        field -= LOG_RADIX;
        cuzk::ntt_gather(tile, x, field);
    }
    CUZK_NO_UNROLL
    while (true) {
        cuzk::butterfly8(x, pass, multiples);
        reverse_registers(x);
        cuzk::ntt_scatter(tile, x, field);
        cuzk::twist(tile, tables, levels, scale, pass, field);
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
    cuzk::store(x, data, pass, cuzk::first_index(pass, field), cuzk::log_step(pass, field));
}

template <u32 LOG_RADIX, bool PRODUCT>
CUZK_FN void dit(const Fr* source, const Fr* other, Fr* data, const NttQuad* tables, const NttLevel* levels,
                 const NttQuad* scale, const NttPass& pass) {
    CUZK_SHARED(NttQuad, multiples, 2 * cuzk::fold_entries);
    CUZK_SHARED_DYNAMIC(NttQuad, tile);
    u32 field = pass.log_stride == 0 ? wide_field : pass.log_columns;
    Fr x[8];
    cuzk::load(x, source, pass, cuzk::first_index(pass, field), cuzk::log_step(pass, field));
    cuzk::fold_prepare(multiples);
    cuzk::ntt_scatter(tile, x, field);
    __syncthreads();
    field = pass.log_columns;
    CUZK_NO_UNROLL
    while (true) {
        cuzk::twist(tile, tables, levels, scale, pass, field);
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
        cuzk::twist_short<LOG_RADIX>(tile, tables, levels, pass, field);
        cuzk::ntt_gather(tile, x, field);
        butterfly_short<LOG_RADIX, true>(x, pass, multiples);
    }
    if (PRODUCT) {
        cuzk::store_product(tile, x, data, other, pass, field);
    } else {
        cuzk::store(x, data, pass, cuzk::first_index(pass, field), cuzk::log_step(pass, field));
    }
}

// The finest pass of dif and that of dit in one: the tile stays where it is. Rounds down are of the inverse direction,
// rounds up of the forward one, whose constants pass has.
CUZK_FN void middle(Fr* data, const NttQuad* down_tables, const NttLevel* down_levels, const NttQuad* tables,
                    const NttLevel* levels, const NttQuad* scale, const NttPass& pass) {
    CUZK_SHARED(NttQuad, multiples, 2 * cuzk::fold_entries);
    CUZK_SHARED_DYNAMIC(NttQuad, tile);
    const u32 top = pass.log_rows - 3;
    u32 field = top;
    bool down = true;
    Fr x[8];
    cuzk::load(x, data, pass, cuzk::first_index(pass, field), cuzk::log_step(pass, field));
    cuzk::fold_prepare(multiples);
    __syncthreads();
    CUZK_NO_UNROLL
    while (true) {
        cuzk::butterfly8(x, pass, multiples);
        if (!down && field == top) {
            break;
        }
        cuzk::NttSlots slots = cuzk::ntt_slots(field);
        cuzk::ntt_scatter_negated(tile, x, down ? cuzk::ntt_mirrored(slots) : slots, down);
        const bool turn = down && field == 0;
        if (!down) {
            __syncthreads();
            field += 3;
        }
        cuzk::twist(tile, down ? down_tables : tables, down ? down_levels : levels, scale, pass, field);
        if (turn) {
            down = false;
        } else if (down) {
            __syncthreads();
            field -= 3;
        }
        slots = cuzk::ntt_slots(field);
        cuzk::ntt_gather(tile, x, down ? slots : cuzk::ntt_mirrored(slots));
    }
    cuzk::store(x, data, pass, cuzk::first_index(pass, field), cuzk::log_step(pass, field));
}

}  // namespace

#define NTT_ENTRY(direction, radix, log_radix)                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                             \
        cuzk_ntt_##direction##_##radix(const Fr* source, Fr* data, const FrFactor* tables, const u32* levels,        \
                                       const FrFactor* scale, NttPass pass) {                                        \
        direction<log_radix, false>(source, nullptr, data, reinterpret_cast<const NttQuad*>(tables),                 \
                                    reinterpret_cast<const NttLevel*>(levels),                                       \
                                    reinterpret_cast<const NttQuad*>(scale), pass);                                  \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 2) cuzk_ntt_##direction##_product_##radix(                     \
        const Fr* source, const Fr* other, Fr* data, const FrFactor* tables, const u32* levels,                      \
        const FrFactor* scale, NttPass pass) {                                                                       \
        direction<log_radix, true>(source, other, data, reinterpret_cast<const NttQuad*>(tables),                    \
                                   reinterpret_cast<const NttLevel*>(levels),                                        \
                                   reinterpret_cast<const NttQuad*>(scale), pass);                                   \
    }
NTT_ENTRY(dif, 2, 1)
NTT_ENTRY(dif, 4, 2)
NTT_ENTRY(dif, 8, 3)
NTT_ENTRY(dit, 2, 1)
NTT_ENTRY(dit, 4, 2)
NTT_ENTRY(dit, 8, 3)

// The finest passes of dif, inverse, and of the dit that follows it, forward. As above, with log_stride = log_columns = 0
// and log_rows a multiple of 3. `down_tables` and `down_levels` are of the inverse direction; `tables`, `levels`, `scale`
// and the constants of `pass` of the forward one. It scales the inverse's coefficients once, as pass.scaled says.
extern "C" __global__ void __launch_bounds__(256, 2)
    cuzk_ntt_middle(Fr* data, const FrFactor* down_tables, const u32* down_levels, const FrFactor* tables,
                    const u32* levels, const FrFactor* scale, NttPass pass) {
    middle(data, reinterpret_cast<const NttQuad*>(down_tables), reinterpret_cast<const NttLevel*>(down_levels),
           reinterpret_cast<const NttQuad*>(tables), reinterpret_cast<const NttLevel*>(levels),
           reinterpret_cast<const NttQuad*>(scale), pass);
}

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
