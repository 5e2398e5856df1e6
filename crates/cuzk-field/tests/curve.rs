//! Complete addition in XYZZ coordinates, against arkworks.

mod common;

use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use common::{any_fp, any_fp2, any_point, any_scalar, hostile, limbs, multiple, r, rescaled};
use cuzk_field::{
    Affine, CurveField, Field, Fp, Fp2, G1Affine, G2Affine, PairingProduct, Scalar, Xyzz,
    pairing_product_is_one,
};
use proptest::prelude::*;

/// Checks all ways to add `a` and `b` and to double them, in several coordinates, against arkworks.
fn check_sum<F, P>(a: Affine<F>, b: Affine<F>, scales: [F; 2])
where
    F: CurveField,
    P: AffineRepr + From<Affine<F>> + Into<Affine<F>>,
{
    let (pa, pb) = (P::from(a), P::from(b));
    let sum: Affine<F> = (pa + pb).into_affine().into();
    let double: Affine<F> = (pa + pa).into_affine().into();
    for x in [Xyzz::from(a), rescaled(&a, scales[0])] {
        assert_eq!(x.to_affine(), a);
        assert_eq!(x.double().to_affine(), double);
        let mut mixed = x;
        mixed.add_affine(&b);
        assert_eq!(mixed.to_affine(), sum);
        for y in [Xyzz::from(b), rescaled(&b, scales[1])] {
            let mut full = x;
            full.add_xyzz(&y);
            assert_eq!(full.to_affine(), sum);
            assert_eq!(full, mixed);
            assert_eq!(full == x, sum == a);
        }
    }
}

/// Every pair of infinity, P, -P, 2P, -2P, Q covers each exceptional case.
fn exceptional_pairs<F, P>(scales: [F; 2])
where
    F: CurveField,
    P: AffineRepr + From<Affine<F>> + Into<Affine<F>>,
{
    let g = Affine::<F>::generator();
    let two_g = multiple(&Scalar::from(2));
    let points = [
        Affine::INFINITY,
        g,
        -g,
        two_g,
        -two_g,
        multiple(&Scalar::from(0xdead_beef)),
    ];
    for a in points {
        for b in points {
            check_sum::<F, P>(a, b, scales);
        }
    }
}

#[test]
fn exceptional_pairs_g1() {
    exceptional_pairs::<Fp, ark_bls12_381::G1Affine>([Fp::from(3), -Fp::ONE]);
}

#[test]
fn exceptional_pairs_g2() {
    let scale = Fp2::new(Fp::from(3), -Fp::from(5));
    exceptional_pairs::<Fp2, ark_bls12_381::G2Affine>([scale, -Fp2::ONE]);
}

/// On the curve but outside the subgroup the formulas hold as well.
#[test]
fn sums_outside_the_subgroup() {
    let point = G1Affine {
        x: Fp::ZERO,
        y: Fp::from(2),
    };
    assert!(point.is_on_curve() && !point.is_in_subgroup());
    check_sum::<Fp, ark_bls12_381::G1Affine>(point, point, [Fp::from(7), Fp::from(9)]);
    check_sum::<Fp, ark_bls12_381::G1Affine>(point, -point, [Fp::from(7), Fp::from(9)]);
    // (0, 2) has order three.
    let mut triple = Xyzz::from(point).double();
    triple.add_affine(&point);
    assert!(triple.is_infinity());
}

#[test]
fn infinity_is_one_point_whatever_its_coordinates() {
    let ghost = Xyzz {
        x: Fp::from(5),
        y: Fp::from(6),
        zz: Fp::ZERO,
        zzz: Fp::ZERO,
    };
    assert!(ghost.is_infinity());
    assert_eq!(ghost, Xyzz::INFINITY);
    assert_eq!(ghost.to_affine(), Affine::INFINITY);
    assert!(ghost.double().is_infinity());
    let g = G1Affine::generator();
    let mut sum = ghost;
    sum.add_affine(&g);
    assert_eq!(sum, Xyzz::from(g));
    let mut sum = Xyzz::from(g);
    sum.add_xyzz(&ghost);
    assert_eq!(sum, Xyzz::from(g));
    assert_ne!(ghost, Xyzz::from(g));
}

#[test]
fn multiples_by_hostile_scalars() {
    for value in hostile(&r()) {
        let scalar = Scalar::from_limbs(limbs(&value)).unwrap();
        let g1 = ark_bls12_381::G1Projective::generator() * ark_bls12_381::Fr::from(scalar);
        assert_eq!(multiple::<Fp>(&scalar), g1.into_affine().into());
        let g2 = ark_bls12_381::G2Projective::generator() * ark_bls12_381::Fr::from(scalar);
        assert_eq!(multiple::<Fp2>(&scalar), g2.into_affine().into());
    }
    // (r - 1) G + G is infinity: the group has order r.
    let mut sum = Xyzz::from(multiple::<Fp>(&Scalar::MINUS_ONE));
    sum.add_affine(&G1Affine::generator());
    assert!(sum.is_infinity());
    assert!(
        Xyzz::<Fp>::INFINITY
            .mul_scalar(&Scalar::MINUS_ONE)
            .is_infinity()
    );
}

#[test]
fn conversions_keep_the_point() {
    for k in [0, 1, 2, 77] {
        let a = multiple::<Fp>(&Scalar::from(k));
        assert_eq!(G1Affine::from(ark_bls12_381::G1Affine::from(a)), a);
        assert_eq!(ark_bls12_381::G1Affine::from(a).is_zero(), a.is_infinity());
        let b = multiple::<Fp2>(&Scalar::from(k));
        assert_eq!(G2Affine::from(ark_bls12_381::G2Affine::from(b)), b);
        assert_eq!(G2Affine::from(Xyzz::from(b)), b);
        assert_eq!(-(-b), b);
    }
    assert!(G1Affine::INFINITY.is_on_curve() && G1Affine::INFINITY.is_in_subgroup());
    assert!(G2Affine::INFINITY.is_on_curve() && G2Affine::INFINITY.is_in_subgroup());
    assert_eq!(-G1Affine::INFINITY, G1Affine::INFINITY);
}

#[test]
fn many_points_are_normalised_as_each_is() {
    fn check<F: CurveField>(scale: F) {
        let points: Vec<_> = [0, 1, 2, 0, 0, 77, 5, 0]
            .iter()
            .map(|k| rescaled(&multiple(&Scalar::from(*k)), scale))
            .collect();
        let each: Vec<_> = points.iter().map(Xyzz::to_affine).collect();
        assert_eq!(Xyzz::normalize_all(&points), each);
        assert_eq!(Xyzz::normalize_all(&points[..1]), [Affine::INFINITY]);
        assert!(Xyzz::<F>::normalize_all(&[]).is_empty());
    }
    check(-Fp::from(3));
    check(Fp2::new(Fp::from(3), Fp::from(4)));
}

/// e(aG, bH) e(-abG, H) = 1, and no other multiple will do.
#[test]
fn products_of_pairings() {
    let g1 = |k: u64| multiple::<Fp>(&Scalar::from(k));
    let g2 = |k: u64| multiple::<Fp2>(&Scalar::from(k));
    assert!(pairing_product_is_one(&[]));
    assert!(pairing_product_is_one(&[(g1(0), g2(5)), (g1(5), g2(0))]));
    assert!(!pairing_product_is_one(&[(g1(1), g2(1))]));
    assert!(pairing_product_is_one(&[(g1(6), g2(7)), (-g1(42), g2(1))]));
    assert!(!pairing_product_is_one(&[(g1(6), g2(7)), (-g1(41), g2(1))]));
    assert!(pairing_product_is_one(&[
        (g1(2), g2(3)),
        (g1(0), g2(9)),
        (g1(4), g2(5)),
        (-g1(13), g2(2)),
    ]));
    // The same from parts.
    let part = |p: G1Affine, q: G2Affine| PairingProduct::of(&p, &q);
    let product = part(g1(2), g2(3)).times(part(g1(0), g2(9)));
    assert!(!product.is_one());
    let product = product.times(part(g1(4), g2(5)));
    assert!(product.times(part(-g1(13), g2(2))).is_one());
    assert!(!product.times(part(-g1(12), g2(2))).is_one());
    assert!(part(g1(3), g2(0)).is_one());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sums_g1(a in any_point::<Fp>(), b in any_point::<Fp>(), s in any_fp(), t in any_fp()) {
        prop_assume!(!s.is_zero() && !t.is_zero());
        check_sum::<Fp, ark_bls12_381::G1Affine>(a, b, [s, t]);
    }

    #[test]
    fn sums_g2(a in any_point::<Fp2>(), b in any_point::<Fp2>(), s in any_fp2(), t in any_fp2()) {
        prop_assume!(!s.is_zero() && !t.is_zero());
        check_sum::<Fp2, ark_bls12_381::G2Affine>(a, b, [s, t]);
    }

    #[test]
    fn multiples_add_up(a in any_scalar(), b in any_scalar()) {
        let sum = cuzk_field::Fr::from(a) + cuzk_field::Fr::from(b);
        let mut point = Xyzz::from(multiple::<Fp>(&a));
        point.add_affine(&multiple(&b));
        prop_assert_eq!(point.to_affine(), multiple(&sum.into()));
    }
}
