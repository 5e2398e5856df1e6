//! Verification with a pairing.

use cuzk_field::{Affine, CurveField, G1Affine, G2Affine, Scalar, pairing_product_is_one};
use cuzk_formats::{Proof, VerifyingKey};
use cuzk_msm::msm;
use rayon::prelude::*;

use crate::error::Error;

/// A verifying key whose points have been checked once.
#[derive(Clone, Debug)]
pub struct Verifier {
    vk: VerifyingKey,
}

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
        Ok(Self { vk: vk.clone() })
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
        let expected = self.vk.num_public();
        if public_values.len() != expected {
            return Err(Error::PublicCount {
                expected,
                found: public_values.len(),
            });
        }
        check_proof(proof)?;
        let mut sum = msm(&self.vk.gamma_abc_g1[1..], public_values)?;
        sum.add_affine(&self.vk.gamma_abc_g1[0]);
        let pairs: [(G1Affine, G2Affine); 4] = [
            (-proof.a, proof.b),
            (self.vk.alpha_g1, self.vk.beta_g2),
            (sum.to_affine(), self.vk.gamma_g2),
            (proof.c, self.vk.delta_g2),
        ];
        if pairing_product_is_one(&pairs) {
            Ok(())
        } else {
            Err(Error::InvalidProof)
        }
    }
}

/// Every point of a proof: curve, subgroup, not infinity.
pub(crate) fn check_proof(proof: &Proof) -> Result<(), Error> {
    check_point(&proof.a, || "the proof's A".into(), Infinity::Refused)?;
    check_point(&proof.b, || "the proof's B".into(), Infinity::Refused)?;
    check_point(&proof.c, || "the proof's C".into(), Infinity::Refused)
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
