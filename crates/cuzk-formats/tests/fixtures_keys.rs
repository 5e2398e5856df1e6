//! JSON, parameters and proofs of the cases of `testdata`, or of the folder `CUZK_FIXTURES`.
#![allow(clippy::print_stderr)] // what was read, for whoever looks

use std::time::Instant;

use cuzk_formats::{BytesSource, FileKind, LoadOptions, bellman, json, proof, sniff};
use cuzk_testkit::cases;

fn strict() -> LoadOptions<'static> {
    LoadOptions {
        strict: true,
        subgroup_check: true,
        ..LoadOptions::default()
    }
}

/// e(alpha, beta) is computed anew, so this checks it against snarkjs's, too.
#[test]
fn real_json_is_read_and_written_back_byte_by_byte() {
    for case in cases() {
        let name = &case.name;
        if let Some(bytes) = case.verification_key_json() {
            let (key, _) = json::read_verification_key(&bytes, &strict())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(
                json::verification_key_to_string(&key).unwrap().into_bytes() == bytes,
                "{name}"
            );
            assert_eq!(sniff(&bytes), Some(FileKind::VerificationKeyJson));
        }
        if let Some(bytes) = case.proof_json() {
            let (proof, _) =
                json::read_proof(&bytes, &strict()).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(
                json::proof_to_string(&proof).into_bytes() == bytes,
                "{name}"
            );
            assert_eq!(sniff(&bytes), Some(FileKind::ProofJson));
        }
        if let Some(bytes) = case.public_json() {
            let (values, _) =
                json::read_public(&bytes, &strict()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let written = json::public_to_string(&values).unwrap();
            // Files not of snarkjs may be spaced otherwise.
            let (again, _) = json::read_public(&written.into_bytes(), &strict()).unwrap();
            assert_eq!(again, values, "{name}");
            assert_eq!(sniff(&bytes), Some(FileKind::PublicJson));
        }
        for (bytes, kind) in [
            (case.r1cs(), FileKind::R1cs),
            (case.wtns(), FileKind::Wtns),
            (case.zkey(), FileKind::Zkey),
        ] {
            if let Some(bytes) = bytes {
                assert_eq!(sniff(&bytes), Some(kind), "{name}");
            }
        }
    }
}

#[test]
fn real_parameters_are_read_and_written_back_byte_by_byte() {
    for case in cases() {
        let name = &case.name;
        let Some(bytes) = case.params() else {
            continue;
        };
        let start = Instant::now();
        let lax = bellman::read_params(&bytes, &LoadOptions::default())
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        eprintln!(
            "{name}: {:?} {:?}, {} bytes in {:?}",
            lax.header,
            lax.notes,
            bytes.len(),
            start.elapsed()
        );
        let mut written = Vec::new();
        bellman::write_params(&lax.key, &mut written).unwrap();
        let tail = lax.header.tail_bytes as usize;
        assert!(written == bytes[..bytes.len() - tail], "{name}");
        assert_eq!(sniff(&bytes), Some(FileKind::BellmanParams));
        assert!(bellman::read_params(&written, &strict()).unwrap().key == lax.key);
        for cut in [1, 40, 1000] {
            let source = BytesSource::new("p", &bytes[..bytes.len() - tail - cut]);
            assert!(bellman::read_params(&source, &LoadOptions::default()).is_err());
        }
    }
}

#[test]
fn real_proofs_are_read_and_written_back_byte_by_byte() {
    for case in cases() {
        if let Some(bytes) = case.proof_bin() {
            let read = proof::read(&bytes, &strict()).unwrap();
            assert_eq!(proof::to_bytes(&read)[..], bytes, "{}", case.name);
            assert_eq!(sniff(&bytes), Some(FileKind::ProofBytes));
        }
    }
}
