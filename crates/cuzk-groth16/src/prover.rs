//! The prover.

use cuzk_field::{Fp, Fp2, Fr, G1Xyzz, G2Xyzz, Scalar, Xyzz};
use cuzk_formats::{HBasis, Proof, Witness};
use cuzk_msm::{Bases, Selection, msm_selected};
use cuzk_ntt::{Domain, quotient_coefficients, quotient_odd_values};
use zeroize::Zeroizing;

use crate::blinding::Blinding;
use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::KeyRef;
use crate::rows::Rows;
use crate::stages::{Clock, StageCallback, Stages};
use crate::verifier::Verifier;

/// How to prove.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProveOptions {
    /// Verify the proof before returning it. On unless turned off.
    pub verify: bool,
    /// Told of each stage as it begins.
    pub on_stage: Option<StageCallback>,
    /// r and s instead of fresh ones.
    #[cfg(feature = "caller-blinding")]
    pub blinding: Option<Blinding>,
}

impl Default for ProveOptions {
    fn default() -> Self {
        Self {
            verify: true,
            on_stage: None,
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

    /// With r and s from the caller.
    #[cfg(feature = "caller-blinding")]
    #[must_use]
    pub fn with_blinding(mut self, blinding: Blinding) -> Self {
        self.blinding = Some(blinding);
        self
    }

    fn blinding(&self) -> Result<Blinding, Error> {
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

/// A key ready to prove with: checked, with its domain's tables.
#[derive(Debug)]
pub struct Prover<'k> {
    key: KeyRef<'k>,
    domain: Domain,
    verifier: Verifier,
}

impl<'k> Prover<'k> {
    /// Checks the key's lengths, its vital points, and every point of its verifying key.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::Point`], or [`Error::Domain`] for a domain above 2^32.
    pub fn new(key: impl Into<KeyRef<'k>>) -> Result<Self, Error> {
        let key = key.into();
        key.check()?;
        let domain = Domain::new(key.domain_size, key.flavour.root_generator)?;
        let verifier = Verifier::new(&key.vk)?;
        Ok(Self {
            key,
            domain,
            verifier,
        })
    }

    /// The key.
    pub fn key(&self) -> &KeyRef<'k> {
        &self.key
    }

    /// The verifier of this key's proofs.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
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
        let mut stages = Clock::new(options.on_stage.clone());
        let witness = witness.values();
        circuit.check(&self.key)?;
        if witness.len() != self.key.num_variables() {
            let expected = self.key.num_variables();
            return Err(Error::WitnessLength {
                expected,
                found: witness.len(),
            });
        }
        if !witness[0].is_one() {
            return Err(Error::WitnessOne);
        }
        let variables = circuit.query_variables(&self.key)?;
        let n = self.domain.size();
        let checked = match &circuit {
            Circuit::R1cs(r1cs) => Some(*r1cs),
            Circuit::Matrices(_) | Circuit::Rows { .. } => None,
        };
        let mut rows = stages.run("rows", || match circuit {
            Circuit::R1cs(r1cs) => Rows::of_r1cs(r1cs, witness, n),
            Circuit::Matrices(matrices) => Rows::of_matrices(matrices, witness, n),
            Circuit::Rows { rows, .. } => rows,
        });
        if let Some(r1cs) = checked {
            let violated = stages.run("check", || rows.first_violated(r1cs, witness));
            if let Some(constraint) = violated {
                return Err(Error::Unsatisfied { constraint });
            }
        }
        rows.pad(n);
        let h = stages.run("quotient", || self.quotient(rows))?;

        let (a_selection, b_selection) = match &variables {
            None => (Selection::All, Selection::All),
            Some(variables) => (
                Selection::Indices(&variables.a),
                Selection::Indices(&variables.b),
            ),
        };
        let key = &self.key;
        let private = &witness[key.num_inputs()..];
        let mut sum_g1 = |name, bases: &dyn Bases<Fp>, selection, scalars: &[Scalar]| {
            stages.run(name, || msm_selected(bases, selection, scalars))
        };
        let h_sum = sum_g1("H", key.h_query, Selection::All, &h)?;
        drop(h);
        let l_sum = sum_g1("L", key.l_query, Selection::All, private)?;
        let a_sum = sum_g1("A", key.a_query, a_selection, witness)?;
        let b_g1_sum = sum_g1("B1", key.b_g1_query, b_selection, witness)?;
        let b_bases: &dyn Bases<Fp2> = key.b_g2_query;
        let b_g2_sum = stages.run("B2", || msm_selected(b_bases, b_selection, witness))?;
        let sums = Sums {
            h: h_sum,
            l: l_sum,
            a: a_sum,
            b_g1: b_g1_sum,
            b_g2: b_g2_sum,
        };

        let blinding = options.blinding()?;
        let proof = stages.run("assemble", || self.assemble(&sums, &blinding));
        let public_values = witness[1..key.num_inputs()].to_vec();
        if options.verify {
            stages
                .run("verify", || self.verifier.verify(&public_values, &proof))
                .map_err(|_| Error::ProofRejected)?;
        }
        Ok(Proved {
            proof,
            public_values,
            verified: options.verify,
            stages: stages.finish(),
        })
    }

    /// The scalars of the H sum.
    fn quotient(&self, rows: Rows) -> Result<Zeroizing<Vec<Scalar>>, Error> {
        let Rows { a, b } = rows;
        let quotient: fn(&Domain, Vec<Fr>, Vec<Fr>) -> _ = match self.key.flavour.h_basis {
            HBasis::OddLagrange => quotient_odd_values,
            HBasis::TauPowers => quotient_coefficients,
            other => {
                return Err(Error::Key {
                    what: format!("its H basis {other:?} is not supported"),
                });
            }
        };
        Ok(Zeroizing::new(quotient(&self.domain, a, b)?))
    }

    /// pi_a = alpha + sum A + r delta, pi_b = beta + sum B + s delta,
    /// pi_c = sum L + sum H + s pi_a + r (beta1 + sum B1 + s delta1) - r s delta1.
    fn assemble(&self, sums: &Sums, blinding: &Blinding) -> Proof {
        let (r, s) = (&blinding.r, &blinding.s);
        let key = &self.key;
        let delta = G1Xyzz::from(key.delta_g1);

        let mut a = delta.mul_scalar(r);
        a.add_affine(&key.vk.alpha_g1);
        a.add_xyzz(&sums.a);

        let mut b = G2Xyzz::from(key.vk.delta_g2).mul_scalar(s);
        b.add_affine(&key.vk.beta_g2);
        b.add_xyzz(&sums.b_g2);

        // s delta1 in B1 and - r s delta1 cancel: r (beta1 + sum B1) is left.
        let mut b_g1 = sums.b_g1;
        b_g1.add_affine(&key.beta_g1);
        let mut c = a.mul_scalar(s);
        c.add_xyzz(&b_g1.mul_scalar(r));
        c.add_xyzz(&sums.l);
        c.add_xyzz(&sums.h);

        Proof {
            a: a.to_affine(),
            b: b.to_affine(),
            c: c.to_affine(),
        }
    }
}

/// The five multi-scalar multiplications.
struct Sums {
    h: Xyzz<Fp>,
    l: Xyzz<Fp>,
    a: Xyzz<Fp>,
    b_g1: Xyzz<Fp>,
    b_g2: Xyzz<Fp2>,
}
