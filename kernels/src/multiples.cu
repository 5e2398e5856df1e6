// Multiples of many points by a power of two: tables for sums whose windows share buckets (cuzk/windows.cuh).
//
// out[i] = 2^doublings points[i], canonical. A grid of one dimension, one thread a point, blocks of exactly 128; points
// (count), canonical and on the curve, infinity (0, 0); out (count), not `points`.
//
// Doubling in XYZZ coordinates takes six products and three squares, and the one inversion at the end is a twentieth of 128
// doublings. Neither curve has a point of order two, so only infinity doubles to infinity.

#include "cuzk/g1.cuh"
#include "cuzk/g2.cuh"
#include "cuzk/kernel.cuh"

using cuzk::u32;

namespace {

template <class F>
CUZK_FN void multiply(const cuzk::Affine<F>* points, u32 count, u32 doublings, cuzk::Affine<F>* out) {
    const u32 i = cuzk::grid_first();
    if (i >= count) {
        return;
    }
    const cuzk::Affine<F> point = points[i];
    if (doublings == 0 || cuzk::is_infinity(point)) {
        out[i] = point;
        return;
    }
    cuzk::Xyzz<F> sum;
    cuzk::double_affine(sum, point);
    CUZK_NO_UNROLL
    for (u32 k = 1; k < doublings; k++) {
        cuzk::double_xyzz(sum);
    }
    out[i] = cuzk::to_affine(sum);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    cuzk_multiples_g1(const cuzk::G1Affine* points, u32 count, u32 doublings, cuzk::G1Affine* out) {
    multiply(points, count, doublings, out);
}

extern "C" __global__ void __launch_bounds__(128)
    cuzk_multiples_g2(const cuzk::G2Affine* points, u32 count, u32 doublings, cuzk::G2Affine* out) {
    multiply(points, count, doublings, out);
}
