// Whether points are what they are said to be, for keys whose points were not decoded one by one.
//
// All entries: a grid of one dimension, blocks of exactly 128 threads, any number of them; `points` (count), count below 2^31,
// any bytes; *first_wrong becomes the least index of a point that is not right, if that is less than what it holds. A point
// with x = y = 0 is infinity, which is right.

#include "cuzk/g2.cuh"
#include "cuzk/jacobian.cuh"
#include "cuzk/group_multiply.cuh"
#include "cuzk/shared.cuh"

using cuzk::Fp;
using cuzk::Fp2;
using cuzk::u32;

namespace {

// Whether a is below p.
CUZK_FN bool is_canonical(const Fp& a) {
    constexpr cuzk::Limbs<12> p = cuzk::fp::modulus;
    u32 difference[12];
    return cuzk::sub_limbs_borrow(difference, a.v, p.v) != 0;
}
CUZK_FN bool is_canonical(const Fp2& a) { return is_canonical(a.c0) && is_canonical(a.c1); }

// 4, and 4 (1 + u)
CUZK_FN Fp constant_of(const Fp&) { return cuzk::dbl(cuzk::dbl(cuzk::fp_one())); }
CUZK_FN Fp2 constant_of(const Fp2&) {
    const Fp four = constant_of(Fp{});
    return Fp2{four, four};
}

// Coordinates below p and y^2 = x^3 + b, or infinity.
template <class F>
CUZK_FN bool is_on_curve(const cuzk::Affine<F>& a) {
    if (!is_canonical(a.x) || !is_canonical(a.y)) {
        return false;
    }
    if (cuzk::is_infinity(a)) {
        return true;
    }
    const F right = cuzk::add(cuzk::mul_call(cuzk::sqr_call(a.x), a.x), constant_of(a.x));
    return cuzk::is_zero(cuzk::sub(cuzk::sqr_call(a.y), right));
}

template <class F>
CUZK_FN void check_curve(const cuzk::Affine<F>* points, u32 count, u32* first_wrong) {
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        if (!is_on_curve(points[i])) {
            atomicMin(first_wrong, i);
        }
    }
}

}  // namespace

// Canonical coordinates of a point of y^2 = x^3 + 4, or infinity.
extern "C" __global__ void __launch_bounds__(128)
    cuzk_point_check_g1_on_curve(const cuzk::G1Affine* points, u32 count, u32* first_wrong) {
    check_curve(points, count, first_wrong);
}

// Canonical coordinates of a point of y^2 = x^3 + 4 (1 + u), or infinity.
extern "C" __global__ void __launch_bounds__(128)
    cuzk_point_check_g2_on_curve(const cuzk::G2Affine* points, u32 count, u32* first_wrong) {
    check_curve(points, count, first_wrong);
}

// Points on the curve, canonical: whether they are of order r or infinite. (beta x, y) = lambda (x, y) says so (M. Scott, "A
// note on group membership tests", IACR ePrint 2021/1130): the endomorphism satisfies X^2 + X + 1 = 0 on the whole curve, so
// the point is then cancelled by lambda^2 + lambda + 1 = r.
extern "C" __global__ void __launch_bounds__(128, 4)
    cuzk_point_check_g1_in_subgroup(const cuzk::G1Affine* points, u32 count, u32* first_wrong) {
    CUZK_SHARED(cuzk::G1Jacobian, sums, 128);
    cuzk::G1Jacobian& sum = sums[threadIdx.x];
    for (u32 i = cuzk::grid_first(); i < count; i += cuzk::grid_stride()) {
        const cuzk::G1Affine point = points[i];
        if (cuzk::is_infinity(point)) {
            continue;
        }
        sum = cuzk::G1Jacobian{point.x, point.y, cuzk::fp_one()};
        // lambda, whose highest bit is set
        constexpr cuzk::Limbs<4> lambda = cuzk::group::lambda;
        CUZK_UNROLL
        for (int word = 3; word >= 0; word--) {
            const u32 bits = lambda.v[word];
            CUZK_NO_UNROLL
            for (int bit = word == 3 ? 30 : 31; bit >= 0; bit--) {
                cuzk::double_call(&sum);
                if ((bits >> bit & 1) != 0) {
                    cuzk::add_finite_call(&sum, points[i].x, points[i].y);
                }
            }
        }
        bool is_right = false;
        if (!cuzk::is_infinity(sum)) {
            Fp h;
            Fp r;
            cuzk::differences(h, r, sum, cuzk::mul_call(points[i].x, cuzk::group::beta()), points[i].y);
            is_right = cuzk::is_zero(h) && cuzk::is_zero(r);
        }
        if (!is_right) {
            atomicMin(first_wrong, i);
        }
    }
}
