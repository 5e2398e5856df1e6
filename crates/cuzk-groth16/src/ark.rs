//! Proving arkworks circuits with arkworks keys.
//!
//! A program that proves with `ark-groth16` 0.6 changes two lines, the import and the type:
//!
//! ```
//! use ark_bls12_381::{Bls12_381, Fr};
//! use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};
//! use ark_snark::SNARK;
//! # use ark_relations::gr1cs::Variable;
//! // was: use ark_groth16::Groth16;
//! use cuzk_groth16::ark::Groth16;
//!
//! /// Knowledge of factors of a public number.
//! #[derive(Clone)]
//! struct Factors { a: Fr, b: Fr }
//!
//! impl ConstraintSynthesizer<Fr> for Factors {
//!     fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
//!         let a = cs.new_witness_variable(|| Ok(self.a))?;
//!         let b = cs.new_witness_variable(|| Ok(self.b))?;
//!         let c = cs.new_input_variable(|| Ok(self.a * self.b))?;
//!         cs.enforce_r1cs_constraint(|| a.into(), || b.into(), || c.into())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use ark_std::rand::SeedableRng;
//! let mut rng = ark_std::rand::rngs::StdRng::seed_from_u64(0); // in earnest: the system's
//! let circuit = Factors { a: Fr::from(6u64), b: Fr::from(7u64) };
//! // was: Groth16::<Bls12_381>::circuit_specific_setup(..)
//! let (pk, vk) = Groth16::circuit_specific_setup(circuit.clone(), &mut rng)?;
//! let proof = Groth16::prove(&pk, circuit, &mut rng)?;
//! assert!(Groth16::verify(&vk, &[Fr::from(42u64)], &proof)?);
//! assert!(ark_groth16::Groth16::<Bls12_381>::verify(&vk, &[Fr::from(42u64)], &proof)?);
//! # Ok(())
//! # }
//! ```
//!
//! The key's points are read where they lie; nothing is copied. r and s come from the operating
//! system; the generator passed to [`SNARK::prove`] is used only under feature `caller-blinding`,
//! where it gives r and s as it does in `ark-groth16`, so that equal generators give equal proofs.

use ark_bls12_381::{Bls12_381, Fr as ArkFr};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, Matrix, OptimizationGoal,
    R1CS_PREDICATE_LABEL, SynthesisError, SynthesisMode,
};
use ark_snark::{CircuitSpecificSetupSNARK, SNARK};
use ark_std::rand::{CryptoRng, RngCore};
use cuzk_field::{Fr, Scalar};
use cuzk_formats::{KeyFlavour, Proof, QueryLayout, VerifyingKey, Witness};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::KeyRef;
use crate::prover::{ProveOptions, Proved, Prover};
use crate::rows::Rows;
use crate::verifier::{Verifier, check_proof};

/// `ark-groth16`'s proving key.
pub type ProvingKey = ark_groth16::ProvingKey<Bls12_381>;

/// An arkworks key without copying its queries.
impl<'a> TryFrom<&'a ProvingKey> for KeyRef<'a> {
    type Error = Error;

    /// # Errors
    /// [`Error::Key`] when the H query is not that of an arkworks setup, in particular when the key
    /// was converted from a zkey, whose H points stand in another basis.
    fn try_from(key: &'a ProvingKey) -> Result<Self, Error> {
        let h_len = key.h_query.len();
        let domain_size = h_len + 1;
        if !domain_size.is_power_of_two() {
            let what = if h_len.is_power_of_two() {
                format!(
                    "its H query has {h_len} points, a power of two: that is the odd Lagrange basis \
                     of snarkjs, and this key was converted from a zkey; prove with the zkey itself"
                )
            } else {
                format!("its H query has {h_len} points, expected one less than a power of two")
            };
            return Err(Error::Key { what });
        }
        Ok(Self {
            flavour: KeyFlavour::LIBSNARK,
            domain_size,
            vk: verifying_key(&key.vk),
            beta_g1: key.beta_g1.into(),
            delta_g1: key.delta_g1.into(),
            query_layout: QueryLayout::Full,
            variables: None,
            a_query: &key.a_query,
            b_g1_query: &key.b_g1_query,
            b_g2_query: &key.b_g2_query,
            h_query: &key.h_query,
            l_query: &key.l_query,
        })
    }
}

/// `ark-groth16`'s verifying key as ours.
pub fn verifying_key(vk: &ark_groth16::VerifyingKey<Bls12_381>) -> VerifyingKey {
    VerifyingKey {
        alpha_g1: vk.alpha_g1.into(),
        beta_g2: vk.beta_g2.into(),
        gamma_g2: vk.gamma_g2.into(),
        delta_g2: vk.delta_g2.into(),
        gamma_abc_g1: vk
            .gamma_abc_g1
            .iter()
            .map(|point| (*point).into())
            .collect(),
    }
}

/// A proof as `ark-groth16`'s.
pub fn to_ark_proof(proof: &Proof) -> ark_groth16::Proof<Bls12_381> {
    ark_groth16::Proof {
        a: proof.a.into(),
        b: proof.b.into(),
        c: proof.c.into(),
    }
}

/// `ark-groth16`'s proof as ours.
pub fn from_ark_proof(proof: &ark_groth16::Proof<Bls12_381>) -> Proof {
    Proof {
        a: proof.a.into(),
        b: proof.b.into(),
        c: proof.c.into(),
    }
}

impl Prover<'_> {
    /// Synthesises an arkworks circuit and proves it. The constraint system is finalised under
    /// [`OptimizationGoal::Constraints`], as `ark-groth16` does, and the witness is checked against
    /// it first.
    ///
    /// # Errors
    /// As [`Prover::prove`]; [`Error::Synthesis`] when the circuit gives up; [`Error::Circuit`] when
    /// it has constraints outside the predicate "R1CS".
    pub fn prove_circuit(
        &self,
        circuit: impl ConstraintSynthesizer<ArkFr>,
        options: &ProveOptions,
    ) -> Result<Proved, Error> {
        let synthesised = synthesise(circuit)?;
        let count = |what, key, circuit| {
            if key == circuit {
                Ok(())
            } else {
                Err(Error::CircuitMismatch { what, key, circuit })
            }
        };
        let key = self.key();
        count(
            "inputs (public values and ONE)",
            key.num_inputs(),
            synthesised.num_inputs,
        )?;
        count(
            "variables",
            key.num_variables(),
            synthesised.witness.values().len(),
        )?;
        count(
            "rows in its domain",
            key.domain_size,
            synthesised.rows.len().next_power_of_two(),
        )?;
        let circuit = Circuit::Rows {
            rows: synthesised.rows,
            variables: None,
        };
        self.prove(circuit, &synthesised.witness, options)
    }
}

/// What is left of a circuit once its matrices have been evaluated.
struct Synthesised {
    num_inputs: usize,
    witness: Witness,
    rows: Rows,
}

fn synthesise(circuit: impl ConstraintSynthesizer<ArkFr>) -> Result<Synthesised, Error> {
    let cs = ConstraintSystem::<ArkFr>::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    cs.set_mode(SynthesisMode::Prove {
        construct_matrices: true,
        generate_lc_assignments: false,
    });
    circuit
        .generate_constraints(cs.clone())
        .map_err(synthesis_error)?;
    cs.finalize();
    evaluate(&cs)
}

fn synthesis_error(error: SynthesisError) -> Error {
    Error::Synthesis {
        what: error.to_string(),
    }
}

fn evaluate(cs: &ConstraintSystemRef<ArkFr>) -> Result<Synthesised, Error> {
    let matrices = cs.to_matrices().map_err(synthesis_error)?;
    for (label, matrices) in &matrices {
        let constraints = matrices.first().map_or(0, Vec::len);
        if label != R1CS_PREDICATE_LABEL && constraints > 0 {
            return Err(Error::Circuit {
                what: format!(
                    "it has {constraints} constraints of the predicate {label:?}; Groth16 proves \
                     those of {R1CS_PREDICATE_LABEL:?} alone"
                ),
            });
        }
    }
    let r1cs = matrices.get(R1CS_PREDICATE_LABEL).map(Vec::as_slice);
    let [a, b, c] = r1cs.unwrap_or_default() else {
        return Err(Error::Circuit {
            what: "its R1CS predicate has not three matrices".into(),
        });
    };
    let cs = cs
        .borrow()
        .ok_or_else(|| synthesis_error(SynthesisError::MissingCS))?;
    let instance = cs.instance_assignment().map_err(synthesis_error)?;
    let private = cs.witness_assignment().map_err(synthesis_error)?;
    let assignment = Zeroizing::new([instance, private].concat());

    // With room for the input rows and for zeros up to n, so that nothing is copied.
    let len = (c.len() + instance.len()).next_power_of_two();
    let mut a = multiply(a, &assignment, len);
    let mut b = multiply(b, &assignment, len);
    let c = Zeroizing::new(multiply(c, &assignment, c.len()));
    a.extend(instance.iter().map(|value| Fr::from_ark(*value)));
    b.resize(a.len(), Fr::default());
    let holds = |row: &usize| a[*row] * b[*row] == c[*row];
    let violated = (0..c.len()).into_par_iter().find_first(|row| !holds(row));
    let rows = Rows::new(a, b)?;
    if let Some(constraint) = violated {
        return Err(Error::Unsatisfied { constraint });
    }
    let witness = Witness::new(
        assignment
            .par_iter()
            .map(|value| Scalar::from(*value))
            .collect(),
    );
    Ok(Synthesised {
        num_inputs: instance.len(),
        witness,
        rows,
    })
}

/// M w, in a list with room for `capacity` rows.
fn multiply(matrix: &Matrix<ArkFr>, assignment: &[ArkFr], capacity: usize) -> Vec<Fr> {
    let mut rows = Vec::with_capacity(capacity);
    rows.par_extend(matrix.par_iter().map(|row| {
        let terms = row
            .iter()
            .map(|(coefficient, index)| *coefficient * assignment[*index]);
        Fr::from_ark(terms.sum())
    }));
    rows
}

/// A drop-in for `ark_groth16::Groth16<Bls12_381>`.
#[derive(Clone, Copy, Debug)]
pub struct Groth16;

impl SNARK<ArkFr> for Groth16 {
    type ProvingKey = ProvingKey;
    type VerifyingKey = ark_groth16::VerifyingKey<Bls12_381>;
    type Proof = ark_groth16::Proof<Bls12_381>;
    type ProcessedVerifyingKey = ark_groth16::PreparedVerifyingKey<Bls12_381>;
    type Error = Error;

    /// The setup of `ark-groth16`.
    fn circuit_specific_setup<C: ConstraintSynthesizer<ArkFr>, R: RngCore + CryptoRng>(
        circuit: C,
        rng: &mut R,
    ) -> Result<(Self::ProvingKey, Self::VerifyingKey), Error> {
        ark_groth16::Groth16::<Bls12_381>::circuit_specific_setup(circuit, rng)
            .map_err(synthesis_error)
    }

    /// Proves and verifies. To prove more than once with a key, make a [`Prover`] from it and call
    /// [`Prover::prove_circuit`].
    fn prove<C: ConstraintSynthesizer<ArkFr>, R: RngCore + CryptoRng>(
        key: &Self::ProvingKey,
        circuit: C,
        rng: &mut R,
    ) -> Result<Self::Proof, Error> {
        let options = options_from(rng);
        let proved = Prover::new(KeyRef::try_from(key)?)?.prove_circuit(circuit, &options)?;
        Ok(to_ark_proof(&proved.proof))
    }

    /// Checks curve and subgroup of the key's points, which need no further check for its proofs.
    fn process_vk(vk: &Self::VerifyingKey) -> Result<Self::ProcessedVerifyingKey, Error> {
        Verifier::new(&verifying_key(vk))?;
        Ok(ark_groth16::prepare_verifying_key(vk))
    }

    /// `Ok(false)` for a well-formed proof that is not valid.
    fn verify_with_processed_vk(
        vk: &Self::ProcessedVerifyingKey,
        public_values: &[ArkFr],
        proof: &Self::Proof,
    ) -> Result<bool, Error> {
        let (expected, found) = (
            vk.vk.gamma_abc_g1.len().saturating_sub(1),
            public_values.len(),
        );
        if found != expected {
            return Err(Error::PublicCount { expected, found });
        }
        check_proof(&from_ark_proof(proof))?;
        ark_groth16::Groth16::<Bls12_381>::verify_proof(vk, proof, public_values)
            .map_err(synthesis_error)
    }
}

impl CircuitSpecificSetupSNARK<ArkFr> for Groth16 {}

/// r, then s, from the caller's generator, in `ark-groth16`'s order.
#[cfg(feature = "caller-blinding")]
fn options_from(rng: &mut impl RngCore) -> ProveOptions {
    use ark_std::UniformRand as _;
    let r = ArkFr::rand(rng);
    let s = ArkFr::rand(rng);
    ProveOptions::default().with_blinding(crate::Blinding::from_caller(r.into(), s.into()))
}

#[cfg(not(feature = "caller-blinding"))]
fn options_from(_rng: &mut impl RngCore) -> ProveOptions {
    ProveOptions::default()
}
