//! `.wtns` files: what is accepted, and how each fault is refused.

mod common;

use common::{File, modulus, scalar, small_wtns};
use cuzk_field::Scalar;
use cuzk_formats::{
    BytesSource, Error, ErrorClass, ErrorKind, LoadOptions, NoteKind, Witness, wtns,
};
use proptest::prelude::*;

const VALUES: [u64; 5] = [1, 0, 1, 77, u64::MAX];

fn read(bytes: &[u8]) -> Result<wtns::WtnsFile, Error> {
    wtns::read(&BytesSource::new("w.wtns", bytes), &LoadOptions::default())
}

fn refused(bytes: &[u8]) -> Error {
    let error = read(bytes).expect_err("must be refused");
    assert_eq!(error.file(), Some("w.wtns"));
    error
}

#[test]
fn values_are_read_as_written() {
    let file = read(&small_wtns(&VALUES)).unwrap();
    assert!(file.notes.is_empty());
    let want: Vec<_> = VALUES.iter().map(|v| Scalar::from(*v)).collect();
    assert!(file.witness.values() == want);
    let (count, _) = wtns::read_header(&small_wtns(&VALUES), &LoadOptions::default()).unwrap();
    assert_eq!(count, 5);
}

#[test]
fn fi_10_fi_32_every_truncation_is_refused() {
    let bytes = small_wtns(&VALUES);
    for len in 0..bytes.len() {
        let kind = refused(&bytes[..len]).kind();
        assert!(
            matches!(kind, ErrorKind::Truncated | ErrorKind::BadLayout),
            "{len}: {kind:?}"
        );
    }
}

#[test]
fn every_flipped_bit_is_refused_or_changes_the_witness() {
    let bytes = small_wtns(&VALUES);
    let want = read(&bytes).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(got) = read(&bytes) {
            assert!(got != want, "bit {bit}");
        }
    }
}

#[test]
fn fi_10_header_and_data_of_different_counts_are_refused() {
    let file = File::parse(&small_wtns(&VALUES));
    for count in [4u32, 6, 1 << 31, u32::MAX] {
        let error = refused(&file.patched(1, 36, &count.to_le_bytes()));
        assert_eq!(error.kind(), ErrorKind::BadLayout);
        assert_eq!(error.place().section, Some(2));
        assert_eq!(
            error.expected(),
            format!(
                "{} bytes (32 for each of {count} values)",
                u64::from(count) * 32
            )
        );
        assert_eq!(error.found(), "160");
    }
    let mut longer = file.clone();
    longer.body(2).push(0);
    assert_eq!(refused(&longer.bytes()).kind(), ErrorKind::BadLayout);
}

#[test]
fn fi_28_a_value_not_below_r_is_refused_by_its_index_only() {
    let file = File::parse(&small_wtns(&VALUES));
    for value in [modulus(), [0xff; 32]] {
        let error = refused(&file.patched(2, 3 * 32, &value));
        assert_eq!(
            error.to_string(),
            "w.wtns: section 2 (values), value 3 at offset 172: expected a value below the modulus \
             r, found one that is not"
        );
        assert_eq!(error.class(), ErrorClass::BadInput);
    }
}

#[test]
fn a_first_value_other_than_one_is_refused() {
    for values in [&[0u64, 1][..], &[2, 1], &[]] {
        let error = refused(&small_wtns(values));
        assert_eq!(error.kind(), ErrorKind::BadWitness);
        assert_eq!(error.class(), ErrorClass::BadWitness);
        assert_eq!(error.place().entry, Some(("value", 0)));
    }
}

#[test]
fn fi_29_a_wrong_length_with_all_values_there_is_the_generators_defect() {
    let bytes = small_wtns(&VALUES);
    // Preamble, section 1 with its head, section 2's number.
    let at = 12 + 12 + 40 + 4;
    let swapped = 160u64.rotate_left(32);
    for length in [0u64, 159, 161, swapped, u64::MAX] {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
        let error = refused(&bytes);
        assert_eq!(error.kind(), ErrorKind::BadLayout);
        assert_eq!(
            error.found(),
            format!("{length}, while the values are all there")
        );
        assert!(error.advice().unwrap().contains("JavaScript"));
        let accepting = LoadOptions {
            accept_wtns_length_defect: true,
            ..LoadOptions::default()
        };
        let file = wtns::read(&bytes, &accepting).unwrap();
        assert_eq!(file.notes[0].kind, NoteKind::LengthDefect);
        assert!(file.witness == read(&small_wtns(&VALUES)).unwrap().witness);
        // The flag excuses the length, not missing data.
        bytes.truncate(bytes.len() - 1);
        wtns::read(&bytes, &accepting).unwrap_err();
    }
}

#[test]
fn sections_in_the_other_order_are_read() {
    let mut file = File::parse(&small_wtns(&VALUES));
    file.sections.reverse();
    assert!(read(&file.bytes()).unwrap() == read(&small_wtns(&VALUES)).unwrap());
    file.sections.pop();
    assert_eq!(refused(&file.bytes()).place().section, Some(1));
    let mut file = File::parse(&small_wtns(&VALUES));
    file.sections.pop();
    assert_eq!(refused(&file.bytes()).place().section, Some(2));
}

#[test]
fn fi_08_swapped_files_and_other_curves_are_named() {
    assert_eq!(
        refused(&common::small_zkey()).found(),
        "a snarkjs key (.zkey)"
    );
    for len in [0, 3, 11] {
        assert_eq!(
            refused(&small_wtns(&VALUES)[..len]).kind(),
            ErrorKind::Truncated
        );
    }
    let file = File::parse(&small_wtns(&VALUES));
    let error = refused(&file.patched(1, 4, &[9]));
    assert_eq!(error.kind(), ErrorKind::WrongCurve);
}

#[test]
fn no_error_holds_a_value() {
    let secret = 0x1234_5678_9abc_def0u64;
    let file = File::parse(&small_wtns(&[1, secret, secret]));
    for bytes in [
        file.patched(2, 0, &scalar(secret)),
        file.patched(2, 32 + 8, &[0xff; 24]),
        file.patched(1, 36, &2u32.to_le_bytes()),
    ] {
        let error = refused(&bytes);
        let text = format!("{error} {error:?}").to_lowercase();
        assert!(!text.contains("1234") && !text.contains(&secret.to_string()));
    }
    let debug = format!("{:?}", read(&file.bytes()).unwrap());
    assert!(debug.contains("Witness(3 values)"), "{debug}");
}

proptest! {
    #[test]
    fn writing_and_reading_agree(values in prop::collection::vec(any::<[u64; 4]>(), 0..40)) {
        let mut scalars = vec![Scalar::ONE];
        scalars.extend(values.into_iter().filter_map(Scalar::from_limbs));
        let witness = Witness::new(scalars);
        let mut bytes = Vec::new();
        wtns::write(&witness, &mut bytes).unwrap();
        prop_assert!(read(&bytes).unwrap().witness == witness);
    }

    #[test]
    fn spoiled_bytes_never_panic(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = small_wtns(&VALUES);
        for (at, value) in spoils {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = read(&bytes);
    }
}
