//! The quadratic extension of the base field.

use zeroize::Zeroize;

use crate::field::{Field, field_operators};
use crate::fp::Fp;
use crate::host;

/// c0 + c1 u with u^2 = -1, each coefficient an [`Fp`] in Montgomery form.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug, Zeroize)]
#[repr(C, align(16))]
pub struct Fp2 {
    /// The coefficient of 1.
    pub c0: Fp,
    /// The coefficient of u.
    pub c1: Fp,
}

impl Fp2 {
    /// c0 + c1 u.
    #[inline]
    pub const fn new(c0: Fp, c1: Fp) -> Self {
        Self { c0, c1 }
    }
}

field_operators!(
    Fp2,
    |a: &Fp2, b: &Fp2| Fp2::new(a.c0 + b.c0, a.c1 + b.c1),
    |a: &Fp2, b: &Fp2| Fp2::new(a.c0 - b.c0, a.c1 - b.c1),
    host::fp2_mul,
    |a: &Fp2| Fp2::new(-a.c0, -a.c1)
);

impl Field for Fp2 {
    const ZERO: Self = Self {
        c0: Fp::ZERO,
        c1: Fp::ZERO,
    };
    const ONE: Self = Self {
        c0: Fp::ONE,
        c1: Fp::ZERO,
    };

    #[inline]
    fn square(&self) -> Self {
        host::fp2_sqr(self)
    }

    #[inline]
    fn product_into(out: &mut Self, a: &Self, b: &Self) {
        host::fp2_mul_into(out, a, b);
    }

    #[inline]
    fn square_into(out: &mut Self, a: &Self) {
        host::fp2_sqr_into(out, a);
    }

    #[inline]
    fn multiply_by(&mut self, rhs: &Self) {
        host::fp2_mul_assign(self, rhs);
    }

    fn inverse(&self) -> Option<Self> {
        (!self.is_zero()).then(|| host::fp2_inverse(self))
    }
}
