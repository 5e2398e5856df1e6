//! Verification with a pairing.

use cuzk_field::{Affine, CurveField, G1Affine, PairingProduct, Scalar};
use cuzk_formats::{Proof, VerifyingKey};
use cuzk_msm::msm;
use rayon::prelude::*;

use crate::error::Error;

/// A verifying key whose points have been checked once.
#[derive(Clone, Debug)]
pub struct Verifier {
    vk: VerifyingKey,
    /// e(alpha, beta).
    alpha_beta: PairingProduct,
}

/// The sum over the IC points for some public values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputSum(G1Affine);

impl Verifier {
    /// Checks curve and subgroup of every point of the key. The cost is tens of microseconds
    /// a point (the table in `cuzk_field::encoding`), on all threads.
    ///
    /// # Errors
    /// [`Error::Point`] naming the first point that fails; [`Error::Key`] if there is no point for
    /// the constant ONE.
    pub fn new(vk: &VerifyingKey) -> Result<Self, Error> {
        if vk.gamma_abc_g1.is_empty() {
            return Err(Error::Key {
                what: "IC is empty: it needs a point for ONE".into(),
            });
        }
        check_point(&vk.alpha_g1, || "alpha".into(), Infinity::Refused)?;
        check_point(&vk.beta_g2, || "beta".into(), Infinity::Refused)?;
        check_point(&vk.gamma_g2, || "gamma".into(), Infinity::Refused)?;
        check_point(&vk.delta_g2, || "delta".into(), Infinity::Refused)?;
        // An input that no constraint binds has infinity here; `inspect` warns of it.
        vk.gamma_abc_g1
            .par_iter()
            .enumerate()
            .map(|(i, point)| check_point(point, || format!("IC[{i}]"), Infinity::Allowed))
            .collect::<Result<(), _>>()?;
        Ok(Self {
            alpha_beta: PairingProduct::of(&vk.alpha_g1, &vk.beta_g2),
            vk: vk.clone(),
        })
    }

    /// The key.
    pub fn key(&self) -> &VerifyingKey {
        &self.vk
    }

    /// Checks a proof: every point on its curve, in its subgroup and not infinity, as many public
    /// values as the key takes, and e(A, B) = e(alpha, beta) e(sum, gamma) e(C, delta).
    ///
    /// That each public value is below r is what [`Scalar`] stands for.
    ///
    /// # Errors
    /// [`Error::InvalidProof`] if the equation does not hold; [`Error::Point`] and
    /// [`Error::PublicCount`] for malformed input.
    pub fn verify(&self, public_values: &[Scalar], proof: &Proof) -> Result<(), Error> {
        let sum = self.input_sum(public_values)?;
        self.verify_with(&sum, proof)
    }

    /// What verifying takes of the public values: no proof is needed for it.
    pub(crate) fn input_sum(&self, public_values: &[Scalar]) -> Result<InputSum, Error> {
        let expected = self.vk.num_public();
        if public_values.len() != expected {
            return Err(Error::PublicCount {
                expected,
                found: public_values.len(),
            });
        }
        let mut sum = msm(&self.vk.gamma_abc_g1[1..], public_values)?;
        sum.add_affine(&self.vk.gamma_abc_g1[0]);
        Ok(InputSum(sum.to_affine()))
    }

    /// [`Self::verify`] for these public values, on several threads.
    pub(crate) fn verify_with(&self, sum: &InputSum, proof: &Proof) -> Result<(), Error> {
        let vk = &self.vk;
        let ((checked, a_b), (inputs, c)) = rayon::join(
            || {
                rayon::join(
                    || check_proof(proof),
                    || PairingProduct::of(&-proof.a, &proof.b),
                )
            },
            || {
                rayon::join(
                    || PairingProduct::of(&sum.0, &vk.gamma_g2),
                    || PairingProduct::of(&proof.c, &vk.delta_g2),
                )
            },
        );
        checked?;
        let product = self.alpha_beta.times(a_b).times(inputs).times(c);
        match product.is_one() {
            true => Ok(()),
            false => Err(Error::InvalidProof),
        }
    }
}

/// Every point of a proof: curve, subgroup, not infinity.
pub(crate) fn check_proof(proof: &Proof) -> Result<(), Error> {
    let check_g1 = |point, name: &str| check_point(point, || name.into(), Infinity::Refused);
    let ((a, c), b) = rayon::join(
        || {
            (
                check_g1(&proof.a, "the proof's A"),
                check_g1(&proof.c, "the proof's C"),
            )
        },
        || check_point(&proof.b, || "the proof's B".into(), Infinity::Refused),
    );
    a.and(b).and(c)
}

/// Whether infinity may stand where a point is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Infinity {
    Allowed,
    Refused,
}

/// Curve, subgroup and infinity.
pub(crate) fn check_point<F: CurveField>(
    point: &Affine<F>,
    name: impl Fn() -> String,
    infinity: Infinity,
) -> Result<(), Error> {
    let what = if point.is_infinity() {
        match infinity {
            Infinity::Allowed => return Ok(()),
            Infinity::Refused => "is the point at infinity",
        }
    } else if !point.is_on_curve() {
        "is not on the curve"
    } else if !point.is_in_subgroup() {
        "is not in the subgroup of order r"
    } else {
        return Ok(());
    };
    Err(Error::Point {
        point: name(),
        what,
    })
}
