//! Proofs from real files: every case of `testdata/`, or of the folder that `CUZK_FIXTURES` names.
//!
//! The case `sapling_spend` has its key in a crate: `--features cuzk-testkit/sapling`.

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{
    BytesSource, LoadOptions, ProvingKey, R1cs, Witness, arkworks, bellman, json, proof, r1cs,
    wtns, zkey,
};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, Error, ProveOptions, Proved, Prover, Verifier};
use cuzk_testkit::{Case, cases};

fn fixed() -> ProveOptions {
    let (r, s) = (Fr::from(11).pow(4321), Fr::from(13).pow(1234));
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}

fn options() -> LoadOptions<'static> {
    LoadOptions::default()
}

fn circuit_of(case: &Case) -> Option<R1cs> {
    let bytes = case.r1cs()?;
    Some(
        r1cs::read(&BytesSource::new("circuit.r1cs", &bytes), &options())
            .unwrap()
            .r1cs,
    )
}

fn witness_of(case: &Case) -> Option<Witness> {
    let bytes = case.wtns()?;
    Some(
        wtns::read(&BytesSource::new("witness.wtns", &bytes), &options())
            .unwrap()
            .witness,
    )
}

fn prove(key: &ProvingKey, circuit: Circuit<'_>, witness: &Witness, name: &str) -> Proved {
    let prover = Prover::new(key).unwrap_or_else(|error| panic!("{name}: {error}"));
    let proved = prover
        .prove(circuit, witness, &fixed())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(proved.verified, "{name}");
    proved
}

#[test]
fn every_zkey_proves_with_and_without_its_r1cs() {
    let mut proved_cases = 0;
    for case in cases() {
        let (Some(key), Some(r1cs), Some(witness)) =
            (case.zkey(), circuit_of(&case), witness_of(&case))
        else {
            continue;
        };
        let zkey = zkey::read(&BytesSource::new("circuit.zkey", &key), &options()).unwrap();
        let with = prove(&zkey.key, Circuit::R1cs(&r1cs), &witness, &case.name);
        let without = prove(
            &zkey.key,
            Circuit::Matrices(&zkey.matrices),
            &witness,
            &case.name,
        );
        assert_eq!(with.proof, without.proof, "{}", case.name);

        if let Some(text) = case.public_json() {
            let expected =
                json::read_public(&BytesSource::new("public.json", &text), &options()).unwrap();
            assert!(with.public_values == expected.0, "{}", case.name);
        }
        // The verifying key and the proof that snarkjs wrote agree with ours.
        if let (Some(vk), Some(theirs)) = (case.verification_key_json(), case.proof_json()) {
            let vk =
                json::read_verification_key(&BytesSource::new("vk.json", &vk), &options()).unwrap();
            assert_eq!(vk.0, zkey.key.vk, "{}", case.name);
            let theirs =
                json::read_proof(&BytesSource::new("proof.json", &theirs), &options()).unwrap();
            let verifier = Verifier::new(&vk.0).unwrap();
            verifier.verify(&with.public_values, &theirs.0).unwrap();
            verifier.verify(&with.public_values, &with.proof).unwrap();
            if let Some(first) = with.public_values.first() {
                let mut wrong = with.public_values.clone();
                wrong[0] = Scalar::from(Fr::from(*first) + Fr::from(1));
                let error = verifier.verify(&wrong, &with.proof).unwrap_err();
                assert_eq!(error, Error::InvalidProof, "{}", case.name);
            }
        }
        proved_cases += 1;
    }
    assert!(
        proved_cases > 0,
        "no case has a zkey, an r1cs and a witness"
    );
}

#[test]
fn every_bellman_key_proves_given_its_r1cs() {
    for case in cases() {
        let (Some(key), Some(r1cs), Some(witness)) =
            (case.params(), circuit_of(&case), witness_of(&case))
        else {
            continue;
        };
        let params =
            bellman::read_params(&BytesSource::new("circuit.params", &key), &options()).unwrap();
        let proved = prove(&params.key, Circuit::R1cs(&r1cs), &witness, &case.name);
        if let Some(theirs) = case.proof_bin() {
            let theirs = proof::read(&BytesSource::new("proof.bin", &theirs), &options()).unwrap();
            let verifier = Verifier::new(&params.key.vk).unwrap();
            verifier
                .verify(&proved.public_values, &theirs)
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
    }
}

/// A key of each family, written, read back and proved from: the proof is the same.
#[test]
fn written_keys_prove_alike() {
    for (shape, log_n) in [(Shape::Dense, 4), (Shape::Porep, 8), (Shape::Porep, 1)] {
        let instance = Instance::new(shape, log_n, 5).unwrap();
        let circuit = || Circuit::R1cs(&instance.r1cs);
        for family in [KeyFamily::Bellman, KeyFamily::Arkworks] {
            let key = proving_key(&instance.r1cs, family, 6).unwrap();
            let mut files = [Vec::new()];
            let read: Vec<ProvingKey> = match family {
                KeyFamily::Bellman => {
                    bellman::write_params(&key, &mut files[0]).unwrap();
                    let source = BytesSource::new("key.params", &files[0]);
                    vec![bellman::read_params(&source, &options()).unwrap().key]
                }
                _ => [
                    arkworks::Compression::Compressed,
                    arkworks::Compression::Uncompressed,
                ]
                .into_iter()
                .map(|compression| {
                    let mut file = Vec::new();
                    arkworks::write_proving_key(&key, compression, &mut file).unwrap();
                    let source = BytesSource::new("key.ark", &file);
                    arkworks::read_proving_key(&source, &options()).unwrap().key
                })
                .collect(),
            };
            let expected = prove(&key, circuit(), &instance.witness, "as made").proof;
            for read in read {
                assert_eq!(read, key, "{family:?}");
                assert_eq!(
                    prove(&read, circuit(), &instance.witness, "as read").proof,
                    expected
                );
            }
        }
    }
}

/// WP-19: a public value that no constraint uses is bound all the same.
#[test]
fn an_unused_public_value_is_bound() {
    for case in cases().iter().filter(|case| case.name == "unused_public") {
        let key = case.zkey().unwrap();
        let zkey = zkey::read(&BytesSource::new("circuit.zkey", &key), &options()).unwrap();
        let witness = witness_of(case).unwrap();
        let proved = prove(
            &zkey.key,
            Circuit::Matrices(&zkey.matrices),
            &witness,
            &case.name,
        );
        let verifier = Verifier::new(&zkey.key.vk).unwrap();
        for i in 0..proved.public_values.len() {
            let mut wrong = proved.public_values.clone();
            wrong[i] = Scalar::from(Fr::from(wrong[i]) + Fr::from(1));
            assert_eq!(
                verifier.verify(&wrong, &proved.proof).unwrap_err(),
                Error::InvalidProof,
                "public value {i}"
            );
        }
    }
}

/// FI-19: a hundred proofs from bytes in memory and a key loaded once.
#[test]
fn a_loaded_key_proves_again_and_again() {
    let case = cases()
        .into_iter()
        .find(|case| case.zkey().is_some())
        .unwrap();
    let key = case.zkey().unwrap();
    let zkey = zkey::read(&BytesSource::new("circuit.zkey", &key), &options()).unwrap();
    let witness = witness_of(&case).unwrap();
    let prover = Prover::new(&zkey.key).unwrap();
    for _ in 0..100 {
        let circuit = Circuit::Matrices(&zkey.matrices);
        let proved = prover
            .prove(circuit, &witness, &ProveOptions::default())
            .unwrap();
        assert!(proved.verified);
    }
}
