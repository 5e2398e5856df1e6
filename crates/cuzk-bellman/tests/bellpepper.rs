//! Circuits of bellpepper with keys of bellperson: proofs byte for byte as bellperson makes them, and what
//! is refused.

mod common;

use bellperson::groth16 as library;
use blstrs::{Bls12, Scalar};
use common::{Fault, Form, InB, forms};
use cuzk_bellman::{Backend as _, Error, Job, Shape, bellpepper, bellperson as ours, to_bytes};
use cuzk_formats::{BytesSource, LoadOptions, ProvingKey, bellman as params, proof};
use cuzk_groth16::{Blinding, Error as ProverError, ProveOptions, Prover};
use rand_chacha_03::ChaCha20Rng;
use rand_chacha_03::rand_core::SeedableRng as _;

circuits!(bellpepper_core, Scalar);

const FORM: Form = Form {
    aux: 9,
    inputs: 3,
    in_b: InB::Public,
    cancelling: true,
};

fn parameters(circuit: impl Circuit<Scalar>) -> library::Parameters<Bls12> {
    library::generate_random_parameters(circuit, &mut ChaCha20Rng::seed_from_u64(7)).unwrap()
}

fn key(circuit: Chain) -> ProvingKey {
    ours::proving_key(&parameters(circuit)).unwrap()
}

fn r_and_s() -> (Scalar, Scalar) {
    let r = Scalar::from(0x1234_5678_9abc_def1).square();
    (r * r + Scalar::from(5), r.square() * r)
}

trait Square {
    fn square(&self) -> Self;
}

impl Square for Scalar {
    fn square(&self) -> Self {
        *self * *self
    }
}

fn options() -> ProveOptions {
    let scalar = |value: Scalar| cuzk_field::Scalar::from_le_bytes(&value.to_bytes_le()).unwrap();
    let (r, s) = r_and_s();
    ProveOptions::default().with_blinding(Blinding::from_caller(scalar(r), scalar(s)))
}

fn library_proof(circuit: Chain, parameters: &library::Parameters<Bls12>) -> Vec<u8> {
    let (r, s) = r_and_s();
    let proof = library::create_proof(circuit, parameters, r, s).unwrap();
    let mut bytes = Vec::new();
    proof.write(&mut bytes).unwrap();
    bytes
}

/// WP-10: nothing is assumed about counts, borders of density words, or ONE being in B.
#[test]
fn proofs_are_those_of_bellperson() {
    for form in forms() {
        let blank = Chain::blank(form);
        let parameters = parameters(blank.clone());
        let key = ours::proving_key(&parameters).unwrap();
        let shape = bellpepper::record(blank).unwrap();
        assert_eq!(shape.r1cs().num_inputs, form.inputs);
        assert_eq!(shape.r1cs().num_variables, form.inputs + form.aux);
        let prover = Prover::new(&key).unwrap();
        // With 0 all variables are.
        for first in [0, 11] {
            let circuit = Chain::with(form, first);
            let proved = bellpepper::prove(&prover, &shape, circuit.clone(), &options())
                .unwrap_or_else(|error| panic!("{form:?}, {first}: {error}"));
            let expected = library_proof(circuit, &parameters);
            assert_eq!(to_bytes([&proved]), expected, "{form:?}, {first}");
        }
    }
}

#[test]
fn fresh_proofs_verify_under_bellperson() {
    let parameters = parameters(Chain::blank(FORM));
    let key = ours::proving_key(&parameters).unwrap();
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let circuit = Chain::with(FORM, 5);
    let public = circuit.public_values();
    let prover = Prover::new(&key).unwrap();
    let proved = bellpepper::prove(&prover, &shape, circuit, &ProveOptions::default()).unwrap();
    let pvk = library::prepare_verifying_key(&parameters.vk);
    let proof = ours::to_proof(&proved.proof).unwrap();
    assert!(library::verify_proof(&pvk, &proof, &public).unwrap());
    let other = [public[0], public[1] + Scalar::from(1)];
    assert!(!library::verify_proof(&pvk, &proof, &other).unwrap());
}

/// A key's own types, its file, and the file behind a ceremony give one key.
#[test]
fn keys_come_from_types_and_from_files() {
    let parameters = parameters(Chain::blank(FORM));
    let mut bytes = Vec::new();
    parameters.write(&mut bytes).unwrap();
    let read = |bytes: &[u8]| {
        let source = BytesSource::new("p.params", bytes);
        params::read_params(&source, &LoadOptions::default()).unwrap()
    };
    let key = ours::proving_key(&parameters).unwrap();
    assert_eq!(read(&bytes).key, key);
    bytes.resize(bytes.len() + 64 + 4, 0);
    let with_tail = read(&bytes);
    assert_eq!(with_tail.key, key);
    assert_eq!(with_tail.notes.len(), 1);
}

/// A service has a saved shape and no code of the circuit.
#[test]
fn a_saved_shape_proves_alike() {
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let mut file = Vec::new();
    shape.save(&mut file).unwrap();
    let source = BytesSource::new("circuit.r1cs", &file);
    let loaded = Shape::load(&source, &LoadOptions::default()).unwrap();
    let key = key(Chain::blank(FORM));
    let prover = Prover::new(&key).unwrap();
    let circuit = Chain::with(FORM, 3);
    let first = bellpepper::prove(&prover, &shape, circuit.clone(), &options()).unwrap();
    let second = bellpepper::prove(&prover, &loaded, circuit.clone(), &options()).unwrap();
    assert_eq!(first.proof, second.proof);
    // Without the library: the witness as a file, too.
    let witness = bellpepper::witness(&shape, circuit).unwrap();
    let circuit = cuzk_groth16::Circuit::R1cs(loaded.r1cs());
    assert_eq!(
        prover.prove(circuit, &witness, &options()).unwrap().proof,
        first.proof
    );
}

#[test]
fn partitions_are_put_together_in_order() {
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let parameters = parameters(Chain::blank(FORM));
    let key = ours::proving_key(&parameters).unwrap();
    let prover = Prover::new(&key).unwrap();
    let circuits: Vec<Chain> = (1..=4).map(|first| Chain::with(FORM, first)).collect();
    let proofs =
        bellpepper::prove_all(&prover, &shape, circuits.clone(), &ProveOptions::default()).unwrap();
    let bytes = to_bytes(&proofs);
    assert_eq!(bytes.len(), 4 * 192);
    let source = BytesSource::new("proofs", &bytes);
    let read = proof::read_all(&source, &LoadOptions::default()).unwrap();
    let pvk = library::prepare_verifying_key(&parameters.vk);
    for (proof, circuit) in read.iter().zip(&circuits) {
        let proof = ours::to_proof(proof).unwrap();
        assert!(library::verify_proof(&pvk, &proof, &circuit.public_values()).unwrap());
    }
}

/// The second of three fails: an error, no proof swapped, and the prover works on.
#[test]
fn a_batch_ends_with_the_first_failure() {
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let key = key(Chain::blank(FORM));
    let prover = Prover::new(&key).unwrap();
    let mut wrong = Chain::with(FORM, 2);
    wrong.fault = Fault::Value;
    let circuits = [Chain::with(FORM, 1), wrong, Chain::with(FORM, 3)];
    let error = bellpepper::prove_all(&prover, &shape, circuits, &options()).unwrap_err();
    assert_eq!(error, ProverError::Unsatisfied { constraint: 1 }.into());
    bellpepper::prove(&prover, &shape, Chain::with(FORM, 3), &options()).unwrap();

    // Jobs are drawn one at a time.
    let mut drawn = 0;
    let mut jobs = (1..=3).map(|first| {
        drawn += 1;
        match first {
            2 => Err(Error::Synthesis { what: "no".into() }),
            _ => Ok(Job {
                witness: bellpepper::witness(&shape, Chain::with(FORM, first))?,
                options: options(),
            }),
        }
    });
    let error = prover.prove_all(shape.r1cs(), &mut jobs).unwrap_err();
    assert_eq!(error, Error::Synthesis { what: "no".into() });
    assert_eq!(drawn, 2);
}

/// WP-24.
#[test]
fn a_circuit_that_changes_with_its_witness_is_refused() {
    let key = key(Chain::blank(FORM));
    let prover = Prover::new(&key).unwrap();
    let refused = |shape: &Shape, fault| {
        let mut circuit = Chain::with(FORM, 2);
        circuit.fault = fault;
        bellpepper::prove(&prover, shape, circuit, &options()).unwrap_err()
    };
    let constraint = Error::Count {
        what: "constraints",
        recorded: 12,
        found: 13,
    };
    let variable = Error::Count {
        what: "auxiliary variables",
        recorded: 9,
        found: 10,
    };
    let coefficient = Error::Constraint {
        matrix: "B",
        constraint: 1,
    };
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    assert_eq!(refused(&shape, Fault::Constraint), constraint);
    assert_eq!(refused(&shape, Fault::Variable), variable);
    assert_eq!(refused(&shape, Fault::Coefficient), coefficient);
    assert_eq!(
        constraint.to_string(),
        "the circuit is not of the recorded shape: 12 constraints were recorded, with this witness there \
         are 13; either it is another circuit, or it synthesises differently with and without a witness, \
         which no key can serve"
    );
    // Once a circuit has been compared, the counts are, and the witness is held against the constraints.
    bellpepper::prove(&prover, &shape, Chain::with(FORM, 2), &options()).unwrap();
    assert_eq!(refused(&shape, Fault::Constraint), constraint);
    assert_eq!(refused(&shape, Fault::Variable), variable);
    assert!(matches!(
        refused(&shape, Fault::GivesUp),
        Error::Synthesis { .. }
    ));
}

#[test]
fn a_circuit_of_another_shape_is_refused() {
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let form = Form { inputs: 2, ..FORM };
    let error = bellpepper::witness(&shape, Chain::with(form, 2)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Count {
                recorded: 3,
                found: 2,
                ..
            }
        ),
        "{error}"
    );
}

/// WP-23.
#[test]
fn a_key_of_another_circuit_is_refused() {
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let error = |form| {
        let key = key(Chain::blank(form));
        let prover = Prover::new(&key).unwrap();
        bellpepper::prove(&prover, &shape, Chain::with(FORM, 2), &options()).unwrap_err()
    };
    let other_counts = error(Form { aux: 10, ..FORM });
    assert_eq!(
        other_counts.to_string(),
        "the key was not made for this circuit: the key has 13 variables, the circuit 12"
    );
    // Equal counts, other densities.
    let other_densities = error(Form {
        in_b: InB::NoInput,
        ..FORM
    });
    assert_eq!(
        other_densities.to_string(),
        "the key was not made for this circuit: the key has 8 points in B, the circuit 11"
    );
}

/// WP-30: bellpepper has merged the terms, so that neither key nor circuit has the variable in B.
#[test]
fn a_variable_that_cancels_everywhere_proves() {
    let cancelling = |mut circuit: Chain| {
        circuit.fault = Fault::CancelsEverywhere;
        circuit
    };
    let parameters = parameters(cancelling(Chain::blank(FORM)));
    let key = ours::proving_key(&parameters).unwrap();
    let shape = bellpepper::record(cancelling(Chain::blank(FORM))).unwrap();
    let circuit = cancelling(Chain::with(FORM, 4));
    let prover = Prover::new(&key).unwrap();
    let proved = bellpepper::prove(&prover, &shape, circuit.clone(), &options()).unwrap();
    assert_eq!(to_bytes([&proved]), library_proof(circuit, &parameters));
}

/// WP-14: wherever a byte is flipped, the key or the proof is refused.
#[test]
fn a_flipped_byte_is_found() {
    let mut bytes = Vec::new();
    parameters(Chain::blank(FORM)).write(&mut bytes).unwrap();
    let shape = bellpepper::record(Chain::blank(FORM)).unwrap();
    let mut refused = [0, 0];
    for at in (5..bytes.len()).step_by(bytes.len() / 60) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let source = BytesSource::new("p.params", &damaged);
        let key = match params::read_params(&source, &LoadOptions::default()) {
            Ok(params) => params.key,
            Err(error) => {
                assert!(error.to_string().starts_with("p.params: "), "{error}");
                refused[0] += 1;
                continue;
            }
        };
        let error = Prover::new(&key)
            .map_err(Error::from)
            .and_then(|prover| {
                bellpepper::prove(
                    &prover,
                    &shape,
                    Chain::with(FORM, 2),
                    &ProveOptions::default(),
                )
            })
            .unwrap_err();
        assert!(matches!(error, Error::Prover(_)), "{error}");
        refused[1] += 1;
    }
    assert!(refused[0] > 50, "{refused:?}");
}

/// Filecoin's PoSt synthesises in parts where the constraint system lets it.
#[test]
fn circuits_synthesised_in_parts_prove() {
    #[derive(Clone)]
    struct InParts(Option<u64>);

    fn part<CS: ConstraintSystem<Scalar>>(
        cs: &mut CS,
        value: Option<u64>,
    ) -> Result<(), SynthesisError> {
        let value = value.map(Scalar::from);
        let missing = || SynthesisError::AssignmentMissing;
        let x = cs.alloc(|| "x", || value.ok_or_else(missing))?;
        let y = cs.alloc_input(|| "y", || value.map(|x| x * x).ok_or_else(missing))?;
        cs.enforce(|| "y = x x", |lc| lc + x, |lc| lc + x, |lc| lc + y);
        Ok(())
    }

    impl Circuit<Scalar> for InParts {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            for i in 0..3 {
                let value = self.0.map(|x| x + i);
                if CS::is_extensible() {
                    let mut other = CS::new();
                    other.alloc_input(|| "ONE", || Ok(Scalar::from(1)))?;
                    part(&mut other, value)?;
                    cs.extend(&other);
                } else {
                    part(cs, value)?;
                }
            }
            Ok(())
        }
    }

    let parameters = parameters(InParts(None));
    let key = ours::proving_key(&parameters).unwrap();
    let shape = bellpepper::record(InParts(None)).unwrap();
    let prover = Prover::new(&key).unwrap();
    let (r, s) = r_and_s();
    let expected = library::create_proof(InParts(Some(6)), &parameters, r, s).unwrap();
    // The first is compared with the shape, on one thread; the second is put together from parts.
    for _ in 0..2 {
        let proved = bellpepper::prove(&prover, &shape, InParts(Some(6)), &options()).unwrap();
        assert_eq!(ours::to_proof(&proved.proof).unwrap(), expected);
        assert_eq!(proved.public_values[2], cuzk_field::Scalar::from(64));
    }
}

/// A circuit that takes every constraint system for extensible, and one that names a variable of another.
#[test]
fn circuits_that_cannot_be_recorded_are_refused() {
    struct Always;
    impl Circuit<Scalar> for Always {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let other = CS::new();
            cs.extend(&other);
            Ok(())
        }
    }
    assert_eq!(bellpepper::record(Always).unwrap_err(), Error::Parts);

    struct Stranger;
    impl Circuit<Scalar> for Stranger {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let stranger = bellpepper_core::Variable(bellpepper_core::Index::Aux(4));
            cs.enforce(|| "", |lc| lc + stranger, |lc| lc, |lc| lc);
            Ok(())
        }
    }
    let expected = Error::NoSuchVariable {
        constraint: 0,
        kind: "auxiliary",
        index: 4,
        count: 0,
    };
    assert_eq!(bellpepper::record(Stranger).unwrap_err(), expected);
}

/// With values it names an input that there is not, whose number would be that of the recorded variable behind the inputs.
#[test]
fn an_input_that_is_none_is_not_taken_for_another_variable() {
    struct Swaps(bool);
    impl Circuit<Scalar> for Swaps {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            let aux = cs.alloc(|| "", || Ok(Scalar::from(0)))?;
            let none = bellpepper_core::Variable(bellpepper_core::Index::Input(1));
            let far = bellpepper_core::Variable(bellpepper_core::Index::Aux(usize::MAX));
            let named = if self.0 { none } else { aux };
            cs.enforce(|| "", |lc| lc + named, |lc| lc, |lc| lc);
            if self.0 {
                cs.enforce(|| "", |lc| lc + far, |lc| lc, |lc| lc);
            } else {
                cs.enforce(|| "", |lc| lc + aux, |lc| lc, |lc| lc);
            }
            Ok(())
        }
    }
    let shape = bellpepper::record(Swaps(false)).unwrap();
    let expected = Error::Constraint {
        matrix: "A",
        constraint: 0,
    };
    assert_eq!(
        bellpepper::witness(&shape, Swaps(true)).unwrap_err(),
        expected
    );
}

/// FI-23: no constraint, no variable but ONE.
#[test]
fn an_empty_circuit_proves() {
    #[derive(Clone)]
    struct Nothing;
    impl Circuit<Scalar> for Nothing {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            _: &mut CS,
        ) -> Result<(), SynthesisError> {
            Ok(())
        }
    }
    let shape = bellpepper::record(Nothing).unwrap();
    let witness = bellpepper::witness(&shape, Nothing).unwrap();
    assert_eq!(witness.values().len(), 1);
    let parameters = parameters(Nothing);
    let key = ours::proving_key(&parameters).unwrap();
    let prover = Prover::new(&key).unwrap();
    let proved = bellpepper::prove(&prover, &shape, Nothing, &ProveOptions::default()).unwrap();
    let pvk = library::prepare_verifying_key(&parameters.vk);
    assert!(library::verify_proof(&pvk, &ours::to_proof(&proved.proof).unwrap(), &[]).unwrap());
}
