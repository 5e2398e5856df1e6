// Transforms over points of G1: butterflies, and multiples of many points (cuzk/group_multiply.cuh).
//
// All entries: a grid of one dimension, blocks of exactly 128 threads; points of order r or infinite, canonical; scalars
// canonical, below r; `table`, scratch, has 25 elements of Fp for each thread of the grid. A thread goes through elements
// a grid apart, and nothing is read or written by two threads.

#include "cuzk/group_multiply.cuh"
#include "cuzk/shared.cuh"

using cuzk::Fp;
using cuzk::G1Affine;
using cuzk::G1Jacobian;
using cuzk::Scalar;
using cuzk::u32;
using cuzk::group::Digits;

// Pairs first to first + count - 1 of a stage: pair i is number i mod half of block i / half, half = 2^log_half, and
// (a, b) becomes (a + c b, a - c b) with c = factors[block]; factors[0] stands for 1 and is not read. points: 2 half a block;
// pairs below 2^31. `sliding` says how digits are found; without 32 pairs a block in step, fixed ones are quicker.
extern "C" __global__ void __launch_bounds__(128, 4) cuzk_group_ntt_butterflies(
    G1Affine* points, const Scalar* factors, u32 log_half, u32 first, u32 count, u32 sliding, Fp* table) {
    CUZK_SHARED(G1Jacobian, sums, 128);
    CUZK_SHARED(Digits, digits, 2 * 128);
    G1Jacobian& sum = sums[threadIdx.x];
    const cuzk::group::Table mine = cuzk::group::own_table(table);
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const u32 block = (first + i) >> log_half;
        G1Affine* const low = points + (first + i + (static_cast<cuzk::u64>(block) << log_half));
        G1Affine* const high = low + (static_cast<cuzk::u64>(1) << log_half);
        const G1Affine b = *high;
        if (block != 0) {
            cuzk::group::multiply(sum, digits + threadIdx.x, b, factors[block], sliding != 0, mine);
        } else if (cuzk::is_infinity(b)) {
            cuzk::set_infinity(sum);
        } else {
            sum = G1Jacobian{b.x, b.y, cuzk::fp_one()};
        }
        cuzk::group::write_sum_and_difference_call(low, high, &sum);
    }
}

// out[i] = scalars[ids[i]] points[indices[i]] for i below count, below 2^31; numbers beyond the arrays count as the last.
extern "C" __global__ void __launch_bounds__(128, 4) cuzk_group_ntt_multiply(
    const G1Affine* points, u32 point_count, const u32* indices, const Scalar* scalars, u32 scalar_count, const u32* ids,
    G1Affine* out, u32 count, Fp* table) {
    CUZK_SHARED(G1Jacobian, sums, 128);
    CUZK_SHARED(Digits, digits, 2 * 128);
    G1Jacobian& sum = sums[threadIdx.x];
    const cuzk::group::Table mine = cuzk::group::own_table(table);
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const G1Affine point = points[indices[i] < point_count ? indices[i] : point_count - 1];
        const Scalar scalar = scalars[ids[i] < scalar_count ? ids[i] : scalar_count - 1];
        cuzk::group::multiply(sum, digits + threadIdx.x, point, scalar, false, mine);
        out[i] = cuzk::group::to_affine(sum);
    }
}

// points[i] = scalars[i] points[i] for i below count, below 2^31.
extern "C" __global__ void __launch_bounds__(128, 4)
    cuzk_group_ntt_scale(G1Affine* points, const Scalar* scalars, u32 count, Fp* table) {
    CUZK_SHARED(G1Jacobian, sums, 128);
    CUZK_SHARED(Digits, digits, 2 * 128);
    G1Jacobian& sum = sums[threadIdx.x];
    const cuzk::group::Table mine = cuzk::group::own_table(table);
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        cuzk::group::multiply(sum, digits + threadIdx.x, points[i], scalars[i], false, mine);
        points[i] = cuzk::group::to_affine(sum);
    }
}
