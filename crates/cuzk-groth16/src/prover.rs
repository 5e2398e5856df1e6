//! The prover.

use cuzk_field::{Fp, Scalar};
use cuzk_formats::{HBasis, Proof, QueryVariables, Witness};
use cuzk_msm::{Bases, Selection, msm_selected};
use cuzk_ntt::{Domain, quotient_coefficients, quotient_odd_values, quotient_products};
use zeroize::Zeroizing;

use crate::blinding::Blinding;
use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::KeyRef;
use crate::rows::Rows;
use crate::setup::{Setup, Sums};
use crate::stages::{Clock, StageCallback, Stages, StopCheck};
use crate::verifier::Verifier;

/// How to prove.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProveOptions {
    /// Verify the proof before returning it. On unless turned off.
    pub verify: bool,
    /// Told of each stage as it begins.
    pub on_stage: Option<StageCallback>,
    /// Asked before each stage whether to go on.
    pub stop: Option<StopCheck>,
    /// r and s instead of fresh ones.
    #[cfg(feature = "caller-blinding")]
    pub blinding: Option<Blinding>,
}

impl Default for ProveOptions {
    fn default() -> Self {
        Self {
            verify: true,
            on_stage: None,
            stop: None,
            #[cfg(feature = "caller-blinding")]
            blinding: None,
        }
    }
}

impl ProveOptions {
    /// The default but for verification, which is left to the caller.
    #[must_use]
    pub fn without_verification(mut self) -> Self {
        self.verify = false;
        self
    }

    /// With a callback for the stages.
    #[must_use]
    pub fn with_stage_callback(mut self, callback: StageCallback) -> Self {
        self.on_stage = Some(callback);
        self
    }

    /// With a question before each stage: once it is answered with yes, the proof is given up as
    /// [`Error::Stopped`].
    #[must_use]
    pub fn with_stop_check(mut self, stop: StopCheck) -> Self {
        self.stop = Some(stop);
        self
    }

    /// With r and s from the caller.
    #[cfg(feature = "caller-blinding")]
    #[must_use]
    pub fn with_blinding(mut self, blinding: Blinding) -> Self {
        self.blinding = Some(blinding);
        self
    }

    pub(crate) fn blinding(&self) -> Result<Blinding, Error> {
        #[cfg(feature = "caller-blinding")]
        if let Some(blinding) = &self.blinding {
            return Ok(blinding.clone());
        }
        Blinding::random()
    }
}

/// A proof with what belongs to it.
#[derive(Clone, Debug)]
pub struct Proved {
    /// The proof.
    pub proof: Proof,
    /// The public values it is for, without ONE.
    pub public_values: Vec<Scalar>,
    /// Whether it has been verified.
    pub verified: bool,
    /// Where the time went.
    pub stages: Stages,
}

/// A proof after its first phase, [`Prover::stage`]. Holds what follows from the witness, wiped when
/// dropped.
#[derive(Debug)]
pub struct StagedProof {
    rows: Rows,
    variables: Option<QueryVariables>,
    witness_checked: bool,
    clock: Clock,
}

/// A proof after its second phase, [`Prover::compute`]. Holds what follows from the witness, wiped
/// when dropped.
pub struct ComputedProof {
    sums: Sums,
    public_values: Vec<Scalar>,
    witness_checked: bool,
    clock: Clock,
}

impl ComputedProof {
    /// Whether the witness has been found to satisfy the circuit.
    pub fn is_witness_checked(&self) -> bool {
        self.witness_checked
    }
}

impl std::fmt::Debug for ComputedProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ComputedProof(..)")
    }
}

/// A key ready to prove with: checked, with its domain's tables.
#[derive(Debug)]
pub struct Prover<'k> {
    key: KeyRef<'k>,
    domain: Domain,
    setup: Setup,
}

impl<'k> Prover<'k> {
    /// Checks the key's lengths, its vital points, and every point of its verifying key. The points of
    /// the queries are taken as they are: the readers of `cuzk-formats` have checked theirs, and those
    /// of a key in another library's types are that library's business. A damaged query shows when a
    /// proof is verified.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::Point`], or [`Error::Domain`] for a domain above 2^32.
    pub fn new(key: impl Into<KeyRef<'k>>) -> Result<Self, Error> {
        let key = key.into();
        key.check()?;
        let setup = Setup::new(key.header())?;
        let domain = Domain::new(key.domain_size, key.flavour.root_generator)?;
        Ok(Self { key, domain, setup })
    }

    /// The key.
    pub fn key(&self) -> &KeyRef<'k> {
        &self.key
    }

    /// The verifier of this key's proofs.
    pub fn verifier(&self) -> &Verifier {
        &self.setup.verifier
    }

    /// Proves.
    ///
    /// # Errors
    /// When circuit, witness and key do not belong together, when the witness violates a constraint,
    /// or when the proof fails its own verification.
    pub fn prove(
        &self,
        circuit: Circuit<'_>,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<Proved, Error> {
        let staged = self.stage(circuit, witness, options)?;
        let computed = self.compute(staged, witness, options)?;
        self.finish(computed, options)
    }

    /// The first of a proof's three phases: holds circuit, witness and key against each other and
    /// evaluates the rows.
    ///
    /// # Errors
    /// As [`Prover::prove`].
    pub fn stage(
        &self,
        circuit: Circuit<'_>,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<StagedProof, Error> {
        let mut clock = Clock::new(options);
        let witness = witness.values();
        circuit.check(&self.setup.header)?;
        let witness_checked = matches!(circuit, Circuit::R1cs(_));
        self.setup.check_witness(witness)?;
        let variables = circuit.query_variables(&self.setup.header, self.key.variables)?;
        let rows = self.rows(circuit, witness, &mut clock)?;
        Ok(StagedProof {
            rows,
            variables,
            witness_checked,
            clock,
        })
    }

    /// The second: the quotient and the sums. `witness` is the one that was staged.
    ///
    /// # Errors
    /// [`Error::WitnessLength`] for another one; [`Error::Stopped`].
    pub fn compute(
        &self,
        staged: StagedProof,
        witness: &Witness,
        options: &ProveOptions,
    ) -> Result<ComputedProof, Error> {
        let StagedProof {
            rows,
            variables,
            witness_checked,
            mut clock,
        } = staged;
        clock.resume(options);
        let witness = witness.values();
        self.setup.check_witness(witness)?;
        let h = clock.run("quotient", || self.quotient(rows))??;
        let sums = self.sums(h, variables.as_ref(), witness, &mut clock)?;
        Ok(ComputedProof {
            sums,
            public_values: witness[1..self.key.num_inputs()].to_vec(),
            witness_checked,
            clock,
        })
    }

    /// The third: blinding, and verification where the options ask for it.
    ///
    /// # Errors
    /// [`Error::NoEntropy`]; [`Error::ProofRejected`]; [`Error::Stopped`].
    pub fn finish(&self, computed: ComputedProof, options: &ProveOptions) -> Result<Proved, Error> {
        let ComputedProof {
            sums,
            public_values,
            witness_checked,
            mut clock,
        } = computed;
        clock.resume(options);
        let proof = self
            .setup
            .finish(&sums, &public_values, None, options, &mut clock)
            .map_err(|error| match error {
                Error::InvalidProof => Error::ProofRejected { witness_checked },
                error => error,
            })?;
        Ok(Proved {
            proof,
            public_values,
            verified: options.verify,
            stages: clock.finish(),
        })
    }

    /// A w and B w; with a constraint system, checked against C w.
    fn rows(
        &self,
        circuit: Circuit<'_>,
        witness: &[Scalar],
        clock: &mut Clock,
    ) -> Result<Rows, Error> {
        let n = self.domain.size();
        match circuit {
            Circuit::R1cs(r1cs) => {
                let rows = clock.run("rows", || Rows::of_r1cs(r1cs, witness, n))?;
                match clock.run("check", || rows.first_violated(r1cs, witness))? {
                    Some(constraint) => Err(Error::Unsatisfied { constraint }),
                    None => Ok(rows),
                }
            }
            Circuit::Matrices(matrices) => {
                clock.run("rows", || Rows::of_matrices(matrices, witness, n))
            }
            Circuit::Rows { rows, .. } => Ok(rows),
        }
    }

    /// The scalars of the H sum.
    fn quotient(&self, rows: Rows) -> Result<Zeroizing<Vec<Scalar>>, Error> {
        let (a, b) = rows.into_padded(self.domain.size());
        let h = match self.key.flavour.h_basis {
            HBasis::OddLagrange => quotient_odd_values(&self.domain, a, b)?,
            HBasis::TauPowers => quotient_coefficients(&self.domain, a, b)?,
            HBasis::CosetLagrange { shift } => quotient_products(&self.domain, a, b, shift)?,
            other => {
                return Err(Error::Key {
                    what: format!("its H basis {other:?} is not supported"),
                });
            }
        };
        Ok(Zeroizing::new(h))
    }

    /// The five multi-scalar multiplications. `variables` is what a compact key's queries cover.
    fn sums(
        &self,
        h: Zeroizing<Vec<Scalar>>,
        variables: Option<&QueryVariables>,
        witness: &[Scalar],
        clock: &mut Clock,
    ) -> Result<Sums, Error> {
        let (a_selection, b_selection) = match variables {
            None => (Selection::All, Selection::All),
            Some(variables) => (
                Selection::Indices(&variables.a),
                Selection::Indices(&variables.b),
            ),
        };
        let key = &self.key;
        let in_l = &witness[key.first_in_l()..];
        let mut sum = |name, bases: &dyn Bases<Fp>, selection, scalars: &[Scalar]| {
            clock
                .run(name, || msm_selected(bases, selection, scalars))?
                .map_err(Error::from)
        };
        let h_sum = sum("H", key.h_query, Selection::All, &h)?;
        drop(h);
        Ok(Sums {
            h: h_sum,
            l: sum("L", key.l_query, Selection::All, in_l)?,
            a: sum("A", key.a_query, a_selection, witness)?,
            b_g1: sum("B1", key.b_g1_query, b_selection, witness)?,
            b_g2: clock.run("B2", || msm_selected(key.b_g2_query, b_selection, witness))??,
        })
    }
}
