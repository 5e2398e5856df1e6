//! `.zkey` files: how each fault is refused.

mod common;

use common::{File, base_modulus, g1, g2, modulus, small_zkey};
use cuzk_field::G1Affine;
use cuzk_field::encoding::PointEncoding as _;
use cuzk_formats::{BytesSource, Error, ErrorKind, LoadOptions, zkey};

// Offsets in section 2.
const NUM_VARIABLES: usize = 4 + 48 + 4 + 32;
const NUM_PUBLIC: usize = NUM_VARIABLES + 4;
const DOMAIN_SIZE: usize = NUM_PUBLIC + 4;
const ALPHA1: usize = DOMAIN_SIZE + 4;
const BETA1: usize = ALPHA1 + 96;
const BETA2: usize = BETA1 + 96;
const GAMMA2: usize = BETA2 + 192;
const DELTA1: usize = GAMMA2 + 192;
const DELTA2: usize = DELTA1 + 96;
/// Bytes of an entry of section 4, behind the count.
const ENTRY: usize = 44;

fn read(bytes: &[u8]) -> Result<zkey::Zkey, Error> {
    zkey::read(&BytesSource::new("c.zkey", bytes), &LoadOptions::default())
}

fn refused(bytes: &[u8]) -> Error {
    let error = read(bytes).expect_err("must be refused");
    assert_eq!(error.file(), Some("c.zkey"));
    error
}

#[test]
fn fi_32_every_truncation_is_refused() {
    let bytes = small_zkey();
    let mut cuts = File::parse(&bytes).borders();
    cuts.pop();
    cuts.extend([1, 40, 1000].map(|cut| bytes.len() - cut));
    cuts.extend((0..bytes.len()).step_by(61));
    for len in cuts {
        let error = refused(&bytes[..len]);
        assert!(
            matches!(error.kind(), ErrorKind::Truncated | ErrorKind::BadLayout),
            "{len}: {error}"
        );
    }
}

#[test]
fn a_flipped_bit_in_any_byte_is_refused_or_changes_the_key() {
    let bytes = small_zkey();
    let want = read(&bytes).unwrap();
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        if let Ok(got) = read(&bytes) {
            assert!(got != want, "byte {at}");
        }
    }
}

#[test]
fn fi_02_fi_17_hostile_counts_are_refused() {
    let file = File::parse(&small_zkey());
    for domain_size in [0u32, 1, 3, u32::MAX] {
        let error = refused(&file.patched(2, DOMAIN_SIZE, &domain_size.to_le_bytes()));
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        assert_eq!(error.found(), domain_size.to_string());
    }
    for domain_size in [2u32, 8, 1 << 31] {
        let error = refused(&file.patched(2, DOMAIN_SIZE, &domain_size.to_le_bytes()));
        assert_eq!(
            (error.kind(), error.place().section),
            (ErrorKind::BadLayout, Some(9))
        );
        assert!(error.expected().contains(&domain_size.to_string()));
    }
    for variables in [5u32, 7, (1 << 31) + 1, u32::MAX] {
        let error = refused(&file.patched(2, NUM_VARIABLES, &variables.to_le_bytes()));
        assert_eq!(
            (error.kind(), error.place().section),
            (ErrorKind::BadLayout, Some(5))
        );
        let bytes = u64::from(variables) * 96;
        assert!(error.expected().starts_with(&bytes.to_string()), "{error}");
    }
    for public in [6u32, u32::MAX] {
        let error = refused(&file.patched(2, NUM_PUBLIC, &public.to_le_bytes()));
        assert_eq!(error.kind(), ErrorKind::Inconsistent);
    }
    for public in [0u32, 5] {
        let error = refused(&file.patched(2, NUM_PUBLIC, &public.to_le_bytes()));
        assert_eq!(error.place().section, Some(3));
    }
    for entries in [7u32, 9, u32::MAX] {
        let error = refused(&file.patched(4, 0, &entries.to_le_bytes()));
        assert_eq!(
            (error.kind(), error.place().section),
            (ErrorKind::BadLayout, Some(4))
        );
        let bytes = 4 + 44 * u64::from(entries);
        assert!(error.expected().starts_with(&bytes.to_string()), "{error}");
    }
}

#[test]
fn fi_34_entries_out_of_range_are_refused_by_their_index() {
    let file = File::parse(&small_zkey());
    // Section 4 begins at 1220 in the file.
    for (field, value, expected) in [
        (0, 2u32, "matrix 0 or 1"),
        (4, 4, "a row below 4"),
        (4, u32::MAX, "a row below 4"),
        (8, 6, "a signal below 6"),
    ] {
        let at = 4 + 5 * ENTRY + field;
        let error = refused(&file.patched(4, at, &value.to_le_bytes()));
        assert_eq!(
            error.to_string(),
            format!(
                "c.zkey: section 4 (coefficients), entry 5 at offset {}: expected {expected}, \
                 found {value}",
                1220 + 4 + 5 * 44
            )
        );
    }
}

#[test]
fn fi_28_values_that_are_not_canonical_are_refused_at_their_place() {
    let file = File::parse(&small_zkey());
    let error = refused(&file.patched(4, 4 + 2 * ENTRY + 12, &modulus()));
    assert_eq!(error.kind(), ErrorKind::NotCanonical);
    assert_eq!(error.place().entry, Some(("entry", 2)));
    // x + p of a point: all sections of points, first and last point.
    for (number, point, width) in [
        (3, 1, 96),
        (5, 4, 96),
        (6, 5, 96),
        (7, 5, 192),
        (8, 3, 96),
        (9, 0, 96),
    ] {
        let mut spoiled = file.clone();
        let x = &mut spoiled.body(number)[point * width..][..48];
        let mut carry = 0;
        for (byte, p) in x.iter_mut().zip(base_modulus()) {
            let sum = u16::from(*byte) + u16::from(p) + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
        let error = refused(&spoiled.bytes());
        assert_eq!(error.kind(), ErrorKind::NotCanonical, "{error}");
        assert_eq!(error.place().section, Some(number));
        assert_eq!(error.place().entry, Some(("point", point as u64)));
    }
}

#[test]
fn points_off_the_curve_and_outside_the_subgroup() {
    let file = File::parse(&small_zkey());
    let mut off = file.clone();
    off.body(9)[2 * 96 + 50] ^= 1;
    let error = refused(&off.bytes());
    assert_eq!(error.kind(), ErrorKind::BadPoint);
    assert_eq!(error.place().entry, Some(("point", 2)));
    // x = 4 is on the curve, outside the subgroup.
    let mut x = [0; 48];
    (x[0], x[47]) = (0x80, 4);
    let outside = G1Affine::from_zcash_compressed(&x).unwrap().to_iden3();
    let in_h = file.patched(9, 96, &outside);
    read(&in_h).unwrap();
    let options = LoadOptions {
        subgroup_check: true,
        ..LoadOptions::default()
    };
    let error = zkey::read(&in_h, &options).unwrap_err();
    assert_eq!(error.expected(), "a point of the subgroup of order r");
    // The header's points are checked always.
    for at in [ALPHA1, BETA1, DELTA1] {
        let error = refused(&file.patched(2, at, &outside));
        assert_eq!(error.expected(), "a point of the subgroup of order r");
        assert_eq!(error.place().offset, Some(40 + at as u64));
    }
}

#[test]
fn the_points_of_the_header_are_none_at_infinity_and_agree() {
    let file = File::parse(&small_zkey());
    for (at, bytes, name) in [
        (ALPHA1, 96, "alpha1"),
        (BETA1, 96, "beta1"),
        (BETA2, 192, "beta2"),
        (GAMMA2, 192, "gamma2"),
        (DELTA1, 96, "delta1"),
        (DELTA2, 192, "delta2"),
    ] {
        let error = refused(&file.patched(2, at, &vec![0; bytes]));
        assert_eq!(error.kind(), ErrorKind::BadPoint);
        assert!(error.to_string().contains(name), "{error}");
    }
    for (at, point) in [
        (BETA1, g1(13).to_iden3()),
        (BETA2, g2(13).to_iden3()),
        (DELTA1, g1(13).to_iden3()),
        (DELTA2, g2(13).to_iden3()),
    ] {
        let error = refused(&file.patched(2, at, &point));
        assert_eq!(error.kind(), ErrorKind::Inconsistent);
        assert_eq!(error.place().section, Some(2));
        assert!(error.expected().contains("beta and delta"), "{error}");
    }
}

#[test]
fn other_curves_protocols_and_versions_are_refused_by_name() {
    let file = File::parse(&small_zkey());
    for (protocol, name) in [(2u32, "PLONK (2)"), (10, "FFLONK (10)"), (3, "3")] {
        let error = refused(&file.patched(1, 0, &protocol.to_le_bytes()));
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.found(), name);
    }
    // A BN254 key: fields of 32 bytes, hence a shorter header.
    let mut bn254 = file.clone();
    let q = "47fd7cd8168c203c8dca7168916a81975d588181b64550b829a031e1724e6430";
    let q: Vec<u8> = (0..64)
        .step_by(2)
        .map(|at| u8::from_str_radix(&q[at..at + 2], 16).unwrap())
        .collect();
    let body = bn254.body(2);
    body.splice(..52, [32, 0, 0, 0].into_iter().chain(q));
    let error = refused(&bn254.bytes());
    assert_eq!(error.kind(), ErrorKind::WrongCurve);
    assert_eq!(error.found(), "that of BN254 (bn128)");
    let mut version = small_zkey();
    version[4] = 2;
    assert_eq!(refused(&version).kind(), ErrorKind::Unsupported);
    let mut long = file.clone();
    long.body(2).push(0);
    assert_eq!(refused(&long.bytes()).place().section, Some(2));
}

#[test]
fn fi_08_what_is_no_zkey_says_what_it_is() {
    for len in [0, 3, 11] {
        assert_eq!(refused(&small_zkey()[..len]).kind(), ErrorKind::Truncated);
    }
    let params = [g1(5).to_zcash_uncompressed(), vec![0; 800]].concat();
    for (bytes, what) in [
        (common::small_wtns(&[1]), "a witness (.wtns)"),
        (common::small_r1cs(), "a constraint system (.r1cs)"),
        (params, "bellman parameters or an uncompressed arkworks key"),
    ] {
        let error = refused(&bytes);
        assert_eq!(error.kind(), ErrorKind::WrongFormat);
        assert_eq!(error.found(), what);
    }
}
