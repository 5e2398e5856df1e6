//! The arkworks adapter against `ark-groth16`, byte for byte.
#![cfg(feature = "arkworks")]

use ark_bls12_381::{Bls12_381, Fr as ArkFr};
use ark_ff::UniformRand as _;
use ark_groth16::Groth16 as ArkGroth16;
use ark_relations::gr1cs::predicate::PredicateConstraintSystem;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError, Variable};
use ark_relations::lc;
use ark_snark::SNARK as _;
use ark_std::rand::SeedableRng as _;
use ark_std::rand::rngs::StdRng;
use cuzk_groth16::ark::{Groth16, ProvingKey, to_ark_proof};
use cuzk_groth16::{Blinding, Error, KeyRef, ProveOptions, Prover};

/// x, x^2, x^4, .. by repeated squaring of sums, with `public` of the values public.
#[derive(Clone, Copy)]
struct Squares {
    rounds: usize,
    public: usize,
    start: u64,
    /// Adds a constraint when the witness is known: a circuit that does not know its own shape.
    grows_when_proving: bool,
    /// Whether the values are wrong from the second round on.
    cheats: bool,
    unused_witness: bool,
}

impl Squares {
    const fn new(rounds: usize, public: usize) -> Self {
        Self {
            rounds,
            public,
            start: 3,
            grows_when_proving: false,
            cheats: false,
            unused_witness: false,
        }
    }
}

impl ConstraintSynthesizer<ArkFr> for Squares {
    fn generate_constraints(self, cs: ConstraintSystemRef<ArkFr>) -> Result<(), SynthesisError> {
        let mut value = ArkFr::from(self.start);
        let mut public = self.public;
        let mut variable = Variable::One;
        if self.rounds > 0 || self.unused_witness {
            variable = cs.new_witness_variable(|| Ok(value))?;
        }
        for round in 0..self.rounds {
            let k = ArkFr::from(round as u64 + 2);
            // A symbolic combination, to be inlined when the system is finalised.
            let combination = cs.new_lc(|| lc!() + variable + (k, Variable::One))?;
            let next = (value + k) * (value + k);
            let next = if self.cheats && round == 1 {
                next + k
            } else {
                next
            };
            let next_variable = if public > 0 {
                public -= 1;
                cs.new_input_variable(|| Ok(next))?
            } else {
                cs.new_witness_variable(|| Ok(next))?
            };
            cs.enforce_r1cs_constraint(
                || lc!() + combination,
                || lc!() + variable + (k, Variable::One),
                || lc!() + next_variable,
            )?;
            (value, variable) = (next, next_variable);
        }
        if self.grows_when_proving && !cs.is_in_setup_mode() {
            cs.enforce_r1cs_constraint(|| lc!(), || lc!(), || lc!())?;
        }
        Ok(())
    }
}

fn setup(circuit: Squares) -> ProvingKey {
    let mut rng = StdRng::seed_from_u64(7);
    ArkGroth16::<Bls12_381>::circuit_specific_setup(circuit, &mut rng)
        .unwrap()
        .0
}

fn blinding(seed: u64) -> (ArkFr, ArkFr) {
    let mut rng = StdRng::seed_from_u64(seed);
    (ArkFr::rand(&mut rng), ArkFr::rand(&mut rng))
}

fn prove(key: &ProvingKey, circuit: Squares, r: ArkFr, s: ArkFr) -> Result<ArkProof, Error> {
    let options = ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()));
    let proved = Prover::new(KeyRef::try_from(key)?)?.prove_circuit(circuit, &options)?;
    assert!(proved.verified);
    Ok(to_ark_proof(&proved.proof))
}

type ArkProof = ark_groth16::Proof<Bls12_381>;

#[test]
fn proofs_equal_those_of_ark_groth16() {
    for rounds in [0, 1, 2, 3, 4, 6, 7, 8, 30, 62, 63, 64, 65, 300] {
        for public in [0, 1, 2, 5] {
            let public = public.min(rounds);
            let circuit = Squares::new(rounds, public);
            let key = setup(circuit);
            let zero = ArkFr::from(0);
            for (r, s) in [blinding(1), (zero, zero)] {
                if rounds == 0 && r == zero {
                    // Nothing to sum and nothing to hide: C is infinity, which no proof may be.
                    assert_eq!(
                        prove(&key, circuit, r, s).unwrap_err(),
                        Error::ProofRejected {
                            witness_checked: false
                        }
                    );
                    continue;
                }
                let ours = prove(&key, circuit, r, s)
                    .unwrap_or_else(|error| panic!("{rounds} rounds, {public} public: {error}"));
                let theirs =
                    ArkGroth16::<Bls12_381>::create_proof_with_reduction(circuit, &key, r, s)
                        .unwrap();
                assert_eq!(ours, theirs, "{rounds} rounds, {public} public");
            }
        }
    }
}

/// The same through `SNARK::prove`, whose generator gives r and s under `caller-blinding`.
#[test]
fn the_snark_trait_gives_the_same_proof_for_the_same_generator() {
    let circuit = Squares::new(20, 2);
    let key = setup(circuit);
    let ours = Groth16::prove(&key, circuit, &mut StdRng::seed_from_u64(5)).unwrap();
    let theirs =
        ArkGroth16::<Bls12_381>::prove(&key, circuit, &mut StdRng::seed_from_u64(5)).unwrap();
    assert_eq!(ours, theirs);

    let (first, second) = (
        ArkFr::from(3 + 2) * ArkFr::from(3 + 2),
        ArkFr::from(28) * ArkFr::from(28),
    );
    assert!(Groth16::verify(&key.vk, &[first, second], &ours).unwrap());
    assert!(!Groth16::verify(&key.vk, &[second, first], &ours).unwrap());
    assert_eq!(
        Groth16::verify(&key.vk, &[first], &ours).unwrap_err(),
        Error::PublicCount {
            expected: 2,
            found: 1
        }
    );
}

/// Circuits without constraints, or without anything (FI-23), and unused witnesses (FI-26).
#[test]
fn circuits_without_constraints_prove() {
    for unused_witness in [false, true] {
        let circuit = Squares {
            unused_witness,
            ..Squares::new(0, 0)
        };
        let key = setup(circuit);
        assert!(key.h_query.is_empty());
        let (r, s) = blinding(2);
        let ours = prove(&key, circuit, r, s).unwrap();
        assert_eq!(
            ours,
            ArkGroth16::<Bls12_381>::create_proof_with_reduction(circuit, &key, r, s).unwrap()
        );
    }
    let circuit = Squares {
        unused_witness: true,
        ..Squares::new(0, 0)
    };
    let key = setup(circuit);
    assert!(
        ark_ec_is_zero(&key.l_query[0]),
        "an unused witness has no point"
    );
}

fn ark_ec_is_zero(point: &ark_bls12_381::G1Affine) -> bool {
    cuzk_field::G1Affine::from(*point).is_infinity()
}

#[test]
fn the_first_violated_constraint_is_named() {
    let circuit = Squares::new(10, 1);
    let key = setup(circuit);
    let (r, s) = blinding(3);
    let cheating = Squares {
        cheats: true,
        ..circuit
    };
    assert_eq!(
        prove(&key, cheating, r, s).unwrap_err(),
        Error::Unsatisfied { constraint: 1 }
    );
}

/// WP-24: one more constraint when the witness is there.
#[test]
fn a_circuit_that_changes_shape_is_refused() {
    // 62 constraints, ONE and one public value fill the domain of 64.
    let circuit = Squares {
        grows_when_proving: true,
        ..Squares::new(62, 1)
    };
    let key = setup(circuit);
    let (r, s) = blinding(3);
    assert_eq!(
        prove(&key, circuit, r, s).unwrap_err(),
        Error::CircuitMismatch {
            what: "rows in its domain",
            key: 64,
            circuit: 128
        }
    );
    // Within the domain the input rows move, and the proof does not verify.
    let circuit = Squares {
        grows_when_proving: true,
        ..Squares::new(40, 1)
    };
    let key = setup(circuit);
    assert_eq!(
        prove(&key, circuit, r, s).unwrap_err(),
        Error::ProofRejected {
            witness_checked: false
        }
    );

    let key = setup(Squares::new(20, 1));
    assert_eq!(
        prove(&key, Squares::new(21, 1), r, s).unwrap_err(),
        Error::CircuitMismatch {
            what: "variables",
            key: 22,
            circuit: 23
        }
    );
    assert_eq!(
        prove(&key, Squares::new(20, 2), r, s).unwrap_err(),
        Error::CircuitMismatch {
            what: "inputs (public values and ONE)",
            key: 2,
            circuit: 3
        }
    );
}

/// WP-04: a key converted from a zkey has n points of another basis in H.
#[test]
fn a_key_converted_from_a_zkey_is_refused() {
    let circuit = Squares::new(20, 1);
    let mut key = setup(circuit);
    key.h_query.push(key.h_query[0]);
    let error = KeyRef::try_from(&key).unwrap_err();
    assert!(
        error.to_string().contains("odd Lagrange basis of snarkjs"),
        "{error}"
    );
}

/// WP-29: lists cut short.
#[test]
fn keys_with_lists_cut_short_are_refused() {
    let circuit = Squares::new(20, 1);
    let good = setup(circuit);
    let (r, s) = blinding(1);
    let cuts: [fn(&mut ProvingKey); 5] = [
        |key| key.a_query.truncate(key.a_query.len() - 1),
        |key| key.b_g1_query.truncate(key.b_g1_query.len() - 1),
        |key| key.b_g2_query.truncate(key.b_g2_query.len() - 1),
        |key| key.h_query.truncate(key.h_query.len() - 1),
        |key| key.l_query.truncate(key.l_query.len() - 1),
    ];
    for (case, cut) in cuts.iter().enumerate() {
        let mut key = good.clone();
        cut(&mut key);
        assert!(
            matches!(prove(&key, circuit, r, s), Err(Error::Key { .. })),
            "case {case}"
        );
    }
}

/// A circuit that uses a predicate of its own besides R1CS.
#[derive(Clone, Copy)]
struct OtherPredicate;

impl ConstraintSynthesizer<ArkFr> for OtherPredicate {
    fn generate_constraints(self, cs: ConstraintSystemRef<ArkFr>) -> Result<(), SynthesisError> {
        let one = ArkFr::from(1);
        // x^3 = y.
        let cube = PredicateConstraintSystem::new_polynomial_predicate_cs(
            2,
            vec![(one, vec![(0, 3)]), (-one, vec![(1, 1)])],
        );
        cs.register_predicate("cube", cube)?;
        let x = cs.new_witness_variable(|| Ok(ArkFr::from(2)))?;
        let y = cs.new_witness_variable(|| Ok(ArkFr::from(8)))?;
        cs.enforce_constraint_arity_2("cube", || lc!() + x, || lc!() + y)
    }
}

#[test]
fn constraints_of_other_predicates_are_refused() {
    let key = setup(Squares::new(2, 0));
    let prover = Prover::new(KeyRef::try_from(&key).unwrap()).unwrap();
    let error = prover
        .prove_circuit(OtherPredicate, &ProveOptions::default())
        .unwrap_err();
    assert!(
        matches!(&error, Error::Circuit { what } if what.contains("\"cube\"")),
        "unexpected: {error}"
    );
}

/// GP-18 and CS-02: proving from inside a pool of one thread, nested.
#[test]
fn proving_inside_a_one_thread_pool_completes() {
    let circuit = Squares::new(64, 1);
    let key = setup(circuit);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let (r, s) = blinding(1);
    let (outer, inner) = pool.install(|| {
        rayon::join(
            || prove(&key, circuit, r, s).unwrap(),
            || rayon::join(|| prove(&key, circuit, r, s).unwrap(), || ()).0,
        )
    });
    assert_eq!(outer, inner);
}

/// WP-15: eight threads on one key, each with its own witness.
#[test]
fn concurrent_provers_do_not_mix() {
    let key = setup(Squares::new(16, 1));
    let prover = Prover::new(KeyRef::try_from(&key).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let prover = &prover;
            scope.spawn(move || {
                for proof in 0..6u64 {
                    let start = 100 * thread + proof;
                    let circuit = Squares {
                        start,
                        ..Squares::new(16, 1)
                    };
                    let proved = prover
                        .prove_circuit(circuit, &ProveOptions::default())
                        .unwrap();
                    let expected = ArkFr::from(start + 2) * ArkFr::from(start + 2);
                    assert_eq!(proved.public_values, [expected.into()]);
                    prover
                        .verifier()
                        .verify(&proved.public_values, &proved.proof)
                        .unwrap();
                }
            });
        }
    });
}
