//! The readers over real files: every folder of `CUZK_FIXTURES`, or of the repository's `testdata`.

#![allow(clippy::print_stderr)] // what was read, and what was skipped, for whoever looks

mod common;

use std::path::{Path, PathBuf};

use cuzk_formats::{Bytes, FileSource, LoadOptions, ReadAt as _, r1cs, wtns, zkey};

/// Folders that hold at least one of the files of a circuit.
fn cases() -> Vec<PathBuf> {
    let root = match std::env::var_os("CUZK_FIXTURES") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata"),
    };
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&root)
        .map(|entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect()
        })
        .unwrap_or_default();
    cases.retain(|path| path.is_dir());
    cases.sort();
    if cases.is_empty() {
        eprintln!("SKIPPED: no folders in {}", root.display());
    }
    cases
}

fn strict() -> LoadOptions<'static> {
    LoadOptions {
        strict: true,
        subgroup_check: true,
        ..LoadOptions::default()
    }
}

fn bytes_of(path: &Path) -> Option<Vec<u8>> {
    path.exists().then(|| std::fs::read(path).unwrap())
}

#[test]
fn real_constraint_systems_are_read_and_written_back_alike() {
    for case in cases() {
        let name = case.display();
        let Some(bytes) = bytes_of(&case.join("circuit.r1cs")) else {
            continue;
        };
        let file = r1cs::read(&bytes, &strict()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (header, statistics, _) = r1cs::scan(&bytes, &strict()).unwrap();
        eprintln!("{name}: {header:?} {statistics:?}");
        assert_eq!(header, file.header);
        let again = r1cs::read(&common::write_r1cs(&file.r1cs), &strict()).unwrap();
        assert!(common::same_system(&again.r1cs, &file.r1cs), "{name}");
        if let Some(bytes) = bytes_of(&case.join("witness.wtns")) {
            let witness = wtns::read(&bytes, &strict()).unwrap().witness;
            assert!(common::satisfies(&file.r1cs, &witness), "{name}");
        }
    }
}

#[test]
fn real_witnesses_are_read_and_written_back_byte_by_byte() {
    for case in cases() {
        let Some(bytes) = bytes_of(&case.join("witness.wtns")) else {
            continue;
        };
        let file = wtns::read(&bytes, &strict()).unwrap();
        let mut written = Vec::new();
        wtns::write(&file.witness, &mut written).unwrap();
        assert!(written == bytes, "{}", case.display());
    }
}

#[test]
fn real_keys_are_read_and_written_back_alike() {
    for case in cases() {
        let name = case.display();
        let Some(bytes) = bytes_of(&case.join("circuit.zkey")) else {
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
        if let Some(bytes) = bytes_of(&case.join("circuit.r1cs")) {
            let system = r1cs::read(&bytes, &lax).unwrap().r1cs;
            compare(&system, &file, &name.to_string());
        }
    }
}

/// A key holds the A and B of its circuit, then the rows of the inputs.
fn compare(system: &cuzk_formats::R1cs, key: &zkey::Zkey, name: &str) {
    assert_eq!(system.num_inputs, key.key.num_inputs());
    assert_eq!(system.num_variables, key.key.num_variables());
    let circuit_rows = key.matrices.a.num_rows() - key.key.num_inputs();
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
            let Some(bytes) = bytes_of(&case.join(name)) else {
                continue;
            };
            for cut in [1, 40, 1000].into_iter().filter(|cut| *cut < bytes.len()) {
                let source = Bytes::new(name, &bytes[..bytes.len() - cut]);
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
        let path = case.join("circuit.zkey");
        if let Some(bytes) = bytes_of(&path) {
            let source = FileSource::open(&path).unwrap();
            assert_eq!(source.len(), bytes.len() as u64);
            let options = LoadOptions::default();
            let from_file = zkey::read(&source, &options).unwrap();
            assert!(from_file == zkey::read(&bytes, &options).unwrap());
        }
    }
}
