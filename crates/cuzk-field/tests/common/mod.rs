//! Hostile and random values, and plain integers as the oracle.
#![allow(dead_code)]

use cuzk_field::constants::{FP_MODULUS, FR_MODULUS};
use cuzk_field::{Affine, CurveField, Fp, Fp2, Fr, Scalar, Xyzz};
use num_bigint::BigUint;
use proptest::prelude::*;

pub(crate) fn big(limbs: &[u64]) -> BigUint {
    limbs
        .iter()
        .rev()
        .fold(BigUint::ZERO, |sum, limb| (sum << 64) + limb)
}

pub(crate) fn limbs<const N: usize>(value: &BigUint) -> [u64; N] {
    let digits = value.to_u64_digits();
    assert!(digits.len() <= N);
    std::array::from_fn(|i| digits.get(i).copied().unwrap_or(0))
}

pub(crate) fn r() -> BigUint {
    big(&FR_MODULUS)
}

pub(crate) fn p() -> BigUint {
    big(&FP_MODULUS)
}

/// Integers below `modulus` that carry chains and reductions trip over: both ends, the middle, long
/// runs of ones and zeros, limbs of all ones.
pub(crate) fn hostile(modulus: &BigUint) -> Vec<BigUint> {
    let one = BigUint::from(1u32);
    let width = modulus.bits().next_multiple_of(64);
    let ones = |bits: u64| (&one << bits) - &one;
    let alternating = (0..width / 64)
        .step_by(2)
        .fold(BigUint::ZERO, |sum, limb| sum + (ones(64) << (64 * limb)));
    let mut values = vec![
        BigUint::ZERO,
        one.clone(),
        BigUint::from(2u32),
        modulus - &one,
        modulus - 2u32,
        modulus >> 1,
        (modulus >> 1) + &one,
        ones(width),
        alternating.clone(),
        alternating << 64,
        &one << width,
    ];
    for bits in [31, 32, 33, 63, 64, 65, 127, 128, 191, 192, 254, 320, 380] {
        if bits < modulus.bits() {
            values.extend([&one << bits, ones(bits), modulus - (&one << bits)]);
        }
    }
    values.iter().map(|value| value % modulus).collect()
}

/// As [`hostile`], once as the value and once as the limbs of the Montgomery form.
pub(crate) fn hostile_fr() -> Vec<Fr> {
    let values = hostile(&r());
    let canonical = values.iter().map(|v| Scalar::from_limbs(limbs(v)).unwrap());
    let montgomery = values.iter().map(limbs);
    canonical
        .map(Fr::from)
        .chain(montgomery.map(|l| Fr::from_montgomery_limbs(l).unwrap()))
        .collect()
}

/// As [`hostile_fr`].
pub(crate) fn hostile_fp() -> Vec<Fp> {
    let values = hostile(&p());
    let canonical = values.iter().map(|v| Fp::from_canonical_limbs(limbs(v)));
    let montgomery = values.iter().map(|v| Fp::from_montgomery_limbs(limbs(v)));
    canonical.chain(montgomery).map(Option::unwrap).collect()
}

/// Pairs of the ends and of a few others.
pub(crate) fn hostile_fp2() -> Vec<Fp2> {
    let values: Vec<_> = hostile_fp().into_iter().step_by(4).collect();
    let pairs = values.iter().flat_map(|a| values.iter().map(|b| (*a, *b)));
    pairs.map(|(a, b)| Fp2::new(a, b)).collect()
}

pub(crate) fn any_scalar() -> impl Strategy<Value = Scalar> {
    let random = any::<[u64; 4]>().prop_map(|l| big(&l) % r());
    let hostile = proptest::sample::select(hostile(&r()));
    prop_oneof![3 => random, 1 => hostile].prop_map(|v| Scalar::from_limbs(limbs(&v)).unwrap())
}

pub(crate) fn any_fr() -> impl Strategy<Value = Fr> {
    prop_oneof![
        3 => any_scalar().prop_map(Fr::from),
        1 => proptest::sample::select(hostile_fr()),
    ]
}

pub(crate) fn any_fp() -> impl Strategy<Value = Fp> {
    let random =
        any::<[u64; 6]>().prop_map(|l| Fp::from_montgomery_limbs(limbs(&(big(&l) % p()))).unwrap());
    prop_oneof![3 => random, 1 => proptest::sample::select(hostile_fp())]
}

pub(crate) fn any_fp2() -> impl Strategy<Value = Fp2> {
    (any_fp(), any_fp()).prop_map(|(c0, c1)| Fp2::new(c0, c1))
}

/// k G for any k, infinity included.
pub(crate) fn any_point<F: CurveField>() -> impl Strategy<Value = Affine<F>> {
    any_scalar().prop_map(|k| multiple(&k))
}

/// k G.
pub(crate) fn multiple<F: CurveField>(k: &Scalar) -> Affine<F> {
    Xyzz::from(Affine::<F>::generator())
        .mul_scalar(k)
        .to_affine()
}

/// The same point with another ZZ, ZZZ: l^2 and l^3.
pub(crate) fn rescaled<F: CurveField>(point: &Affine<F>, l: F) -> Xyzz<F> {
    if point.is_infinity() {
        return Xyzz::INFINITY;
    }
    let (zz, zzz) = (l.square(), l.square() * l);
    Xyzz {
        x: point.x * zz,
        y: point.y * zzz,
        zz,
        zzz,
    }
}
