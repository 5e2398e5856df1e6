//! What the curve formulas and the batch algorithms ask of a field.

use std::fmt::Debug;
use std::ops::{Add, Mul, Neg, Sub};

/// A prime field or an extension of one. Values are always canonical, so `==` is equality in the
/// field.
pub trait Field:
    Copy
    + Eq
    + Debug
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// The additive identity; all limbs zero.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;

    /// Whether this is [`Self::ZERO`].
    #[inline]
    fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// 2 self.
    #[inline]
    #[must_use]
    fn double(&self) -> Self {
        *self + *self
    }

    /// self squared.
    #[must_use]
    fn square(&self) -> Self;

    /// `out = a b`. In hot loops this saves the copy of a result, see the host arithmetic of [`Fp`].
    ///
    /// [`Fp`]: crate::Fp
    #[inline]
    fn product_into(out: &mut Self, a: &Self, b: &Self) {
        *out = *a * *b;
    }

    /// `out = a^2`.
    #[inline]
    fn square_into(out: &mut Self, a: &Self) {
        *out = a.square();
    }

    /// `self *= rhs`.
    #[inline]
    fn multiply_by(&mut self, rhs: &Self) {
        *self = *self * *rhs;
    }

    /// 1 / self; `None` for zero.
    fn inverse(&self) -> Option<Self>;
}

/// Replaces each non-zero value by its inverse with one inversion and three multiplications a value
/// (Montgomery's trick). Zeros stay zero. `scratch` is overwritten; it grows to `values.len()`.
pub fn batch_invert<F: Field>(values: &mut [F], scratch: &mut Vec<F>) {
    scratch.clear();
    let mut product = F::ONE;
    for value in values.iter() {
        scratch.push(product);
        if !value.is_zero() {
            product.multiply_by(value);
        }
    }
    // The product of non-zero values of a field is not zero.
    let Some(mut inverse) = product.inverse() else {
        return;
    };
    for (value, prefix) in values.iter_mut().zip(scratch.iter_mut()).rev() {
        if !value.is_zero() {
            prefix.multiply_by(&inverse);
            inverse.multiply_by(value);
            std::mem::swap(value, prefix);
        }
    }
}

/// Implements the operators by reference to `add`, `sub`, `mul`, `neg` functions, and their
/// assigning forms.
macro_rules! field_operators {
    ($t:ty, $add:expr, $sub:expr, $mul:expr, $neg:expr) => {
        impl std::ops::Add for $t {
            type Output = Self;
            #[inline]
            fn add(self, rhs: Self) -> Self {
                $add(&self, &rhs)
            }
        }
        impl std::ops::Sub for $t {
            type Output = Self;
            #[inline]
            fn sub(self, rhs: Self) -> Self {
                $sub(&self, &rhs)
            }
        }
        impl std::ops::Mul for $t {
            type Output = Self;
            #[inline]
            fn mul(self, rhs: Self) -> Self {
                $mul(&self, &rhs)
            }
        }
        impl std::ops::Neg for $t {
            type Output = Self;
            #[inline]
            fn neg(self) -> Self {
                $neg(&self)
            }
        }
        impl std::ops::AddAssign for $t {
            #[inline]
            fn add_assign(&mut self, rhs: Self) {
                *self = *self + rhs;
            }
        }
        impl std::ops::SubAssign for $t {
            #[inline]
            fn sub_assign(&mut self, rhs: Self) {
                *self = *self - rhs;
            }
        }
        impl std::ops::MulAssign for $t {
            #[inline]
            fn mul_assign(&mut self, rhs: Self) {
                *self = *self * rhs;
            }
        }
    };
}
pub(crate) use field_operators;

/// Equality limb by limb: the derived one calls `memcmp`, which showed in the profile of every sum
/// (docs/measurements.md, CPU arithmetic).
macro_rules! limb_equality {
    ($t:ty) => {
        impl PartialEq for $t {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.0
                    .iter()
                    .zip(&other.0)
                    .fold(0, |diff, (a, b)| diff | (a ^ b))
                    == 0
            }
        }

        impl Eq for $t {}

        impl std::hash::Hash for $t {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }
    };
}
pub(crate) use limb_equality;

/// Whether `a < b`, limbs least significant first.
#[inline]
pub(crate) const fn limbs_less_than<const N: usize>(a: &[u64; N], b: &[u64; N]) -> bool {
    let mut i = N;
    while i > 0 {
        i -= 1;
        if a[i] != b[i] {
            return a[i] < b[i];
        }
    }
    false
}

/// Little-endian bytes to limbs. `bytes.len()` must be 8 N.
#[inline]
pub(crate) fn limbs_from_le_bytes<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// Limbs to little-endian bytes. `out.len()` must be 8 N.
#[inline]
pub(crate) fn limbs_to_le_bytes<const N: usize>(limbs: &[u64; N], out: &mut [u8]) {
    let (words, _) = out.as_chunks_mut::<8>();
    for (word, limb) in words.iter_mut().zip(limbs) {
        *word = limb.to_le_bytes();
    }
}
