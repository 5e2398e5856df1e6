//! `.r1cs` files: what is accepted, and how each fault is refused.

mod common;

use common::{File, modulus, r1cs_bytes, rows, scalar, small_r1cs};
use cuzk_field::{Fr, Scalar};
use cuzk_formats::{BytesSource, Error, ErrorKind, LoadOptions, NoteKind, r1cs};
use proptest::prelude::*;

fn read(bytes: &[u8]) -> Result<r1cs::R1csFile, Error> {
    r1cs::read(&BytesSource::new("c.r1cs", bytes), &LoadOptions::default())
}

fn refused(bytes: &[u8]) -> Error {
    let error = read(bytes).expect_err("must be refused");
    assert_eq!(error.file(), Some("c.r1cs"));
    // The scan for inspection refuses the same.
    let scanned = r1cs::scan(&BytesSource::new("c.r1cs", bytes), &LoadOptions::default());
    assert_eq!(scanned.expect_err("must be refused"), error);
    error
}

#[test]
fn rows_come_out_sorted_with_repeats_summed_and_zeros_dropped() {
    let minus_one = Scalar::MINUS_ONE.to_le_bytes();
    let bytes = r1cs_bytes(
        300,
        0,
        &[
            &[
                (299, scalar(3)),
                (7, scalar(1)),
                (299, scalar(4)),
                (8, scalar(0)),
            ],
            &[(5, scalar(1)), (5, minus_one), (6, scalar(2))],
            &[(1, scalar(9)), (1, minus_one), (1, scalar(1))],
        ],
    );
    let file = read(&bytes).unwrap();
    let system = &file.r1cs;
    let of = |matrix| rows(matrix, &system.coefficients);
    assert!(of(&system.a) == vec![vec![(7, Fr::from(1)), (299, Fr::from(7))]]);
    assert!(of(&system.b) == vec![vec![(6, Fr::from(2))]]);
    assert!(of(&system.c) == vec![vec![(1, Fr::from(9))]]);
    let (_, statistics, notes) = r1cs::scan(&bytes, &LoadOptions::default()).unwrap();
    assert_eq!(statistics.num_entries, [4, 3, 3]);
    assert_eq!(statistics.num_minus_ones, [0, 1, 1]);
    assert!(notes.is_empty());
}

#[test]
fn fi_20_no_constraints_is_a_system() {
    for public in [0, 1, 5] {
        let file = read(&r1cs_bytes(public + 2, public, &[])).unwrap();
        assert_eq!(file.r1cs.num_constraints(), 0);
        assert_eq!(file.r1cs.num_inputs, public as usize + 1);
    }
}

#[test]
fn fi_32_every_truncation_is_refused() {
    let bytes = small_r1cs();
    for len in 0..bytes.len() {
        let error = refused(&bytes[..len]);
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Truncated | ErrorKind::WrongFormat | ErrorKind::BadLayout
            ),
            "{len}: {error}"
        );
    }
    for border in File::parse(&bytes).borders() {
        assert_eq!(read(&bytes[..border]).is_ok(), border == bytes.len());
    }
}

#[test]
fn every_flipped_bit_is_refused_or_changes_the_file_read() {
    let bytes = small_r1cs();
    let want = read(&bytes).unwrap();
    // Wire labels are for people; proving does not use them.
    let labels = bytes.len() - 8 * 5..bytes.len();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(got) = read(&bytes) {
            assert!(got != want || labels.contains(&(bit / 8)), "bit {bit}");
        }
    }
}

#[test]
fn fi_02_hostile_counts_are_refused_with_both_numbers() {
    let file = File::parse(&small_r1cs());
    let count_at = 4 + 32 + 4 * 4 + 8;
    for count in [u32::MAX, 1 << 31, 1 << 24] {
        let error = refused(&file.patched(1, count_at, &count.to_le_bytes()));
        assert_eq!(error.kind(), ErrorKind::BadLayout);
        assert_eq!(error.place().section, Some(2));
        assert!(error.expected().contains(&count.to_string()), "{error}");
    }
    // One constraint more than there are: the bytes end. One fewer: some are left.
    let error = refused(&file.patched(1, count_at, &4u32.to_le_bytes()));
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(error.place().entry, Some(("constraint", 3)));
    let error = refused(&file.patched(1, count_at, &2u32.to_le_bytes()));
    assert_eq!(error.kind(), ErrorKind::BadLayout);
    assert_eq!(error.found(), "120 bytes left over");
    // Entries of a linear combination.
    let error = refused(&file.patched(2, 0, &u32::MAX.to_le_bytes()));
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert_eq!(error.expected(), "4294967295 entries of 36 bytes in A");
    // Sections: more than there are, more than fit, a length beyond the file, beyond 64 bits.
    let bytes = file.bytes();
    for (at, patch) in [
        (8, &4u32.to_le_bytes()[..]),
        (8, &u32::MAX.to_le_bytes()),
        (16, &u64::MAX.to_le_bytes()),
        (16, &(bytes.len() as u64).to_le_bytes()),
    ] {
        let mut bytes = bytes.clone();
        bytes[at..at + patch.len()].copy_from_slice(patch);
        let kind = refused(&bytes).kind();
        assert!(matches!(kind, ErrorKind::Truncated | ErrorKind::BadLayout));
    }
}

#[test]
fn fi_28_a_coefficient_not_below_r_is_refused_at_its_place() {
    let file = File::parse(&small_r1cs());
    for value in [modulus(), [0xff; 32]] {
        // Section 2 begins at 24; the first coefficient behind count and wire.
        let error = refused(&file.patched(2, 8, &value));
        assert_eq!(
            error.to_string(),
            "c.r1cs: section 2 (constraints), constraint 0 at offset 28: expected a coefficient \
             below the modulus r in A, found one that is not"
        );
    }
}

#[test]
fn a_wire_out_of_range_is_refused_at_its_place() {
    let file = File::parse(&small_r1cs());
    let error = refused(&file.patched(2, 44, &5u32.to_le_bytes()));
    assert_eq!(
        error.to_string(),
        "c.r1cs: section 2 (constraints), constraint 0 at offset 68: expected a wire below 5 in B, \
         found 5"
    );
}

#[test]
fn other_curves_are_refused_by_name() {
    let file = File::parse(&small_r1cs());
    let from_hex = |hex: &str| -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    // The prime as it stands in a BN254 file.
    let bn254 = "010000f093f5e1439170b97948e833285d588181b64550b829a031e1724e6430";
    let error = refused(&file.patched(1, 4, &from_hex(bn254)));
    assert_eq!(error.kind(), ErrorKind::WrongCurve);
    assert_eq!(error.found(), "that of BN254 (bn128)");
    assert!(error.advice().unwrap().contains("--prime bls12381"));
    // Goldilocks has fields of 8 bytes.
    let mut header = 8u32.to_le_bytes().to_vec();
    header.extend(0xffff_ffff_0000_0001u64.to_le_bytes());
    header.extend([0; 28]);
    let mut goldilocks = file.clone();
    *goldilocks.body(1) = header;
    assert_eq!(refused(&goldilocks.bytes()).found(), "that of goldilocks");
    // Some other prime, and a field size that is none.
    let error = refused(&file.patched(1, 4, &[3]));
    assert!(error.found().starts_with("0x73ed"), "{error}");
    for size in [0, 257, u32::MAX] {
        let error = refused(&file.patched(1, 0, &size.to_le_bytes()));
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        assert!(error.expected().starts_with("a field size of 1 to 256"));
    }
}

#[test]
fn fi_31_sections_in_any_order_unknown_double_and_missing() {
    let file = File::parse(&small_r1cs());
    let want = read(&file.bytes()).unwrap();
    let mut sorted = file.clone();
    sorted.sections.sort_by_key(|section| section.0);
    assert_eq!(read(&sorted.bytes()).unwrap(), want);
    let mut unknown = file.clone();
    unknown.sections.insert(1, (77, vec![1; 33]));
    let got = read(&unknown.bytes()).unwrap();
    assert!(got.r1cs == want.r1cs);
    assert_eq!(got.notes[0].kind, NoteKind::UnknownSection);
    let mut double = file.clone();
    double.sections.push(file.sections[1].clone());
    let error = refused(&double.bytes());
    assert_eq!(error.found(), "it twice");
    assert_eq!(error.place().section, Some(1));
    let mut missing = file.clone();
    missing.sections.remove(0);
    let error = refused(&missing.bytes());
    assert_eq!(error.found(), "only the sections [1, 3]");
    assert_eq!(error.place().section, Some(2));
}

#[test]
fn fi_35_custom_gates_are_refused() {
    let file = File::parse(&small_r1cs());
    for number in [4, 5] {
        for (body, is_ok) in [
            (vec![], true),
            (vec![0; 4], true),
            (vec![1, 0, 0, 0], false),
            (vec![0; 9], false),
        ] {
            let mut gates = file.clone();
            gates.sections.push((number, body));
            if is_ok {
                read(&gates.bytes()).unwrap();
            } else {
                let error = refused(&gates.bytes());
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert_eq!(error.place().section, Some(number));
            }
        }
    }
}

#[test]
fn counts_that_contradict_each_other_are_refused() {
    let file = File::parse(&small_r1cs());
    // Public inputs, then wires (and with them the labels).
    let error = refused(&file.patched(1, 44, &5u32.to_le_bytes()));
    assert_eq!(error.kind(), ErrorKind::Inconsistent);
    let error = refused(&file.patched(1, 44, &u32::MAX.to_le_bytes()));
    assert_eq!(error.kind(), ErrorKind::Inconsistent);
    let error = refused(&file.patched(1, 36, &6u32.to_le_bytes()));
    assert_eq!(error.place().section, Some(3));
    let mut long = file.clone();
    long.body(1).push(0);
    assert_eq!(refused(&long.bytes()).place().section, Some(1));
}

#[test]
fn trailing_bytes_are_noted_and_strictly_refused() {
    let mut bytes = small_r1cs();
    bytes.push(0);
    let note = &read(&bytes).unwrap().notes[0];
    assert_eq!(note.kind, NoteKind::TrailingBytes);
    let strict = LoadOptions {
        strict: true,
        ..LoadOptions::default()
    };
    let error = r1cs::read(&bytes, &strict).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Strict);
}

#[test]
fn fi_08_what_is_no_r1cs_says_what_it_is() {
    for len in [0, 3, 11] {
        let error = refused(&small_r1cs()[..len]);
        assert_eq!(error.kind(), ErrorKind::Truncated);
        assert_eq!(error.found(), format!("{len} bytes"));
    }
    for (bytes, what) in [
        (common::small_wtns(&[1, 2]), "a witness (.wtns)"),
        (common::small_zkey(), "a snarkjs key (.zkey)"),
        (b"{\"pi_a\": []}   ".to_vec(), "a proof in JSON"),
    ] {
        let error = refused(&bytes);
        assert_eq!(error.kind(), ErrorKind::WrongFormat);
        assert_eq!(error.found(), what);
    }
    let mut version = small_r1cs();
    version[4] = 2;
    let error = refused(&version);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.found(), "version 2");
}

fn systems() -> impl Strategy<Value = Vec<u8>> {
    let coefficient = prop_oneof![
        3 => (1u64..4).prop_map(scalar),
        1 => Just(Scalar::MINUS_ONE.to_le_bytes()),
        1 => any::<u64>().prop_map(scalar),
    ];
    let combination = prop::collection::vec((0u32..40, coefficient), 0..6);
    prop::collection::vec(prop::array::uniform3(combination), 0..12).prop_map(|constraints| {
        let combinations: Vec<_> = constraints.iter().flatten().map(Vec::as_slice).collect();
        r1cs_bytes(40, 3, &combinations)
    })
}

proptest! {
    #[test]
    fn writing_and_reading_agree(bytes in systems()) {
        let system = read(&bytes).unwrap().r1cs;
        let written = common::write_r1cs(&system);
        let again = read(&written).unwrap().r1cs;
        prop_assert!(common::same_system(&system, &again));
        prop_assert_eq!(common::write_r1cs(&again), written);
    }

    #[test]
    fn spoiled_bytes_never_panic(
        bytes in systems(),
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = bytes;
        for (at, value) in spoils {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = read(&bytes);
    }
}
