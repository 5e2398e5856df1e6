//! Conversions from and to the `ark-bls12-381` types, by value: same limbs, other layout
//! (`ark`'s affine points carry a flag for infinity).

use ark_ec::AffineRepr as _;
use ark_ff::{BigInt, PrimeField as _};

use crate::curve::{Affine, CurveField, G1Affine, G2Affine, Xyzz};
use crate::fp::Fp;
use crate::fp2::Fp2;
use crate::fr::{Fr, Scalar};

impl From<ark_bls12_381::Fr> for Fr {
    #[inline]
    fn from(value: ark_bls12_381::Fr) -> Self {
        Self::from_ark(value)
    }
}

impl From<Fr> for ark_bls12_381::Fr {
    #[inline]
    fn from(value: Fr) -> Self {
        value.to_ark()
    }
}

impl From<ark_bls12_381::Fr> for Scalar {
    #[inline]
    fn from(value: ark_bls12_381::Fr) -> Self {
        Fr::from_ark(value).into()
    }
}

impl From<Scalar> for ark_bls12_381::Fr {
    #[inline]
    fn from(value: Scalar) -> Self {
        Fr::from(value).to_ark()
    }
}

/// The scalar as ark's big integer, as its MSM takes it.
impl From<Scalar> for BigInt<4> {
    #[inline]
    fn from(value: Scalar) -> Self {
        BigInt(*value.limbs())
    }
}

impl From<ark_bls12_381::Fq> for Fp {
    #[inline]
    fn from(value: ark_bls12_381::Fq) -> Self {
        Self::from_ark(value)
    }
}

impl From<Fp> for ark_bls12_381::Fq {
    #[inline]
    fn from(value: Fp) -> Self {
        value.to_ark()
    }
}

impl From<ark_bls12_381::Fq2> for Fp2 {
    #[inline]
    fn from(value: ark_bls12_381::Fq2) -> Self {
        Self::new(value.c0.into(), value.c1.into())
    }
}

impl From<Fp2> for ark_bls12_381::Fq2 {
    #[inline]
    fn from(value: Fp2) -> Self {
        Self::new(value.c0.into(), value.c1.into())
    }
}

macro_rules! affine {
    ($ours:ty, $theirs:ty) => {
        impl From<$theirs> for $ours {
            #[inline]
            fn from(point: $theirs) -> Self {
                match point.xy() {
                    None => Affine::INFINITY,
                    Some((x, y)) => Self {
                        x: x.into(),
                        y: y.into(),
                    },
                }
            }
        }

        /// The point with the same coordinates; that it is on the curve and in the subgroup is not
        /// checked here.
        impl From<$ours> for $theirs {
            #[inline]
            fn from(point: $ours) -> Self {
                if point.is_infinity() {
                    Self::zero()
                } else {
                    Self::new_unchecked(point.x.into(), point.y.into())
                }
            }
        }
    };
}

affine!(G1Affine, ark_bls12_381::G1Affine);
affine!(G2Affine, ark_bls12_381::G2Affine);

/// An `ark` affine point is made from the XYZZ sum by one inversion.
impl<F: CurveField> From<Xyzz<F>> for Affine<F> {
    fn from(point: Xyzz<F>) -> Self {
        point.to_affine()
    }
}

/// r as ark has it; a check that both crates speak of one field.
const _: () = {
    let modulus = ark_bls12_381::Fr::MODULUS.0;
    let mut i = 0;
    while i < 4 {
        assert!(modulus[i] == crate::constants::FR_MODULUS[i]);
        i += 1;
    }
};
