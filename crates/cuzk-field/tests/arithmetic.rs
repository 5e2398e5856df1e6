//! Field arithmetic against plain integers and against arkworks.

mod common;

use ark_ff::Field as _;
use common::{
    any_fp, any_fp2, any_fr, any_scalar, big, hostile_fp, hostile_fp2, hostile_fr, limbs, p, r,
};
use cuzk_field::{Field, Fp, Fp2, Fr, Scalar, batch_invert};
use num_bigint::BigUint;
use proptest::prelude::*;

fn fr_value(x: Fr) -> BigUint {
    big(Scalar::from(x).limbs())
}

fn fp_value(x: Fp) -> BigUint {
    big(&x.canonical_limbs())
}

fn check_fr(a: Fr, b: Fr) {
    let (x, y) = (fr_value(a), fr_value(b));
    assert_eq!(fr_value(a + b), (&x + &y) % r());
    assert_eq!(fr_value(a - b), (&x + r() - &y) % r());
    assert_eq!(fr_value(a * b), &x * &y % r());
    assert_eq!(fr_value(-a), (r() - &x) % r());
    // The same limbs read as Montgomery form are R times too small.
    let scalar = Scalar::from(b);
    assert_eq!(scalar.over_r() * Fr::R, b);
    assert_eq!(a * scalar.over_r() * Fr::R, a * b);
}

fn check_fp(a: Fp, b: Fp) {
    let (x, y) = (fp_value(a), fp_value(b));
    assert_eq!(fp_value(a + b), (&x + &y) % p());
    assert_eq!(fp_value(a - b), (&x + p() - &y) % p());
    assert_eq!(fp_value(a * b), &x * &y % p());
    assert_eq!(fp_value(-a), (p() - &x) % p());
}

fn check_fp2(a: Fp2, b: Fp2) {
    let (x, y) = (ark_bls12_381::Fq2::from(a), ark_bls12_381::Fq2::from(b));
    assert_eq!(a + b, (x + y).into());
    assert_eq!(a - b, (x - y).into());
    assert_eq!(a * b, (x * y).into());
    assert_eq!(-a, (-x).into());
}

fn check_one<F: Field>(a: F) {
    let same = a;
    assert_eq!(a.square(), a * a);
    assert_eq!(a.double(), a + same);
    assert_eq!(a + -a, F::ZERO);
    assert_eq!(a - same, F::ZERO);
    assert_eq!(a * F::ONE, a);
    assert_eq!(a.is_zero(), a == F::ZERO);
    match a.inverse() {
        None => assert!(a.is_zero()),
        Some(inverse) => assert_eq!(a * inverse, F::ONE),
    }
}

#[test]
fn hostile_pairs() {
    let values = hostile_fr();
    for a in &values {
        check_one(*a);
        values.iter().for_each(|b| check_fr(*a, *b));
    }
    let values = hostile_fp();
    for a in &values {
        check_one(*a);
        values.iter().for_each(|b| check_fp(*a, *b));
    }
    let values = hostile_fp2();
    for a in &values {
        check_one(*a);
        values.iter().step_by(7).for_each(|b| check_fp2(*a, *b));
    }
}

/// Results are canonical: limbs below the modulus whatever the operands.
#[test]
fn results_stay_canonical() {
    for (a, b) in hostile_fp().iter().zip(hostile_fp().iter().rev()) {
        for value in [*a + *b, *a - *b, *a * *b, -*a, a.square(), a.double()] {
            assert!(Fp::from_montgomery_limbs(*value.montgomery_limbs()).is_some());
        }
    }
    for (a, b) in hostile_fr().iter().zip(hostile_fr().iter().rev()) {
        for value in [*a + *b, *a - *b, *a * *b, -*a, a.square(), a.double()] {
            assert!(Fr::from_montgomery_limbs(*value.montgomery_limbs()).is_some());
        }
    }
}

#[test]
fn small_integers() {
    for n in [0, 1, 2, 3, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
        assert_eq!(fr_value(Fr::from(n)), BigUint::from(n));
        assert_eq!(fp_value(Fp::from(n)), BigUint::from(n));
        assert_eq!(Scalar::from(n).limbs(), &limbs::<4>(&BigUint::from(n)));
    }
}

fn check_batch<F: Field>(values: &[F]) {
    let mut inverted = values.to_vec();
    let mut scratch = vec![F::ONE; 3];
    batch_invert(&mut inverted, &mut scratch);
    let expected: Vec<F> = values
        .iter()
        .map(|value| value.inverse().unwrap_or(F::ZERO))
        .collect();
    assert_eq!(inverted, expected);
}

#[test]
fn batch_inversion_keeps_zeros() {
    check_batch::<Fr>(&[]);
    check_batch(&[Fp::ZERO]);
    check_batch(&[Fp::ZERO; 4]);
    check_batch(&[Fp::ONE, Fp::ZERO]);
    check_batch(&[
        Fp::ZERO,
        -Fp::ONE,
        Fp::ZERO,
        Fp::ZERO,
        Fp::from(7),
        Fp::ZERO,
    ]);
    check_batch(&hostile_fr());
    check_batch(&hostile_fp());
    check_batch(&hostile_fp2());
}

proptest! {
    #[test]
    fn fr_follows_integers(a in any_fr(), b in any_fr()) {
        check_fr(a, b);
        check_one(a);
    }

    #[test]
    fn fp_follows_integers_and_arkworks(a in any_fp(), b in any_fp()) {
        check_fp(a, b);
        check_one(a);
        let (x, y) = (ark_bls12_381::Fq::from(a), ark_bls12_381::Fq::from(b));
        prop_assert_eq!(a + b, (x + y).into());
        prop_assert_eq!(a - b, (x - y).into());
        prop_assert_eq!(a * b, (x * y).into());
        prop_assert_eq!(a.inverse(), x.inverse().map(Fp::from));
    }

    #[test]
    fn fp2_follows_arkworks(a in any_fp2(), b in any_fp2()) {
        check_fp2(a, b);
        check_one(a);
        let inverse = ark_bls12_381::Fq2::from(a).inverse().map(Fp2::from);
        prop_assert_eq!(a.inverse(), inverse);
    }

    #[test]
    fn field_laws(a in any_fp2(), b in any_fp2(), c in any_fp2()) {
        prop_assert_eq!((a + b) + c, a + (b + c));
        prop_assert_eq!((a * b) * c, a * (b * c));
        prop_assert_eq!(a * (b + c), a * b + a * c);
        prop_assert_eq!(a * b, b * a);
    }

    #[test]
    fn powers(a in any_scalar(), exponent in prop_oneof![0u64..5, any::<u64>()]) {
        let expected = big(a.limbs()).modpow(&exponent.into(), &r());
        prop_assert_eq!(fr_value(Fr::from(a).pow(exponent)), expected);
    }
}
