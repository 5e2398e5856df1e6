//! Types as they lie in memory: sizes, alignment, byte images.

mod common;

use common::{big, hostile, hostile_fp, hostile_fr, limbs, p, r};
use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{
    Field, Fp, Fp2, Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Scalar, constants::FP_MODULUS,
    constants::FR_MODULUS,
};
use num_bigint::BigUint;

#[test]
fn sizes_and_alignment() {
    fn of<T>() -> (usize, usize) {
        (size_of::<T>(), align_of::<T>())
    }
    assert_eq!(of::<Scalar>(), (32, 16));
    assert_eq!(of::<Fr>(), (32, 16));
    assert_eq!(of::<Fp>(), (48, 16));
    assert_eq!(of::<Fp2>(), (96, 16));
    assert_eq!(of::<G1Affine>(), (96, 32));
    assert_eq!(of::<G2Affine>(), (192, 32));
    assert_eq!(of::<G1Xyzz>(), (192, 32));
    assert_eq!(of::<G2Xyzz>(), (384, 32));
}

#[test]
fn coordinates_stand_in_order() {
    use std::mem::offset_of;
    assert_eq!((offset_of!(Fp2, c0), offset_of!(Fp2, c1)), (0, 48));
    assert_eq!((offset_of!(G1Affine, x), offset_of!(G1Affine, y)), (0, 48));
    assert_eq!((offset_of!(G2Affine, x), offset_of!(G2Affine, y)), (0, 96));
    assert_eq!(
        [
            offset_of!(G1Xyzz, x),
            offset_of!(G1Xyzz, y),
            offset_of!(G1Xyzz, zz),
            offset_of!(G1Xyzz, zzz)
        ],
        [0, 48, 96, 144]
    );
}

#[test]
fn defaults_are_zero_and_infinity() {
    assert_eq!(Fr::default(), Fr::ZERO);
    assert_eq!(Fp::default(), Fp::ZERO);
    assert_eq!(Fp2::default(), Fp2::ZERO);
    assert!(G1Affine::default().is_infinity() && G2Affine::default().is_infinity());
    assert!(G1Xyzz::default().is_infinity() && G2Xyzz::default().is_infinity());
}

/// The bytes of a known value, worked out with plain integers: 2 R mod m, little-endian.
#[test]
fn byte_image_of_two() {
    let two_r: BigUint = (BigUint::from(2u32) << 384) % p();
    let mut bytes = two_r.to_bytes_le();
    bytes.resize(48, 0);
    assert_eq!(Fp::from(2).to_montgomery_le_bytes()[..], bytes);
    assert_eq!(Fp::from(2).montgomery_limbs(), &limbs::<6>(&two_r));

    let two_r: BigUint = (BigUint::from(2u32) << 256) % r();
    assert_eq!(Fr::from(2).montgomery_limbs(), &limbs::<4>(&two_r));
    assert_eq!(Scalar::from(2).to_le_bytes()[0], 2);
}

#[test]
fn limbs_are_those_of_arkworks() {
    for value in hostile_fr() {
        assert_eq!(value.montgomery_limbs(), &value.to_ark().0.0);
        assert_eq!(Fr::from_ark(value.to_ark()), value);
        let scalar = Scalar::from(value);
        assert_eq!(
            scalar.limbs(),
            &ark_ff::PrimeField::into_bigint(value.to_ark()).0
        );
        assert_eq!(ark_bls12_381::Fr::from(scalar), value.to_ark());
        assert_eq!(Scalar::from(value.to_ark()), scalar);
        assert_eq!(ark_ff::BigInt::from(scalar).0, *scalar.limbs());
    }
    for value in hostile_fp() {
        let theirs = ark_bls12_381::Fq::from(value);
        assert_eq!(value.montgomery_limbs(), &theirs.0.0);
        assert_eq!(Fp::from(theirs), value);
        assert_eq!(
            value.canonical_limbs(),
            ark_ff::PrimeField::into_bigint(theirs).0
        );
    }
}

#[test]
fn conversions_round_trip() {
    for value in hostile_fr() {
        let scalar = Scalar::from(value);
        assert_eq!(Fr::from(scalar), value);
        assert_eq!(Scalar::from_le_bytes(&scalar.to_le_bytes()), Some(scalar));
        assert_eq!(
            Fr::from_montgomery_limbs(*value.montgomery_limbs()),
            Some(value)
        );
        assert_eq!(scalar.is_zero(), scalar == Scalar::ZERO);
        assert_eq!(scalar.is_one(), scalar == Scalar::ONE);
    }
    for value in hostile_fp() {
        assert_eq!(
            Fp::from_canonical_limbs(value.canonical_limbs()),
            Some(value)
        );
        assert_eq!(Fp::from_be_bytes(&value.to_be_bytes()), Some(value));
        let montgomery = value.to_montgomery_le_bytes();
        assert_eq!(Fp::from_montgomery_le_bytes(&montgomery), Some(value));
    }
}

#[test]
fn values_not_below_the_modulus_are_refused() {
    let all_ones = |words: u64| (BigUint::from(1u32) << (64 * words)) - 1u32;
    for excess in hostile(&r()).into_iter().chain([all_ones(4) - r()]) {
        let value = r() + excess;
        if value.bits() > 256 {
            continue;
        }
        let mut bytes = value.to_bytes_le();
        bytes.resize(32, 0);
        let bytes = bytes.as_slice().try_into().unwrap();
        assert_eq!(Scalar::from_limbs(limbs(&value)), None);
        assert_eq!(Scalar::from_le_bytes(bytes), None);
        assert_eq!(Fr::from_montgomery_limbs(limbs(&value)), None);
        assert_eq!(Fr::from_montgomery_le_bytes(bytes), None);
    }
    for excess in hostile(&p()).into_iter().chain([all_ones(6) - p()]) {
        let value = p() + excess;
        let mut le = value.to_bytes_le();
        le.resize(48, 0);
        let mut be = le.clone();
        be.reverse();
        assert_eq!(Fp::from_canonical_limbs(limbs(&value)), None);
        assert_eq!(Fp::from_montgomery_limbs(limbs(&value)), None);
        assert_eq!(Fp::from_be_bytes(be.as_slice().try_into().unwrap()), None);
        let le = le.as_slice().try_into().unwrap();
        assert_eq!(Fp::from_montgomery_le_bytes(le), None);
    }
    // One below is the last that passes.
    assert!(Scalar::from_limbs(limbs(&(big(&FR_MODULUS) - 1u32))).is_some());
    assert!(Fp::from_canonical_limbs(limbs(&(big(&FP_MODULUS) - 1u32))).is_some());
}

/// iden3's form is the memory image.
#[test]
fn iden3_bytes_are_the_memory_image() {
    let point = G2Affine::generator();
    let words = [point.x.c0, point.x.c1, point.y.c0, point.y.c1];
    let image: Vec<u8> = words
        .iter()
        .flat_map(|word| word.montgomery_limbs().iter().flat_map(|l| l.to_le_bytes()))
        .collect();
    assert_eq!(point.to_iden3(), image);
}

/// Witnesses and blinding factors must not reach a log.
#[test]
fn debug_hides_scalars() {
    let shown = format!("{:?} {:?}", Fr::from(123_456), Scalar::from(123_456));
    assert_eq!(shown, "Fr(..) Scalar(..)");
}
