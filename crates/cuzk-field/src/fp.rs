//! The base field.

use ark_ff::BigInt;
use zeroize::Zeroize;

use crate::constants::{FP_MODULUS, FP_R, FP_R2};
use crate::field::{
    Field, field_operators, limb_equality, limbs_from_le_bytes, limbs_less_than, limbs_to_le_bytes,
};
use crate::host;

/// An element of the base field in Montgomery form, R = 2^384, canonical.
#[derive(Clone, Copy, Default, Debug, Zeroize)]
#[repr(C, align(16))]
pub struct Fp(pub(crate) [u64; 6]);

impl Fp {
    /// From limbs already in Montgomery form; `None` unless below p.
    #[inline]
    pub const fn from_montgomery_limbs(limbs: [u64; 6]) -> Option<Self> {
        if limbs_less_than(&limbs, &FP_MODULUS) {
            Some(Self(limbs))
        } else {
            None
        }
    }

    /// From 48 little-endian bytes already in Montgomery form; `None` unless below p.
    #[inline]
    pub fn from_montgomery_le_bytes(bytes: &[u8; 48]) -> Option<Self> {
        Self::from_montgomery_limbs(limbs_from_le_bytes(bytes))
    }

    /// 48 little-endian bytes of the Montgomery form.
    #[inline]
    pub fn to_montgomery_le_bytes(self) -> [u8; 48] {
        let mut out = [0; 48];
        limbs_to_le_bytes(&self.0, &mut out);
        out
    }

    /// From a canonical integer, limbs least significant first; `None` unless below p.
    #[inline]
    pub fn from_canonical_limbs(limbs: [u64; 6]) -> Option<Self> {
        limbs_less_than(&limbs, &FP_MODULUS).then(|| Self(limbs) * Self(FP_R2))
    }

    /// From a canonical integer as 48 big-endian bytes; `None` unless below p.
    #[inline]
    pub fn from_be_bytes(bytes: &[u8; 48]) -> Option<Self> {
        let mut le = *bytes;
        le.reverse();
        Self::from_canonical_limbs(limbs_from_le_bytes(&le))
    }

    /// The canonical integer as 48 big-endian bytes.
    #[inline]
    pub fn to_be_bytes(self) -> [u8; 48] {
        let mut out = [0; 48];
        limbs_to_le_bytes(&self.canonical_limbs(), &mut out);
        out.reverse();
        out
    }

    /// The canonical integer, limbs least significant first.
    #[inline]
    pub fn canonical_limbs(self) -> [u64; 6] {
        (self * Self([1, 0, 0, 0, 0, 0])).0
    }

    /// The `ark` element with the same limbs.
    #[inline]
    pub const fn to_ark(self) -> ark_bls12_381::Fq {
        ark_bls12_381::Fq::new_unchecked(BigInt(self.0))
    }

    /// The element with the same limbs as an `ark` one.
    #[inline]
    pub const fn from_ark(value: ark_bls12_381::Fq) -> Self {
        Self(value.0.0)
    }

    /// The limbs of the Montgomery form, least significant first.
    #[inline]
    pub const fn montgomery_limbs(&self) -> &[u64; 6] {
        &self.0
    }
}

impl From<u64> for Fp {
    fn from(value: u64) -> Self {
        Self([value, 0, 0, 0, 0, 0]) * Self(FP_R2)
    }
}

limb_equality!(Fp);
// Additions are ark's, which inline; products are blst's assembly (docs/measurements.md, CPU
// arithmetic).
field_operators!(
    Fp,
    |a: &Fp, b: &Fp| Fp::from_ark(a.to_ark() + b.to_ark()),
    |a: &Fp, b: &Fp| Fp::from_ark(a.to_ark() - b.to_ark()),
    host::fp_mul,
    |a: &Fp| Fp::from_ark(-a.to_ark())
);

impl Field for Fp {
    const ZERO: Self = Self([0; 6]);
    const ONE: Self = Self(FP_R);

    #[inline]
    fn square(&self) -> Self {
        host::fp_sqr(self)
    }

    #[inline]
    fn product_into(out: &mut Self, a: &Self, b: &Self) {
        host::fp_mul_into(out, a, b);
    }

    #[inline]
    fn square_into(out: &mut Self, a: &Self) {
        host::fp_sqr_into(out, a);
    }

    #[inline]
    fn multiply_by(&mut self, rhs: &Self) {
        host::fp_mul_assign(self, rhs);
    }

    fn inverse(&self) -> Option<Self> {
        (!self.is_zero()).then(|| host::fp_inverse(self))
    }
}
