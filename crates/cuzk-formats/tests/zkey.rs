//! `.zkey` files: what is accepted, and how each fault is refused.

mod common;

use common::{File, base_modulus, g1, g2, modulus, small_matrices, small_zkey, synthetic_key};
use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{Fr, G1Affine};
use cuzk_formats::{
    Bytes, CoefficientTable, Error, ErrorKind, KeyFlavour, LoadOptions, NoteKind, zkey,
};
use proptest::prelude::*;

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
    zkey::read(&Bytes::new("c.zkey", bytes), &LoadOptions::default())
}

fn refused(bytes: &[u8]) -> Error {
    let error = read(bytes).expect_err("must be refused");
    assert_eq!(error.file(), Some("c.zkey"));
    error
}

fn strict() -> LoadOptions<'static> {
    LoadOptions {
        strict: true,
        ..LoadOptions::default()
    }
}

#[test]
fn fi_40_a_key_is_read_as_written_identities_included() {
    let bytes = small_zkey();
    let file = zkey::read(&bytes, &strict()).unwrap();
    assert!(file.key == synthetic_key(6, 1, 4));
    assert!(common::same_matrices(&file.matrices, &small_matrices()));
    assert_eq!(file.key.flavour, KeyFlavour::CIRCOM);
    assert_eq!(file.header.num_coefficients, 8);
    assert_eq!(file.transcript.unwrap().num_contributions, 0);
    let subgroup = LoadOptions {
        subgroup_check: true,
        ..strict()
    };
    zkey::read(&bytes, &subgroup).unwrap();
    let (header, notes) = zkey::read_header(&bytes, &strict()).unwrap();
    assert_eq!(header, file.header);
    assert!(notes.is_empty());
}

#[test]
fn wp_22_small_domains_and_no_private_variables() {
    for (variables, public, domain_size) in [(1, 0, 2), (2, 1, 2), (4, 0, 4), (4, 3, 4), (3, 1, 8)]
    {
        let mut table = CoefficientTable::new();
        let a = common::matrix(&[vec![(0, Fr::from(1))]], &mut table);
        let b = common::matrix(&[vec![]], &mut table);
        let matrices = cuzk_formats::AbMatrices {
            a,
            b,
            coefficients: table,
        };
        let key = synthetic_key(variables, public, domain_size);
        let mut bytes = Vec::new();
        zkey::write(&key, &matrices, &mut bytes).unwrap();
        let file = zkey::read(&bytes, &strict()).unwrap();
        assert!(file.key == key && common::same_matrices(&file.matrices, &matrices));
        assert_eq!(file.key.h_query.len(), domain_size);
    }
}

#[test]
fn fi_31_sections_in_any_order_unknown_double_and_missing() {
    let file = File::parse(&small_zkey());
    let want = read(&file.bytes()).unwrap();
    let mut fresh = file.clone();
    let order = [1, 2, 4, 3, 9, 8, 5, 6, 7, 10];
    fresh
        .sections
        .sort_by_key(|section| order.iter().position(|n| *n == section.0));
    let mut unknown = file.clone();
    unknown.sections.insert(3, (77, vec![5; 100]));
    for (bytes, notes) in [
        (fresh.bytes(), &[][..]),
        (unknown.bytes(), &[NoteKind::UnknownSection]),
    ] {
        let got = read(&bytes).unwrap();
        assert!(got.key == want.key && got.matrices == want.matrices);
        assert!(
            got.notes
                .iter()
                .map(|note| note.kind)
                .eq(notes.iter().copied())
        );
    }
    for number in 1..=9 {
        let name = [
            "protocol",
            "header",
            "IC",
            "coefficients",
            "A",
            "B1",
            "B2",
            "C",
            "H",
        ];
        let name = name[number as usize - 1];
        let mut missing = file.clone();
        missing.sections.retain(|section| section.0 != number);
        let error = refused(&missing.bytes());
        assert_eq!(error.kind(), ErrorKind::BadLayout);
        assert!(
            error.to_string().starts_with(&format!(
                "c.zkey: section {number} ({name}): expected section"
            )),
            "{error}"
        );
        let mut double = file.clone();
        let body = double.body(number).clone();
        double.sections.push((number, body));
        let error = refused(&double.bytes());
        assert_eq!(error.found(), "it twice");
        assert_eq!(error.place().section, Some(number));
    }
}

#[test]
fn fi_01_a_missing_or_odd_transcript_is_noted() {
    let file = File::parse(&small_zkey());
    let mut missing = file.clone();
    missing.sections.pop();
    let got = read(&missing.bytes()).unwrap();
    assert_eq!(got.notes[0].kind, NoteKind::MissingOptional);
    assert!(!got.header.has_transcript && got.transcript.is_none());
    for count in [1u32, u32::MAX] {
        let odd = file.patched(10, 64, &count.to_le_bytes());
        assert_eq!(read(&odd).unwrap().notes[0].kind, NoteKind::CeremonyTail);
        let error = zkey::read(&odd, &strict()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Strict);
    }
    // A contribution with a name, and a beacon.
    let mut ceremony = file.clone();
    let body = ceremony.body(10);
    body[64] = 2;
    body.extend([1; 544]);
    body.extend([0, 0, 0, 0, 3, 0, 0, 0, 1, 1, b'x']);
    body.extend([2; 544]);
    body.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    let transcript = zkey::read(&ceremony.bytes(), &strict())
        .unwrap()
        .transcript
        .unwrap();
    assert_eq!(
        (transcript.num_contributions, transcript.num_beacons),
        (2, 1)
    );
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
    for (at, point, name) in [
        (BETA1, g1(13).to_iden3(), "beta1"),
        (BETA2, g2(13).to_iden3(), "beta1"),
        (DELTA1, g1(13).to_iden3(), "delta1"),
        (DELTA2, g2(13).to_iden3(), "delta1"),
    ] {
        let error = refused(&file.patched(2, at, &point));
        assert_eq!(error.kind(), ErrorKind::Inconsistent);
        assert!(error.expected().contains(name), "{error}");
    }
}

#[test]
fn wp_19_wp_20_an_unbound_public_value_is_noted_and_strictly_refused() {
    let file = File::parse(&small_zkey());
    let bytes = file.patched(3, 96, &[0; 96]);
    let note = &read(&bytes).unwrap().notes[0];
    assert_eq!(note.kind, NoteKind::UnboundPublicInput);
    assert_eq!(note.place.entry, Some(("point", 1)));
    let error = zkey::read(&bytes, &strict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Strict);
}

#[test]
fn entries_in_any_order_and_repeated_make_the_same_rows() {
    let file = File::parse(&small_zkey());
    let want = read(&file.bytes()).unwrap();
    let mut reversed = file.clone();
    let body = reversed.body(4);
    let entries: Vec<Vec<u8>> = body[4..].chunks(ENTRY).map(<[u8]>::to_vec).collect();
    body.truncate(4);
    body.extend(entries.iter().rev().flatten());
    let got = read(&reversed.bytes()).unwrap();
    assert!(common::same_matrices(&got.matrices, &want.matrices));

    // Every entry twice is every coefficient doubled, in order or not.
    let doubled = |table: &CoefficientTable, matrix| {
        let mut rows = common::rows(matrix, table);
        rows.iter_mut().flatten().for_each(|(_, v)| *v = *v + *v);
        rows
    };
    let twice: Vec<_> = entries
        .iter()
        .flat_map(|e| [e, e])
        .flatten()
        .copied()
        .collect();
    let twice_over = [entries.concat(), entries.concat()].concat();
    for entries in [twice, twice_over] {
        let mut repeated = file.clone();
        let body = repeated.body(4);
        body.clear();
        body.extend(16u32.to_le_bytes());
        body.extend(entries);
        let got = read(&repeated.bytes()).unwrap().matrices;
        let table = &want.matrices.coefficients;
        assert!(common::rows(&got.a, &got.coefficients) == doubled(table, &want.matrices.a));
        assert!(common::rows(&got.b, &got.coefficients) == doubled(table, &want.matrices.b));
    }
    // An entry of value zero is none, but its row counts.
    let mut zero = file.clone();
    zero.patch(4, 4 + 7 * ENTRY + 12, &[0; 32]);
    let got = read(&zero.bytes()).unwrap().matrices;
    assert_eq!(got.a.num_entries(), want.matrices.a.num_entries() - 1);
    assert_eq!(got.a.num_rows(), want.matrices.a.num_rows());
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

#[test]
fn keys_that_a_zkey_cannot_hold_are_not_written() {
    let matrices = small_matrices();
    let mut libsnark = synthetic_key(6, 1, 4);
    libsnark.flavour = KeyFlavour::LIBSNARK;
    let mut short = synthetic_key(6, 1, 4);
    short.h_query.pop();
    let narrow = synthetic_key(6, 1, 2);
    for (key, kind) in [
        (libsnark, ErrorKind::Unsupported),
        (short, ErrorKind::Inconsistent),
        (narrow, ErrorKind::Inconsistent),
    ] {
        let mut out = Vec::new();
        let error = zkey::write(&key, &matrices, &mut out).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(out.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_read_as_written(
        a in prop::collection::vec(prop::collection::btree_map(0u32..6, 1u64.., 0..5), 1..4),
        b in prop::collection::vec(prop::collection::btree_map(0u32..6, 1u64.., 0..5), 1..4),
    ) {
        let mut table = CoefficientTable::new();
        let mut build = |rows: &[std::collections::BTreeMap<u32, u64>]| {
            let rows: Vec<Vec<_>> = rows
                .iter()
                .map(|row| row.iter().map(|(c, v)| (*c, Fr::from(*v))).collect())
                .collect();
            common::matrix(&rows, &mut table)
        };
        let (a, b) = (build(&a), build(&b));
        let matrices = cuzk_formats::AbMatrices { a, b, coefficients: table };
        let mut bytes = Vec::new();
        zkey::write(&synthetic_key(6, 1, 4), &matrices, &mut bytes).unwrap();
        let got = read(&bytes).unwrap().matrices;
        // Rows without an entry at the end are not in the file.
        prop_assert_eq!(got.a.num_rows(), got.b.num_rows());
        for (got, want) in [(&got.a, &matrices.a), (&got.b, &matrices.b)] {
            let mut got = common::rows(got, &read(&bytes).unwrap().matrices.coefficients);
            let mut want = common::rows(want, &matrices.coefficients);
            got.resize(4, Vec::new());
            want.resize(4, Vec::new());
            prop_assert!(got == want);
        }
    }

    #[test]
    fn spoiled_bytes_never_panic(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = small_zkey();
        for (at, value) in spoils {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = read(&bytes);
    }
}
