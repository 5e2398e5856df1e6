//! Circuits of zkcrypto's bellman with keys of its groth16: proofs byte for byte as that makes them, and
//! what is refused.

mod common;

use bls12_381::{Bls12, Scalar};
use common::{Fault, Form, InB, forms};
use cuzk_bellman::{Error, bellman as ours, to_bytes};
use cuzk_groth16::{Blinding, ProveOptions, Prover};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

circuits!(bellman, Scalar);

const FORM: Form = Form {
    aux: 9,
    inputs: 3,
    in_b: InB::Public,
    cancelling: true,
};

fn parameters(circuit: Chain) -> groth16::Parameters<Bls12> {
    groth16::generate_random_parameters(circuit, &mut ChaCha20Rng::seed_from_u64(7)).unwrap()
}

fn r_and_s() -> (Scalar, Scalar) {
    let r = Scalar::from(0x1234_5678_9abc_def1).square().square();
    (r + Scalar::from(5), r.square() * r)
}

fn options() -> ProveOptions {
    let scalar = |value: Scalar| cuzk_field::Scalar::from_le_bytes(&value.to_bytes()).unwrap();
    let (r, s) = r_and_s();
    ProveOptions::default().with_blinding(Blinding::from_caller(scalar(r), scalar(s)))
}

fn library_proof(circuit: Chain, parameters: &groth16::Parameters<Bls12>) -> Vec<u8> {
    let (r, s) = r_and_s();
    let proof = groth16::create_proof(circuit, parameters, r, s).unwrap();
    let mut bytes = Vec::new();
    proof.write(&mut bytes).unwrap();
    bytes
}

/// WP-10: nothing is assumed about counts, borders of density words, or ONE being in B.
#[test]
fn proofs_are_those_of_bellman() {
    for form in forms() {
        let blank = Chain::blank(form);
        let parameters = parameters(blank.clone());
        let key = ours::proving_key(&parameters).unwrap();
        let shape = ours::record(blank).unwrap();
        let prover = Prover::new(&key).unwrap();
        // With 0 all variables are.
        for first in [0, 11] {
            let circuit = Chain::with(form, first);
            let proved = ours::prove(&prover, &shape, circuit.clone(), &options())
                .unwrap_or_else(|error| panic!("{form:?}, {first}: {error}"));
            let expected = library_proof(circuit, &parameters);
            assert_eq!(to_bytes([&proved]), expected, "{form:?}, {first}");
        }
    }
}

#[test]
fn fresh_proofs_verify_under_groth16() {
    let parameters = parameters(Chain::blank(FORM));
    let key = ours::proving_key(&parameters).unwrap();
    let shape = ours::record(Chain::blank(FORM)).unwrap();
    let prover = Prover::new(&key).unwrap();
    let pvk = groth16::prepare_verifying_key(&parameters.vk);
    let circuits: Vec<Chain> = (3..6).map(|first| Chain::with(FORM, first)).collect();
    let proofs =
        ours::prove_all(&prover, &shape, circuits.clone(), &ProveOptions::default()).unwrap();
    for (proved, circuit) in proofs.iter().zip(&circuits) {
        let proof = ours::to_proof(&proved.proof).unwrap();
        groth16::verify_proof(&pvk, &proof, &circuit.public_values()).unwrap();
    }
    let proof = ours::to_proof(&proofs[0].proof).unwrap();
    groth16::verify_proof(&pvk, &proof, &circuits[1].public_values()).unwrap_err();
}

/// WP-24.
#[test]
fn a_circuit_that_changes_with_its_witness_is_refused() {
    let shape = ours::record(Chain::blank(FORM)).unwrap();
    let refused = |fault| {
        let mut circuit = Chain::with(FORM, 2);
        circuit.fault = fault;
        ours::witness(&shape, circuit).unwrap_err()
    };
    let constraint = Error::Count {
        what: "constraints",
        recorded: 12,
        found: 13,
    };
    assert_eq!(refused(Fault::Constraint), constraint);
    let coefficient = Error::Constraint {
        matrix: "B",
        constraint: 1,
    };
    assert_eq!(refused(Fault::Coefficient), coefficient);
}

/// WP-30: bellman keeps `x + 2 x - 3 x` as a list and sets the density bit of x, while the key has no point
/// for it: its own prover runs out of bases, and at times ends the process, so it is not called here. By its
/// rule the counts disagree, and both are named.
#[test]
fn a_variable_that_cancels_everywhere_is_refused() {
    let cancelling = |mut circuit: Chain| {
        circuit.fault = Fault::CancelsEverywhere;
        circuit
    };
    let parameters = parameters(cancelling(Chain::blank(FORM)));
    let circuit = cancelling(Chain::with(FORM, 4));
    let key = ours::proving_key(&parameters).unwrap();
    let shape = ours::record(cancelling(Chain::blank(FORM))).unwrap();
    let prover = Prover::new(&key).unwrap();
    let error = ours::prove(&prover, &shape, circuit, &options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key was not made for this circuit: the key has 10 points in B, the circuit 11"
    );
}
