// Elementwise point operations on G1 and G2, for tests and the self-test.
//
// Every entry: a grid of one dimension, any number of blocks of at most 128 threads; no dynamic shared memory, but the
// additions in G2 keep their sums in 48 KiB of static shared memory (in registers they would spill); each array has
// `count` elements, 32-byte aligned, coordinates canonical in Montgomery form on entry and exit; `out` may be one of the
// inputs. Affine infinity is (0, 0), XYZZ infinity is ZZ = 0. Points are on their curve; every pair of them is allowed:
// equal, opposite, infinite. The formulas are named in cuzk/curve.cuh and cuzk/g1.cuh.

#include "cuzk/g1.cuh"
#include "cuzk/g2.cuh"
#include "cuzk/shared.cuh"

using cuzk::u32;

// out = a + b
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_add_affine(const cuzk::G1Xyzz* a, const cuzk::G1Affine* b, cuzk::G1Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        cuzk::G1Xyzz sum = a[i];
        const cuzk::G1Affine q = b[i];
        cuzk::add_affine_lazy(sum, q);
        cuzk::finish_lazy(sum);
        out[i] = cuzk::canonical(sum);
    }
}

// out = a + b, by the form that G2 uses
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_add_affine_closed(const cuzk::G1Xyzz* a, const cuzk::G1Affine* b, cuzk::G1Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        cuzk::G1Xyzz sum = a[i];
        const cuzk::G1Affine q = b[i];
        cuzk::add_affine(sum, q);
        out[i] = cuzk::canonical(sum);
    }
}

// out = a + b
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_add_xyzz(const cuzk::G1Xyzz* a, const cuzk::G1Xyzz* b, cuzk::G1Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        cuzk::G1Xyzz sum = a[i];
        const cuzk::G1Xyzz q = b[i];
        cuzk::add_xyzz(sum, q);
        out[i] = cuzk::canonical(sum);
    }
}

// out = 2 a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_double_xyzz(const cuzk::G1Xyzz* a, cuzk::G1Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        cuzk::G1Xyzz sum = a[i];
        cuzk::double_xyzz(sum);
        out[i] = cuzk::canonical(sum);
    }
}

// out = 2 a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_double_affine(const cuzk::G1Affine* a, cuzk::G1Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G1Affine q = a[i];
        cuzk::G1Xyzz sum;
        if (cuzk::is_infinity(q)) {
            cuzk::set_infinity(sum);
        } else {
            cuzk::double_affine(sum, q);
        }
        out[i] = cuzk::canonical(sum);
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_neg_affine(const cuzk::G1Affine* a, cuzk::G1Affine* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G1Affine q = a[i];
        out[i] = cuzk::neg(q);
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_neg_xyzz(const cuzk::G1Xyzz* a, cuzk::G1Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G1Xyzz q = a[i];
        out[i] = cuzk::canonical(cuzk::neg(q));
    }
}

// out = a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_to_affine(const cuzk::G1Xyzz* a, cuzk::G1Affine* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G1Xyzz q = a[i];
        out[i] = cuzk::to_affine(q);
    }
}

// out = a + b, by the affine formulas with an inversion for each pair
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g1_pair_sum(const cuzk::G1Affine* a, const cuzk::G1Affine* b, cuzk::G1Affine* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G1Affine p = a[i];
        const cuzk::G1Affine q = b[i];
        cuzk::Fp d;
        const cuzk::PairKind kind = cuzk::pair_denominator(d, p, q);
        out[i] = cuzk::pair_sum(p, q, kind, cuzk::inverse_call(cuzk::canonical(d)));
    }
}

// out = a + b
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_add_affine(const cuzk::G2Xyzz* a, const cuzk::G2Affine* b, cuzk::G2Xyzz* out, u32 count) {
    CUZK_SHARED(cuzk::G2Xyzz, sums, 128);
    cuzk::G2Xyzz& sum = sums[threadIdx.x];
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        sum = a[i];
        cuzk::add_affine(sum, b[i]);
        out[i] = cuzk::canonical(sum);
    }
}

// out = a + b
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_add_xyzz(const cuzk::G2Xyzz* a, const cuzk::G2Xyzz* b, cuzk::G2Xyzz* out, u32 count) {
    CUZK_SHARED(cuzk::G2Xyzz, sums, 128);
    cuzk::G2Xyzz& sum = sums[threadIdx.x];
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        sum = a[i];
        cuzk::add_xyzz(sum, b[i]);
        out[i] = cuzk::canonical(sum);
    }
}

// out = 2 a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_double_xyzz(const cuzk::G2Xyzz* a, cuzk::G2Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        cuzk::G2Xyzz sum = a[i];
        cuzk::double_xyzz(sum);
        out[i] = cuzk::canonical(sum);
    }
}

// out = 2 a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_double_affine(const cuzk::G2Affine* a, cuzk::G2Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G2Affine q = a[i];
        cuzk::G2Xyzz sum;
        if (cuzk::is_infinity(q)) {
            cuzk::set_infinity(sum);
        } else {
            cuzk::double_affine(sum, q);
        }
        out[i] = cuzk::canonical(sum);
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_neg_affine(const cuzk::G2Affine* a, cuzk::G2Affine* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G2Affine q = a[i];
        out[i] = cuzk::neg(q);
    }
}

// out = -a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_neg_xyzz(const cuzk::G2Xyzz* a, cuzk::G2Xyzz* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G2Xyzz q = a[i];
        out[i] = cuzk::canonical(cuzk::neg(q));
    }
}

// out = a
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_to_affine(const cuzk::G2Xyzz* a, cuzk::G2Affine* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G2Xyzz q = a[i];
        out[i] = cuzk::to_affine(q);
    }
}

// out = a + b, by the affine formulas with an inversion for each pair
extern "C" __global__ void __launch_bounds__(128)
    cuzk_curve_ops_g2_pair_sum(const cuzk::G2Affine* a, const cuzk::G2Affine* b, cuzk::G2Affine* out, u32 count) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G2Affine p = a[i];
        const cuzk::G2Affine q = b[i];
        cuzk::Fp2 d;
        const cuzk::PairKind kind = cuzk::pair_denominator(d, p, q);
        out[i] = cuzk::pair_sum(p, q, kind, cuzk::inverse_call(cuzk::canonical(d)));
    }
}
