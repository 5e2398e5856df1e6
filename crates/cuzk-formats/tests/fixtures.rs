//! The readers over real files: the cases of `testdata`, or of the folder `CUZK_FIXTURES`.
#![allow(clippy::print_stderr)] // what was read, for whoever looks

mod common;

use cuzk_formats::{BytesSource, FileSource, LoadOptions, ReadAt as _, r1cs, wtns, zkey};
use cuzk_testkit::cases;

fn strict() -> LoadOptions<'static> {
    LoadOptions {
        strict: true,
        subgroup_check: true,
        ..LoadOptions::default()
    }
}

#[test]
fn real_constraint_systems_are_read_and_written_back_alike() {
    for case in cases() {
        let name = &case.name;
        let Some(bytes) = case.r1cs() else {
            continue;
        };
        let file = r1cs::read(&bytes, &strict()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (header, statistics, _) = r1cs::scan(&bytes, &strict()).unwrap();
        eprintln!("{name}: {header:?} {statistics:?}");
        assert_eq!(header, file.header);
        let again = r1cs::read(&common::write_r1cs(&file.r1cs), &strict()).unwrap();
        assert!(common::same_system(&again.r1cs, &file.r1cs), "{name}");
        if let Some(bytes) = case.wtns() {
            let witness = wtns::read(&bytes, &strict()).unwrap().witness;
            assert!(common::satisfies(&file.r1cs, &witness), "{name}");
        }
    }
}

#[test]
fn real_witnesses_are_read_and_written_back_byte_by_byte() {
    for case in cases() {
        let Some(bytes) = case.wtns() else {
            continue;
        };
        let file = wtns::read(&bytes, &strict()).unwrap();
        let mut written = Vec::new();
        wtns::write(&file.witness, &mut written).unwrap();
        assert!(written == bytes, "{}", case.name);
    }
}

#[test]
fn real_keys_are_read_and_written_back_alike() {
    for case in cases() {
        let name = &case.name;
        let Some(bytes) = case.zkey() else {
            continue;
        };
        let lax = LoadOptions::default();
        let file = zkey::read(&bytes, &lax).unwrap_or_else(|e| panic!("{name}: {e}"));
        eprintln!("{name}: {:?} {:?}", file.header, file.notes);
        assert_eq!(file.transcript.as_ref().unwrap().num_contributions, 1);
        let mut written = Vec::new();
        zkey::write(&file.key, &file.matrices, &mut written).unwrap();
        let again = zkey::read(&written, &strict()).unwrap();
        assert!(again.key == file.key, "{name}");
        assert!(
            common::same_matrices(&again.matrices, &file.matrices),
            "{name}"
        );
        if let Some(bytes) = case.r1cs() {
            let system = r1cs::read(&bytes, &lax).unwrap().r1cs;
            compare(&system, &file, name);
        }
    }
}

/// A key holds the A and B of its circuit, then the rows of the inputs.
fn compare(system: &cuzk_formats::R1cs, key: &zkey::Zkey, name: &str) {
    assert_eq!(system.num_inputs, key.key.num_inputs());
    assert_eq!(system.num_variables, key.key.num_variables());
    let circuit_rows = key.num_constraints().unwrap();
    assert_eq!(system.num_constraints(), circuit_rows, "{name}");
    for (theirs, ours) in [(&key.matrices.a, &system.a), (&key.matrices.b, &system.b)] {
        let theirs = common::rows(theirs, &key.matrices.coefficients);
        let ours = common::rows(ours, &system.coefficients);
        assert!(theirs[..circuit_rows] == ours, "{name}");
    }
}

#[test]
fn fi_32_real_files_cut_short_are_refused() {
    let options = LoadOptions::default();
    for case in cases() {
        for name in ["circuit.r1cs", "witness.wtns", "circuit.zkey"] {
            let Some(bytes) = case.file(name) else {
                continue;
            };
            for cut in [1, 40, 1000].into_iter().filter(|cut| *cut < bytes.len()) {
                let source = BytesSource::new(name, &bytes[..bytes.len() - cut]);
                let error = match name {
                    "circuit.r1cs" => r1cs::read(&source, &options).err(),
                    "witness.wtns" => wtns::read(&source, &options).err(),
                    _ => zkey::read(&source, &options).err(),
                };
                let error = error.unwrap_or_else(|| panic!("{name} cut by {cut} was accepted"));
                assert_eq!(error.file(), Some(name));
            }
        }
    }
}

#[test]
fn files_and_memory_read_alike() {
    for case in cases() {
        if let Some(bytes) = case.zkey() {
            let path = case.path("circuit.zkey").unwrap();
            let source = FileSource::open(&path).unwrap();
            assert_eq!(source.len(), bytes.len() as u64);
            let options = LoadOptions::default();
            let from_file = zkey::read(&source, &options).unwrap();
            assert!(from_file == zkey::read(&bytes, &options).unwrap());
        }
    }
}
