//! The quadratic extension of the base field.

use crate::field::{Field, field_operators};
use crate::fp::Fp;
use crate::host;

/// c0 + c1 u with u^2 = -1, each coefficient an [`Fp`] in Montgomery form.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
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
    host::fp2_add,
    host::fp2_sub,
    host::fp2_mul,
    host::fp2_neg
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

    fn inverse(&self) -> Option<Self> {
        (!self.is_zero()).then(|| host::fp2_inverse(self))
    }
}
