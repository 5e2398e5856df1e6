//! Point encodings: bytes of arkworks, and every way to be wrong.

mod common;

use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use common::{any_point, multiple, p};
use cuzk_field::encoding::{PointEncoding, PointError};
use cuzk_field::{Affine, CurveField, Field, Fp, Fp2, G1Affine, G2Affine, Scalar};
use proptest::prelude::*;

const COMPRESSED: u8 = 0x80;
const INFINITY: u8 = 0x40;
const LARGER_Y: u8 = 0x20;

fn check_round_trip<F: CurveField, P>(point: Affine<F>)
where
    Affine<F>: PointEncoding,
    P: From<Affine<F>> + Into<Affine<F>> + CanonicalSerialize + CanonicalDeserialize,
{
    let theirs = P::from(point);
    let (mut compressed, mut uncompressed) = (Vec::new(), Vec::new());
    theirs.serialize_compressed(&mut compressed).unwrap();
    theirs.serialize_uncompressed(&mut uncompressed).unwrap();
    assert_eq!(point.to_zcash_compressed(), compressed);
    assert_eq!(point.to_zcash_uncompressed(), uncompressed);
    assert_eq!(Affine::from_zcash_compressed(&compressed), Ok(point));
    assert_eq!(Affine::from_zcash_uncompressed(&uncompressed), Ok(point));
    assert_eq!(Affine::from_iden3(&point.to_iden3()), Ok(point));
    assert_eq!(compressed.len(), Affine::<F>::COMPRESSED_BYTES);
    assert_eq!(uncompressed.len(), Affine::<F>::UNCOMPRESSED_BYTES);
}

#[test]
fn bytes_are_those_of_arkworks() {
    for k in [0, 1, 2, 3, 4, 5, 1 << 40] {
        let k = Scalar::from(k);
        for negate in [false, true] {
            let (a, b) = (multiple::<Fp>(&k), multiple::<Fp2>(&k));
            let (a, b) = if negate { (-a, -b) } else { (a, b) };
            check_round_trip::<_, ark_bls12_381::G1Affine>(a);
            check_round_trip::<_, ark_bls12_381::G2Affine>(b);
        }
    }
}

/// The generator's compressed bytes as the Zcash protocol's documents print them.
#[test]
fn known_bytes_of_the_generators() {
    let g1 = G1Affine::generator().to_zcash_compressed();
    assert_eq!(g1[..4], [0x97, 0xf1, 0xd3, 0xa7]);
    assert_eq!(g1[44..], [0xdb, 0x22, 0xc6, 0xbb]);
    let g2 = G2Affine::generator().to_zcash_compressed();
    assert_eq!(g2[..4], [0x93, 0xe0, 0x2b, 0x60]);
}

#[test]
fn infinity_has_one_encoding() {
    fn check<F: CurveField>()
    where
        Affine<F>: PointEncoding,
    {
        let mut compressed = vec![0; Affine::<F>::COMPRESSED_BYTES];
        compressed[0] = COMPRESSED | INFINITY;
        let mut uncompressed = vec![0; Affine::<F>::UNCOMPRESSED_BYTES];
        uncompressed[0] = INFINITY;
        assert_eq!(Affine::<F>::INFINITY.to_zcash_compressed(), compressed);
        assert_eq!(Affine::<F>::INFINITY.to_zcash_uncompressed(), uncompressed);
        assert!(Affine::<F>::INFINITY.to_iden3().iter().all(|b| *b == 0));
        // Any further bit refuses it, the other flags as well as each byte.
        for i in 0..compressed.len() {
            let mut bytes = compressed.clone();
            bytes[i] |= 1;
            let error = Affine::<F>::from_zcash_compressed(&bytes);
            assert!(matches!(error, Err(PointError::BadFlags { flags: 0xc0 })));
        }
        for i in 0..uncompressed.len() {
            let mut bytes = uncompressed.clone();
            bytes[i] |= 1;
            let error = Affine::<F>::from_zcash_uncompressed(&bytes);
            assert!(matches!(error, Err(PointError::BadFlags { flags: 0x40 })));
        }
        // All zero is iden3's infinity and nothing in the Zcash encoding.
        uncompressed[0] = 0;
        assert_eq!(
            Affine::<F>::from_zcash_uncompressed(&uncompressed),
            Err(PointError::BadFlags { flags: 0 })
        );
        assert_eq!(Affine::<F>::from_iden3(&uncompressed), Ok(Affine::INFINITY));
    }
    check::<Fp>();
    check::<Fp2>();
}

#[test]
fn every_flag_combination() {
    fn check<F: CurveField>()
    where
        Affine<F>: PointEncoding,
    {
        let point = Affine::<F>::generator();
        let compressed = point.to_zcash_compressed();
        let uncompressed = point.to_zcash_uncompressed();
        for flags in (0..8).map(|bits| bits << 5) {
            let mut bytes = compressed.clone();
            bytes[0] = bytes[0] & 0x1f | flags;
            let read = Affine::from_zcash_compressed(&bytes);
            let other_sign = flags != compressed[0] & 0xe0;
            match flags {
                COMPRESSED | 0xa0 => assert_eq!(read, Ok(if other_sign { -point } else { point })),
                _ => assert_eq!(read, Err(PointError::BadFlags { flags })),
            }
            let mut bytes = uncompressed.clone();
            bytes[0] |= flags;
            let read = Affine::from_zcash_uncompressed(&bytes);
            match flags {
                0 => assert_eq!(read, Ok(point)),
                _ => assert_eq!(read, Err(PointError::BadFlags { flags })),
            }
        }
        assert_eq!(LARGER_Y | COMPRESSED, 0xa0);
    }
    check::<Fp>();
    check::<Fp2>();
}

/// x + p names the same residue; it must not name the same point (FI-28).
#[test]
fn coordinates_not_below_p_are_refused() {
    let modulus = p().to_bytes_be();
    assert_eq!(modulus.len(), 48);
    let mut all_ones = [0xff; 48];
    all_ones[0] = 0x1f;
    for bad in [modulus.as_slice().try_into().unwrap(), all_ones] {
        for word in 0..4 {
            let mut bytes = G2Affine::generator().to_zcash_uncompressed();
            bytes[48 * word..48 * (word + 1)].copy_from_slice(&bad);
            let read = G2Affine::from_zcash_uncompressed(&bytes);
            assert_eq!(read, Err(PointError::CoordinateNotCanonical));
            // iden3's words are little-endian.
            let mut bytes = G2Affine::generator().to_iden3();
            let mut little = bad;
            little.reverse();
            bytes[48 * word..48 * (word + 1)].copy_from_slice(&little);
            let read = G2Affine::from_iden3(&bytes);
            assert_eq!(read, Err(PointError::CoordinateNotCanonical));
        }
        for word in 0..2 {
            let mut bytes = G2Affine::generator().to_zcash_compressed();
            bytes[48 * word..48 * (word + 1)].copy_from_slice(&bad);
            bytes[0] |= COMPRESSED;
            let read = G2Affine::from_zcash_compressed(&bytes);
            assert_eq!(read, Err(PointError::CoordinateNotCanonical));
        }
        let mut bytes = bad;
        bytes[0] |= COMPRESSED;
        let read = G1Affine::from_zcash_compressed(&bytes);
        assert_eq!(read, Err(PointError::CoordinateNotCanonical));
        let mut bytes = G1Affine::generator().to_zcash_uncompressed();
        bytes[48..].copy_from_slice(&bad);
        let read = G1Affine::from_zcash_uncompressed(&bytes);
        assert_eq!(read, Err(PointError::CoordinateNotCanonical));
    }
}

#[test]
fn points_off_the_curve_are_refused() {
    let off = G1Affine {
        x: Fp::from(1),
        y: Fp::from(2),
    };
    let read = G1Affine::from_zcash_uncompressed(&off.to_zcash_uncompressed());
    assert_eq!(read, Err(PointError::NotOnCurve));
    assert_eq!(
        G1Affine::from_iden3(&off.to_iden3()),
        Err(PointError::NotOnCurve)
    );
    // 1 + 4 = 5 is no square modulo p.
    let mut bytes = [0; 48];
    bytes[0] = COMPRESSED;
    bytes[47] = 1;
    let read = G1Affine::from_zcash_compressed(&bytes);
    assert_eq!(read, Err(PointError::NotOnCurve));
    let off = G2Affine {
        x: Fp2::ONE,
        y: Fp2::ONE,
    };
    let read = G2Affine::from_zcash_uncompressed(&off.to_zcash_uncompressed());
    assert_eq!(read, Err(PointError::NotOnCurve));
    // One zero coordinate is not infinity.
    let half = G1Affine {
        x: Fp::ZERO,
        y: Fp::ONE,
    };
    assert_eq!(
        G1Affine::from_iden3(&half.to_iden3()),
        Err(PointError::NotOnCurve)
    );
}

/// Points on the curve outside the subgroup decode: the subgroup is asked apart.
#[test]
fn points_outside_the_subgroup_decode() {
    let mut found = 0;
    for x in 0..40 {
        let mut bytes = [0; 48];
        bytes[0] = COMPRESSED;
        bytes[47] = x;
        if let Ok(point) = G1Affine::from_zcash_compressed(&bytes) {
            assert!(point.is_on_curve() && !point.is_in_subgroup(), "x = {x}");
            check_round_trip_unchecked_g1(point);
            found += 1;
        }
        let mut bytes = [0; 96];
        bytes[0] = COMPRESSED;
        bytes[95] = x;
        if let Ok(point) = G2Affine::from_zcash_compressed(&bytes) {
            assert!(point.is_on_curve() && !point.is_in_subgroup(), "x = {x}");
            let bytes = point.to_zcash_uncompressed();
            assert_eq!(G2Affine::from_zcash_uncompressed(&bytes), Ok(point));
            found += 1;
        }
    }
    // Among them (0, 2), for which blst has an answer of its own.
    assert!(found > 20, "{found}");
    let mut bytes = [0; 48];
    bytes[0] = COMPRESSED;
    let point = G1Affine::from_zcash_compressed(&bytes).unwrap();
    assert_eq!((point.x, point.y), (Fp::ZERO, Fp::from(2)));
}

fn check_round_trip_unchecked_g1(point: G1Affine) {
    let theirs =
        ark_bls12_381::G1Affine::deserialize_compressed_unchecked(&point.to_zcash_compressed()[..]);
    assert_eq!(G1Affine::from(theirs.unwrap()), point);
    assert_eq!(G1Affine::from_iden3(&point.to_iden3()), Ok(point));
}

#[test]
#[should_panic(expected = "bytes of an uncompressed point")]
fn wrong_length_is_the_callers_fault() {
    let _ = G1Affine::from_iden3(&[0; 95]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn round_trips(a in any_point::<Fp>(), b in any_point::<Fp2>()) {
        check_round_trip::<_, ark_bls12_381::G1Affine>(a);
        check_round_trip::<_, ark_bls12_381::G2Affine>(b);
    }

    /// Whatever decodes is what arkworks decodes, and writes back to the same bytes.
    #[test]
    fn random_bytes(mut bytes in any::<[[u8; 16]; 3]>(), x in 0u8..32) {
        bytes[0][0] = COMPRESSED | x;
        let bytes = bytes.concat();
        let ours = G1Affine::from_zcash_compressed(&bytes);
        let theirs = ark_bls12_381::G1Affine::deserialize_compressed_unchecked(&bytes[..]);
        prop_assert_eq!(ours.ok(), theirs.ok().map(G1Affine::from));
        if let Ok(point) = ours {
            prop_assert_eq!(point.to_zcash_compressed(), bytes);
        }
    }
}
