//! Every constant derived again from its formula, and both families of roots.

mod common;

use common::{big, limbs, p, r};
use cuzk_field::constants::{
    FP_INV, FP_MODULUS, FP_R, FP_R2, FR_INV, FR_MODULUS, FR_R, FR_R2, FR_TWO_ADICITY, G1_BETA,
    G1_LAMBDA, ROOT_2_32_OF_5, ROOT_2_32_OF_7,
};
use cuzk_field::{CurveField, Field, Fp, Fp2, Fr, G1Affine, G2Affine, RootGenerator, Scalar};
use num_bigint::{BigInt, BigUint};

/// |z|; the parameter itself is negative.
const Z_ABS: u64 = 0xd201_0000_0001_0000;

#[test]
fn moduli_come_from_the_curve_parameter() {
    let z = -BigInt::from(Z_ABS);
    let order = &z * &z * &z * &z - &z * &z + 1;
    assert_eq!(order, BigInt::from(r()));
    let square = (&z - 1) * (&z - 1) * &order;
    assert_eq!(&square % 3, BigInt::ZERO);
    assert_eq!(square / 3 + z, BigInt::from(p()));
    assert_eq!((r().bits(), p().bits()), (255, 381));
}

#[test]
fn montgomery_constants_come_from_the_moduli() {
    let one = BigUint::from(1u32);
    assert_eq!(limbs::<4>(&((&one << 256) % r())), FR_R);
    assert_eq!(limbs::<4>(&((&one << 512) % r())), FR_R2);
    assert_eq!(limbs::<6>(&((&one << 384) % p())), FP_R);
    assert_eq!(limbs::<6>(&((&one << 768) % p())), FP_R2);
    // m * -m^-1 = -1 modulo 2^64, hence modulo 2^32 too.
    assert_eq!(FR_MODULUS[0].wrapping_mul(FR_INV), u64::MAX);
    assert_eq!(FP_MODULUS[0].wrapping_mul(FP_INV), u64::MAX);
    assert_eq!(Fr::ONE.montgomery_limbs(), &FR_R);
    assert_eq!(Fp::ONE.montgomery_limbs(), &FP_R);
}

#[test]
fn the_endomorphism_of_g1_multiplies_by_lambda() {
    let lambda = BigUint::from(Z_ABS) * Z_ABS - 1u32;
    assert_eq!(lambda, BigUint::from(G1_LAMBDA));
    assert_eq!((&lambda * &lambda + &lambda + 1u32) % r(), BigUint::ZERO);
    let beta = BigUint::from(2u32).modpow(&((p() - 1u32) / 3u32 * 2u32), &p());
    assert_eq!(limbs::<6>(&((&beta << 384) % p())), G1_BETA);
    let scalar = [G1_LAMBDA as u64, (G1_LAMBDA >> 64) as u64, 0, 0];
    let scalar = Scalar::from_limbs(scalar).unwrap();
    let mut point = G1Affine::generator();
    for _ in 0..4 {
        let multiple = cuzk_field::G1Xyzz::from(point).mul_scalar(&scalar);
        assert_eq!(point.endomorphism(), multiple.to_affine());
        point = multiple.double().to_affine();
    }
    assert!(G1Affine::INFINITY.endomorphism().is_infinity());
}

#[test]
fn two_adicity_is_exact() {
    let order = r() - 1u32;
    assert_eq!(order.trailing_zeros(), Some(u64::from(FR_TWO_ADICITY)));
}

#[test]
fn roots_come_from_their_generators() {
    let exponent = (r() - 1u32) >> FR_TWO_ADICITY;
    for (generator, root) in [(5u32, ROOT_2_32_OF_5), (7, ROOT_2_32_OF_7)] {
        let expected = BigUint::from(generator).modpow(&exponent, &r());
        assert_eq!(big(&root), expected, "root of {generator}");
    }
    // The values as formats and other tools print them.
    let hex = |limbs: &[u64]| format!("{:064x}", big(limbs));
    assert_eq!(
        hex(&ROOT_2_32_OF_5),
        "0212d79e5b416b6f0fd56dc8d168d6c0c4024ff270b3e0941b788f500b912f1f"
    );
    assert_eq!(
        hex(&ROOT_2_32_OF_7),
        "16a2a19edfe81f20d09b681922c813b4b63683508c2280b93829971f439f0d2b"
    );
    assert_eq!(
        big(&ROOT_2_32_OF_5).modpow(&192_310_269u32.into(), &r()),
        big(&ROOT_2_32_OF_7)
    );
}

#[test]
fn five_is_the_smallest_non_residue_and_seven_is_one() {
    let half = (r() - 1u32) >> 1;
    let minus_one = r() - 1u32;
    let is_residue = |n: u32| BigUint::from(n).modpow(&half, &r()) != minus_one;
    assert!((2..5).all(is_residue));
    assert!(!is_residue(5) && !is_residue(7));
    assert_eq!(RootGenerator::Five.generator(), 5);
    assert_eq!(RootGenerator::Seven.generator(), 7);
}

#[test]
fn roots_have_exact_order() {
    for family in [RootGenerator::Five, RootGenerator::Seven] {
        for log_order in 0..=FR_TWO_ADICITY {
            let mut power = family.root_of_unity(log_order).unwrap();
            for _ in 1..log_order {
                power = power.square();
            }
            // After k - 1 squarings a primitive 2^k-th root is -1; for k = 0 the root is 1.
            let expected = if log_order == 0 { Fr::ONE } else { -Fr::ONE };
            assert_eq!(power, expected, "{family:?} 2^{log_order}");
        }
        for log_order in [33, 34, 64, u32::MAX] {
            assert_eq!(family.root_of_unity(log_order), None);
        }
    }
}

/// The fault behind invalid proofs from snarkjs keys (WP-01, WP-02): small domains hide it.
#[test]
fn families_agree_only_up_to_four() {
    for log_order in 0..=FR_TWO_ADICITY {
        let five = RootGenerator::Five.root_of_unity(log_order);
        let seven = RootGenerator::Seven.root_of_unity(log_order);
        assert_eq!(five == seven, log_order <= 2, "2^{log_order}");
    }
}

#[test]
fn seven_is_the_family_of_arkworks() {
    use ark_ff::FftField as _;
    for log_order in 0..=FR_TWO_ADICITY {
        let ours = RootGenerator::Seven.root_of_unity(log_order).unwrap();
        let theirs = ark_bls12_381::Fr::get_root_of_unity(1 << log_order).unwrap();
        assert_eq!(ours.to_ark(), theirs);
    }
}

#[test]
fn curve_constants() {
    use ark_bls12_381::{g1, g2};
    use ark_ec::short_weierstrass::SWCurveConfig;
    assert_eq!(<Fp as CurveField>::B, Fp::from(4));
    assert_eq!(<Fp2 as CurveField>::B, Fp2::new(Fp::from(4), Fp::from(4)));
    assert_eq!(<Fp as CurveField>::B, g1::Config::COEFF_B.into());
    assert_eq!(<Fp2 as CurveField>::B, g2::Config::COEFF_B.into());
    assert!(G1Affine::generator().is_on_curve() && G1Affine::generator().is_in_subgroup());
    assert!(G2Affine::generator().is_on_curve() && G2Affine::generator().is_in_subgroup());
    assert_eq!(Scalar::from(-Fr::ONE), Scalar::MINUS_ONE);
    assert_eq!(big(Scalar::MINUS_ONE.limbs()), r() - 1u32);
}

/// Neither curve has a point of order two, so doubling never meets y = 0: both cofactors are odd.
#[test]
fn no_point_has_y_zero() {
    use ark_ec::CurveConfig as _;
    assert_eq!(ark_bls12_381::g1::Config::COFACTOR[0] & 1, 1);
    assert_eq!(ark_bls12_381::g2::Config::COFACTOR[0] & 1, 1);
}
