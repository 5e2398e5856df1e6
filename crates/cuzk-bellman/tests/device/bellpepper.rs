//! Circuits of bellpepper with keys of bellperson.

use bellperson::groth16 as library;
use blstrs::{Bls12, Scalar};
use cuzk_bellman::{Error, bellpepper, bellperson as ours, to_bytes};
use cuzk_formats::{BytesSource, LoadOptions, bellman as params};
use cuzk_groth16::device::DeviceProver;
use cuzk_groth16::{Blinding, Circuit as CuzkCircuit, Error as ProverError, ProveOptions};
use rand_chacha_03::ChaCha20Rng;
use rand_chacha_03::rand_core::SeedableRng as _;

use crate::common::{self, Fault, Form, InB};
use crate::{FORM, Rig, circuits};

circuits!(bellpepper_core, Scalar);

cuzk_testkit::on_both!(
    proofs_are_those_of_bellperson,
    circuits_and_keys_that_do_not_belong_together_are_refused,
    a_flipped_byte_is_found,
);

fn parameters(circuit: impl Circuit<Scalar>) -> library::Parameters<Bls12> {
    library::generate_random_parameters(circuit, &mut ChaCha20Rng::seed_from_u64(7)).unwrap()
}

fn options() -> ProveOptions {
    let scalar = |value: Scalar| cuzk_field::Scalar::from_le_bytes(&value.to_bytes_le()).unwrap();
    let (r, s) = r_and_s();
    ProveOptions::default().with_blinding(Blinding::from_caller(scalar(r), scalar(s)))
}

fn r_and_s() -> (Scalar, Scalar) {
    let r = Scalar::from(0x1234_5678_9abc_def1);
    let r = r * r * r * r * r;
    (r, r * r + Scalar::from(5))
}

fn proofs_are_those_of_bellperson(rig: &Rig) {
    for form in rig.forms() {
        let blank = Chain::blank(form);
        let parameters = parameters(blank.clone());
        let key = ours::proving_key(&parameters).unwrap();
        let shape = bellpepper::record(blank).unwrap();
        let prover = DeviceProver::new(rig.gpu, &key, CuzkCircuit::R1cs(shape.r1cs())).unwrap();
        for first in [0, 11] {
            let circuit = Chain::with(form, first);
            let proved = bellpepper::prove(&prover, &shape, circuit.clone(), &options())
                .unwrap_or_else(|error| panic!("{form:?}, {first}: {error}"));
            let (r, s) = r_and_s();
            let proof = library::create_proof(circuit, &parameters, r, s).unwrap();
            let mut expected = Vec::new();
            proof.write(&mut expected).unwrap();
            assert_eq!(to_bytes([&proved]), expected, "{form:?}, {first}");
            assert!(proved.verified);
        }
    }
}

/// WP-23, WP-24.
fn circuits_and_keys_that_do_not_belong_together_are_refused(rig: &Rig) {
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let r1cs = || CuzkCircuit::R1cs(shape.r1cs());
    let key = |form| ours::proving_key(&parameters(Chain::blank(form))).unwrap();
    let of_another = |form| {
        DeviceProver::new(rig.gpu, &key(form), r1cs())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        of_another(Form { aux: 10, ..FORM }),
        "the key was not made for this circuit: the key has 13 variables, the circuit 12"
    );
    let other_densities = Form {
        in_b: InB::NoInput,
        ..FORM
    };
    assert_eq!(
        of_another(other_densities),
        "the key was not made for this circuit: the key has 8 points in B, the circuit 11"
    );

    let prover = DeviceProver::new(rig.gpu, &key(FORM), r1cs()).unwrap();
    let refused = |fault| {
        let mut circuit = Chain::with(FORM, 2);
        circuit.fault = fault;
        bellpepper::prove(&prover, &shape, circuit, &options()).unwrap_err()
    };
    let constraint = Error::Count {
        what: "constraints",
        recorded: 12,
        found: 13,
    };
    let coefficient = Error::Constraint {
        matrix: "B",
        constraint: 1,
    };
    assert_eq!(refused(Fault::Coefficient), coefficient);
    // The first good one is compared constraint by constraint.
    bellpepper::witness(&shape, Chain::with(FORM, 2)).unwrap();
    assert_eq!(refused(Fault::Constraint), constraint);
    let violated = ProverError::Unsatisfied { constraint: 1 };
    assert_eq!(refused(Fault::Value), violated.into());

    // A prover that was made with another shape.
    let other = bellpepper::record(Chain::blank(other_densities)).unwrap();
    let circuit = Chain::with(other_densities, 2);
    let error = bellpepper::prove(&prover, &other, circuit, &options()).unwrap_err();
    assert_eq!(error, Error::OtherCircuit);
}

/// WP-14: the key is refused as it is read, or no proof leaves the device.
fn a_flipped_byte_is_found(rig: &Rig) {
    let mut bytes = Vec::new();
    parameters(Chain::blank(FORM)).write(&mut bytes).unwrap();
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let read = |bytes: &[u8]| {
        let source = BytesSource::new("p.params", bytes);
        params::read_params(&source, &LoadOptions::default())
    };
    for at in (5..bytes.len()).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        if let Ok(params) = read(&damaged) {
            DeviceProver::new(rig.gpu, &params.key, CuzkCircuit::R1cs(shape.r1cs()))
                .map_err(|error| error.to_string())
                .and_then(|prover| {
                    let circuit = Chain::with(FORM, 2);
                    bellpepper::prove(&prover, &shape, circuit, &options())
                        .map_err(|error| error.to_string())
                })
                .unwrap_err();
        }
    }
    // A point that is another one's: each on its curve.
    let mut key = read(&bytes).unwrap().key;
    key.l_query.swap(1, 2);
    let prover = DeviceProver::new(rig.gpu, &key, CuzkCircuit::R1cs(shape.r1cs())).unwrap();
    let circuit = Chain::with(FORM, 2);
    let error = bellpepper::prove(&prover, &shape, circuit, &options()).unwrap_err();
    let rejected = ProverError::ProofRejected {
        witness_checked: true,
    };
    assert_eq!(error, rejected.into());
}
