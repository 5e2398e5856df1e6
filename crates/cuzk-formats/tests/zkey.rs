//! `.zkey` files: what is accepted, in which forms.

mod common;

use common::{File, small_matrices, small_zkey, synthetic_key};
use cuzk_field::Fr;
use cuzk_formats::{
    BytesSource, CoefficientTable, Error, ErrorKind, KeyFlavour, LoadOptions, NoteKind, zkey,
};
use proptest::prelude::*;

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
fn wp_19_wp_20_an_unbound_public_value_is_noted_and_strictly_refused() {
    let file = File::parse(&small_zkey());
    let bytes = file.patched(3, 96, &[0; 96]);
    let note = &read(&bytes).unwrap().notes[0];
    assert_eq!(note.kind, NoteKind::UnboundPublicInput);
    assert_eq!(note.place.entry, Some(("point", 1)));
    assert!(
        note.text.contains("public value 0 (counted from 0)"),
        "{note}"
    );
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

#[test]
fn fi_14_progress_goes_to_the_end_and_a_read_can_be_cancelled_midway() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
    let bytes = small_zkey();
    let (most, cancel) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = |p: cuzk_formats::Progress| {
        most.fetch_max(p.done_bytes, Relaxed);
        assert!(p.done_bytes <= p.total_bytes);
    };
    let options = LoadOptions {
        progress: Some(&progress),
        cancel: Some(&cancel),
        ..strict()
    };
    zkey::read(&bytes, &options).unwrap();
    // Two IC points, eight entries, six variables, four private ones, domain 4.
    let body = 96 * 2 + 44 * 8 + (96 + 96 + 192) * 6 + 96 * (4 + 4);
    assert_eq!(most.load(Relaxed), body);

    let stop_at_h = |p: cuzk_formats::Progress| {
        if p.label == "H" {
            cancel.store(true, Relaxed);
        }
    };
    let options = LoadOptions {
        progress: Some(&stop_at_h),
        ..options
    };
    let error = zkey::read(&bytes, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
