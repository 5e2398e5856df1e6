//! Eight coordinates at a time: elements of Fp (D = 1) or of Fp2 (D = 2).
//!
//! Ranges are of each coefficient, in multiples of p; `c` and "reduced" are those of [`Fp8`].

use std::arch::x86_64::*;

use cuzk_field::{CurveField, Fp};

use super::fp8::{Fp8, sum_of_products};

#[derive(Clone, Copy)]
pub(super) struct Lanes<const D: usize>(pub(super) [Fp8; D]);

impl<const D: usize> Lanes<D> {
    #[target_feature(enable = "avx512f")]
    pub(super) fn one() -> Self {
        let mut one = [Fp8::zero(); D];
        one[0] = Fp8::one();
        Self(one)
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn broadcast<F: CurveField>(value: &F) -> Self {
        let mut coefficients = [Fp8::zero(); D];
        for (i, coefficient) in coefficients.iter_mut().enumerate() {
            *coefficient = Fp8::broadcast(value.coefficient(i));
        }
        Self(coefficients)
    }

    /// The value in lane 0.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn first<F: CurveField>(&self) -> F {
        let mut value = F::default();
        for (i, coefficient) in self.0.iter().enumerate() {
            let element: &mut Fp = value.coefficient_mut(i);
            *element = coefficient.reduced().first();
        }
        value
    }

    /// `out` = a b. Factors are carried; those of Fp2 below 4p in a.
    ///
    /// Results are written in place: one that is returned is copied, by a call, from where it came.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn product_into(out: &mut Self, a: &Self, b: &Self) {
        let (a, b) = (&a.0, &b.0);
        if D == 1 {
            sum_of_products(&mut out.0[0], [&a[0]], [&b[0]]);
        } else {
            // (a0 b0 - a1 b1) + (a0 b1 + a1 b0) u
            let minus_a1 = a[1].negated::<4>();
            sum_of_products(&mut out.0[0], [&a[0], &minus_a1], [&b[0], &b[1]]);
            sum_of_products(&mut out.0[1], [&a[0], &a[1]], [&b[1], &b[0]]);
        }
    }

    /// `out` = a^2, of a value below 4p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn square_into(out: &mut Self, a: &Self) {
        let a = &a.0;
        if D == 1 {
            sum_of_products(&mut out.0[0], [&a[0]], [&a[0]]);
        } else {
            // (a0 + a1) (a0 - a1) + 2 a0 a1 u
            let sum = a[0].plus(&a[1]).carried();
            let difference = a[0].minus_plus_p::<4>(&a[1]);
            sum_of_products(&mut out.0[0], [&sum], [&difference]);
            let twice = a[0].plus(&a[0]).carried();
            sum_of_products(&mut out.0[1], [&twice], [&a[1]]);
        }
    }

    /// self other, reduced.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = Self([Fp8::zero(); D]);
        Self::product_into(&mut product, self, other);
        product.reduced()
    }

    /// self + other, carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        for i in 0..D {
            sum.0[i] = self.0[i].plus(&other.0[i]).carried();
        }
        sum
    }

    /// self - other, not carried.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn minus(&self, other: &Self) -> Self {
        let mut difference = *self;
        for i in 0..D {
            difference.0[i] = self.0[i].minus(&other.0[i]);
        }
        difference
    }

    /// self - other + 2p, carried, for values up to 2p.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn minus_plus_2p(&self, other: &Self) -> Self {
        let mut difference = *self;
        for i in 0..D {
            difference.0[i] = self.0[i].minus_plus_p::<2>(&other.0[i]);
        }
        difference
    }

    /// See [`Fp8::reduced`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn reduced(mut self) -> Self {
        for i in 0..D {
            self.0[i] = self.0[i].reduced();
        }
        self
    }

    /// See [`Fp8::may_vanish`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn may_vanish(&self) -> __mmask8 {
        let mut lanes = 0xff;
        for coefficient in &self.0 {
            lanes &= coefficient.may_vanish();
        }
        lanes
    }

    /// See [`Fp8::vanishes`].
    #[target_feature(enable = "avx512f")]
    pub(super) fn vanishes(&self) -> __mmask8 {
        let mut lanes = 0xff;
        for coefficient in &self.0 {
            lanes &= coefficient.vanishes();
        }
        lanes
    }

    /// Lanes with lowest limbs of zero.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn may_be_all_zero(&self) -> __mmask8 {
        let mut lanes = 0xff;
        for coefficient in &self.0 {
            lanes &= _mm512_testn_epi64_mask(coefficient.0[0], coefficient.0[0]);
        }
        lanes
    }

    /// Lanes with every limb zero.
    #[target_feature(enable = "avx512f")]
    pub(super) fn is_all_zero(&self) -> __mmask8 {
        let mut lanes = 0xff;
        for coefficient in &self.0 {
            for limb in &coefficient.0 {
                lanes &= _mm512_testn_epi64_mask(*limb, *limb);
            }
        }
        lanes
    }

    /// `other` in the lanes of the mask.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn replaced(mut self, lanes: __mmask8, other: &Self) -> Self {
        for i in 0..D {
            self.0[i] = self.0[i].replaced(lanes, &other.0[i]);
        }
        self
    }

    /// Lane i + K modulo 8 in lane i.
    #[target_feature(enable = "avx512f")]
    pub(super) fn rotated<const K: i32>(&self) -> Self {
        let mut rotated = *self;
        for i in 0..D {
            rotated.0[i] = self.0[i].rotated::<K>();
        }
        rotated
    }
}
