// What stands around transforms over Fr: products, the quotient's last step, bit reversal, powers of a coset's shift.
//
// Arrays of Fr are in Montgomery form and canonical on entry and exit unless said otherwise; arrays of scalars hold
// canonical integers below r, not in Montgomery form, in the same 32 bytes. No array overlaps another but where an entry
// says so. Grids are of one dimension.

#include "cuzk/ntt.cuh"

using cuzk::Fr;
using cuzk::NttQuad;
using cuzk::u32;
using cuzk::u64;

namespace {

CUZK_FN u64 reverse_bits(u64 x, u32 bits) {
    u64 r = 0;
    for (u32 b = 0; b < bits; b++) {
        r |= (x >> b & 1) << (bits - 1 - b);
    }
    return r;
}

// Tiles of 32 x 32 elements for the bit reversal: index (high 5 bits, middle, low 5 bits) goes to (low, middle, high),
// each reversed. A block takes the tile of one middle and that of the reversed one, so it can work in place.
constexpr u32 reversal_threads = 256;
constexpr u32 reversal_tile = 1024;

// Lanes side by side differ in `low` when they write and in the highest bits of `high` when they read.
CUZK_FN u32 reversal_slot(u32 high, u32 low) { return high * 32 + (low ^ high >> 2); }

// x, or (x - c) factor / R for FINISH.
template <bool FINISH>
CUZK_FN Fr moved(const Fr& x, const Fr* c, const Fr& factor, u64 i) {
    return FINISH ? cuzk::canonical(cuzk::mul_lazy(factor, cuzk::sub_lazy(x, c[i]))) : x;
}

template <bool FINISH>
CUZK_FN void reverse_tiles(Fr* data, const Fr* c, const Fr& factor, u32 log_n) {
    CUZK_SHARED_DYNAMIC(NttQuad, shared);
    const u32 middle_bits = log_n - 10;
    const u64 middles = u64{1} << middle_bits;
    const u64 middle = blockIdx.x & (middles - 1);
    const u64 transform = (blockIdx.x >> middle_bits) << log_n;
    const u64 other = reverse_bits(middle, middle_bits);
    if (middle > other) {
        return;
    }
    const u32 tiles = middle == other ? 1 : 2;
    for (u32 tile = 0; tile < tiles; tile++) {
        const u64 at = transform | (tile == 0 ? middle : other) << 5;
        NttQuad* to = shared + tile * 2 * reversal_tile;
        for (u32 k = threadIdx.x; k < reversal_tile; k += reversal_threads) {
            const u64 i = at | static_cast<u64>(k >> 5) << (log_n - 5) | (k & 31);
            const Fr x = moved<FINISH>(data[i], c, factor, i);
            const u32 slot = reversal_slot(k >> 5, k & 31);
            to[slot] = NttQuad{{x.v[0], x.v[1], x.v[2], x.v[3]}};
            to[reversal_tile + slot] = NttQuad{{x.v[4], x.v[5], x.v[6], x.v[7]}};
        }
    }
    __syncthreads();
    for (u32 tile = 0; tile < tiles; tile++) {
        // The first tile goes where the second was.
        const u64 at = transform | (tile == 0 ? other : middle) << 5;
        const NttQuad* from = shared + tile * 2 * reversal_tile;
        for (u32 k = threadIdx.x; k < reversal_tile; k += reversal_threads) {
            const u64 i = at | static_cast<u64>(k >> 5) << (log_n - 5) | (k & 31);
            const u32 slot = reversal_slot(static_cast<u32>(reverse_bits(k & 31, 5)),
                                           static_cast<u32>(reverse_bits(k >> 5, 5)));
            data[i] = cuzk::ntt_join(from[slot], from[reversal_tile + slot]);
        }
    }
}

template <bool FINISH>
CUZK_FN void reverse_few(Fr* data, const Fr* c, const Fr& factor, u32 log_n, u64 count) {
    const u64 at = cuzk::grid_first();
    if (at >= count) {
        return;
    }
    const u64 mask = (u64{1} << log_n) - 1;
    const u64 other = (at & ~mask) | reverse_bits(at & mask, log_n);
    if (at > other) {
        return;
    }
    const Fr x = moved<FINISH>(data[at], c, factor, at);
    const Fr y = moved<FINISH>(data[other], c, factor, other);
    data[at] = y;
    data[other] = x;
}

}  // namespace

// out = a b / R, or a b / R - c if `has_c`: of elements in Montgomery form, or of one that is and one that is not. Any number
// of blocks of at most 256 threads; `out` may lie on a, b or c.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_ntt_product(const Fr* a, const Fr* b, const Fr* c, u32 has_c, Fr* out, u64 count) {
    for (u64 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const Fr x = a[i];
        const Fr y = b[i];
        Fr value = cuzk::mul_lazy(x, y);
        if (has_c != 0) {
            value = cuzk::sub_lazy(value, c[i]);
        }
        out[i] = cuzk::canonical(value);
    }
}

// Exchanges natural and bit-reversed order within each 2^log_n elements, in place; log_n >= 10. One block of exactly 256
// threads for each 1024 elements; 65,536 bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(256) cuzk_ntt_reverse(Fr* data, u32 log_n) {
    reverse_tiles<false>(data, nullptr, Fr{}, log_n);
}

// The same for small log_n: at least `count` threads in blocks of at most 256, `count` elements in all.
extern "C" __global__ void __launch_bounds__(256) cuzk_ntt_reverse_few(Fr* data, u32 log_n, u64 count) {
    reverse_few<false>(data, nullptr, Fr{}, log_n, count);
}

// data = (data - c) factor / R, and then as cuzk_ntt_reverse: the quotient's coefficients as scalars, in natural order,
// for factor = 1/z as an integer. data and c in [0, 2r); factor < r.
extern "C" __global__ void __launch_bounds__(256) cuzk_ntt_finish(Fr* data, const Fr* c, Fr factor, u32 log_n) {
    reverse_tiles<true>(data, c, factor, log_n);
}

// The same for small log_n, with the grid of cuzk_ntt_reverse_few.
extern "C" __global__ void __launch_bounds__(256)
    cuzk_ntt_finish_few(Fr* data, const Fr* c, Fr factor, u32 log_n, u64 count) {
    reverse_few<true>(data, c, factor, log_n, count);
}

// Multiplies by first base^e the element of exponent e, 0 <= e < 2^log_n, of each transform. Natural order, or
// bit-reversed order if `reversed`. squares (33): base^(2^b) at b. One thread for each 2^log_run elements of one transform,
// log_run <= log_n; blocks of at most 256.
extern "C" __global__ void __launch_bounds__(256) cuzk_ntt_powers(Fr* data, const Fr* squares, Fr first, u32 log_n,
                                                                  u32 log_run, u32 reversed, u64 count) {
    const u64 run = cuzk::grid_first();
    if (run >= count >> log_run) {
        return;
    }
    const u32 run_bits = log_n - log_run;
    const u64 within = run & ((u64{1} << run_bits) - 1);
    const u64 transform = (run >> run_bits) << log_n;
    // A run has exponents side by side: elements side by side in natural order; in bit-reversed order, elements whose
    // highest bits differ.
    const u64 start = (reversed != 0 ? reverse_bits(within, run_bits) : within) << log_run;
    Fr power = first;
    for (u32 b = 0; start >> b != 0; b++) {
        if ((start >> b & 1) != 0) {
            power = cuzk::mul(squares[b], power);
        }
    }
    const Fr base = squares[0];
    for (u32 j = 0; j < 1u << log_run; j++) {
        const u64 i = transform | (reversed != 0 ? reverse_bits(j, log_run) << run_bits | within : within << log_run | j);
        data[i] = cuzk::mul(power, data[i]);
        power = cuzk::mul(base, power);
    }
}
