//! The scalar field: [`Scalar`] (canonical integers) and [`Fr`] (Montgomery form).

use std::fmt;

use ark_ff::{BigInt, Field as _, PrimeField};
use zeroize::Zeroize;

use crate::constants::{FR_MODULUS, FR_R, FR_R2};
use crate::field::{
    Field, field_operators, limb_equality, limbs_from_le_bytes, limbs_less_than, limbs_to_le_bytes,
};

/// An integer below r as plain little-endian limbs: the form of witness files and of MSM scalars.
///
/// `Debug` does not print the value: scalars are witnesses and blinding factors.
#[derive(Clone, Copy, Default, Zeroize)]
#[repr(C, align(16))]
pub struct Scalar([u64; 4]);

impl Scalar {
    /// Zero.
    pub const ZERO: Self = Self([0; 4]);
    /// One.
    pub const ONE: Self = Self([1, 0, 0, 0]);
    /// r - 1.
    pub const MINUS_ONE: Self = Self([
        FR_MODULUS[0] - 1,
        FR_MODULUS[1],
        FR_MODULUS[2],
        FR_MODULUS[3],
    ]);

    /// From limbs, least significant first; `None` unless below r.
    #[inline]
    pub const fn from_limbs(limbs: [u64; 4]) -> Option<Self> {
        if limbs_less_than(&limbs, &FR_MODULUS) {
            Some(Self(limbs))
        } else {
            None
        }
    }

    /// From 32 little-endian bytes; `None` unless below r.
    #[inline]
    pub fn from_le_bytes(bytes: &[u8; 32]) -> Option<Self> {
        Self::from_limbs(limbs_from_le_bytes(bytes))
    }

    /// 32 little-endian bytes.
    #[inline]
    pub fn to_le_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        limbs_to_le_bytes(&self.0, &mut out);
        out
    }

    /// The limbs, least significant first.
    #[inline]
    pub const fn limbs(&self) -> &[u64; 4] {
        &self.0
    }

    /// The field element scalar / R: the same limbs, read as Montgomery form. A sum of products of
    /// elements with such values is R times too small, which one multiplication by [`Fr::R`] mends;
    /// converting every scalar would take one each.
    #[inline]
    pub const fn over_r(&self) -> Fr {
        Fr(self.0)
    }

    /// Whether this is zero.
    #[inline]
    pub const fn is_zero(&self) -> bool {
        (self.0[0] | self.0[1] | self.0[2] | self.0[3]) == 0
    }

    /// Whether this is one.
    #[inline]
    pub const fn is_one(&self) -> bool {
        self.0[0] == 1 && (self.0[1] | self.0[2] | self.0[3]) == 0
    }
}

impl From<u64> for Scalar {
    fn from(value: u64) -> Self {
        Self([value, 0, 0, 0])
    }
}

impl From<Fr> for Scalar {
    #[inline]
    fn from(value: Fr) -> Self {
        Self(value.to_ark().into_bigint().0)
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(..)")
    }
}

/// An element of the scalar field in Montgomery form, R = 2^256, canonical.
///
/// `Debug` does not print the value: see [`Scalar`].
#[derive(Clone, Copy, Default, Zeroize)]
#[repr(C, align(16))]
pub struct Fr([u64; 4]);

impl Fr {
    /// From limbs already in Montgomery form; `None` unless below r.
    #[inline]
    pub const fn from_montgomery_limbs(limbs: [u64; 4]) -> Option<Self> {
        if limbs_less_than(&limbs, &FR_MODULUS) {
            Some(Self(limbs))
        } else {
            None
        }
    }

    /// From 32 little-endian bytes already in Montgomery form; `None` unless below r.
    #[inline]
    pub fn from_montgomery_le_bytes(bytes: &[u8; 32]) -> Option<Self> {
        Self::from_montgomery_limbs(limbs_from_le_bytes(bytes))
    }

    /// The limbs of the Montgomery form, least significant first.
    #[inline]
    pub const fn montgomery_limbs(&self) -> &[u64; 4] {
        &self.0
    }

    /// self^exponent.
    #[must_use]
    pub fn pow(&self, exponent: u64) -> Self {
        Self::from_ark(self.to_ark().pow([exponent]))
    }

    /// The element R = 2^256 mod r, see [`Scalar::over_r`].
    pub const R: Self = Self(FR_R2);

    /// The `ark` element with the same limbs.
    #[inline]
    pub const fn to_ark(self) -> ark_bls12_381::Fr {
        ark_bls12_381::Fr::new_unchecked(BigInt(self.0))
    }

    /// The element with the same limbs as an `ark` one.
    #[inline]
    pub const fn from_ark(value: ark_bls12_381::Fr) -> Self {
        Self(value.0.0)
    }
}

impl From<u64> for Fr {
    fn from(value: u64) -> Self {
        Self::from_ark(ark_bls12_381::Fr::from(value))
    }
}

impl From<Scalar> for Fr {
    #[inline]
    fn from(value: Scalar) -> Self {
        value.over_r() * Self::R
    }
}

impl fmt::Debug for Fr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fr(..)")
    }
}

limb_equality!(Scalar);
limb_equality!(Fr);
field_operators!(
    Fr,
    |a: &Fr, b: &Fr| Fr::from_ark(a.to_ark() + b.to_ark()),
    |a: &Fr, b: &Fr| Fr::from_ark(a.to_ark() - b.to_ark()),
    |a: &Fr, b: &Fr| Fr::from_ark(a.to_ark() * b.to_ark()),
    |a: &Fr| Fr::from_ark(-a.to_ark())
);

impl Field for Fr {
    const ZERO: Self = Self([0; 4]);
    const ONE: Self = Self(FR_R);

    #[inline]
    fn square(&self) -> Self {
        Self::from_ark(self.to_ark().square())
    }

    fn inverse(&self) -> Option<Self> {
        self.to_ark().inverse().map(Self::from_ark)
    }
}
