//! What proving needs of a key besides the points of its queries, wherever those lie.

use cuzk_field::{Fp, Fp2, G1Xyzz, G2Xyzz, Scalar, Xyzz};
use cuzk_formats::Proof;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::blinding::Blinding;
use crate::error::Error;
use crate::key::KeyHeader;
use crate::prover::ProveOptions;
use crate::stages::Clock;
use crate::verifier::{Infinity, InputSum, Verifier, check_point};

/// A key's header, every point of it checked.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) header: KeyHeader,
    pub(crate) verifier: Verifier,
}

/// The five multi-scalar multiplications, which follow from the witness and are wiped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sums {
    pub(crate) h: Xyzz<Fp>,
    pub(crate) l: Xyzz<Fp>,
    pub(crate) a: Xyzz<Fp>,
    pub(crate) b_g1: Xyzz<Fp>,
    pub(crate) b_g2: Xyzz<Fp2>,
}

impl Sums {
    /// Sums of nothing.
    pub(crate) fn infinity() -> Self {
        Self {
            h: Xyzz::INFINITY,
            l: Xyzz::INFINITY,
            a: Xyzz::INFINITY,
            b_g1: Xyzz::INFINITY,
            b_g2: Xyzz::INFINITY,
        }
    }
}

impl Setup {
    pub(crate) fn new(header: KeyHeader) -> Result<Self, Error> {
        check_point(&header.beta_g1, || "beta in G1".into(), Infinity::Refused)?;
        check_point(&header.delta_g1, || "delta in G1".into(), Infinity::Refused)?;
        let verifier = Verifier::new(&header.vk)?;
        Ok(Self { header, verifier })
    }

    pub(crate) fn check_witness(&self, witness: &[Scalar]) -> Result<(), Error> {
        let (expected, found) = (self.header.num_variables, witness.len());
        if found != expected {
            return Err(Error::WitnessLength { expected, found });
        }
        if !witness[0].is_one() {
            return Err(Error::WitnessOne);
        }
        Ok(())
    }

    /// Draws r and s, puts the proof together and, unless told otherwise, verifies it.
    /// [`Error::InvalidProof`] is a proof that does not verify. `inputs` is what verifying takes of the public values,
    /// where that is known already.
    pub(crate) fn finish(
        &self,
        sums: &Sums,
        public_values: &[Scalar],
        inputs: Option<InputSum>,
        options: &ProveOptions,
        clock: &mut Clock,
    ) -> Result<Proof, Error> {
        let blinding = options.blinding()?;
        let (proof, inputs) = clock.run("assemble", || {
            rayon::join(
                || self.assemble(sums, &blinding),
                || {
                    let sum = || self.verifier.input_sum(public_values);
                    let inputs = || inputs.map_or_else(sum, Ok);
                    options.verify.then(inputs)
                },
            )
        })?;
        if let Some(inputs) = inputs {
            let inputs = inputs?;
            clock
                .run("verify", || self.verifier.verify_with(&inputs, &proof))?
                .map_err(|_| Error::InvalidProof)?;
        }
        Ok(proof)
    }

    /// pi_a = alpha + sum A + r delta, pi_b = beta + sum B + s delta,
    /// pi_c = sum L + sum H + s pi_a + r (beta1 + sum B1 + s delta1) - r s delta1.
    fn assemble(&self, sums: &Sums, blinding: &Blinding) -> Proof {
        let (r, s) = (&blinding.r, &blinding.s);
        let key = &self.header;
        // s pi_a takes pi_a; B takes nothing of either.
        let (b, (c, a)) = rayon::join(
            || {
                let mut b = G2Xyzz::from(key.vk.delta_g2).mul_scalar(s);
                b.add_affine(&key.vk.beta_g2);
                b.add_xyzz(&sums.b_g2);
                b
            },
            || {
                rayon::join(
                    || {
                        // s delta1 in B1 and - r s delta1 cancel: r (beta1 + sum B1) is left.
                        let mut b_g1 = sums.b_g1;
                        b_g1.add_affine(&key.beta_g1);
                        let mut c = b_g1.mul_scalar(r);
                        c.add_xyzz(&sums.l);
                        c.add_xyzz(&sums.h);
                        c
                    },
                    || {
                        let mut a = G1Xyzz::from(key.delta_g1).mul_scalar(r);
                        a.add_affine(&key.vk.alpha_g1);
                        a.add_xyzz(&sums.a);
                        (a.mul_scalar(s), a)
                    },
                )
            },
        );
        let (s_a, a) = a;
        let mut c = c;
        c.add_xyzz(&s_a);
        Proof {
            a: a.to_affine(),
            b: b.to_affine(),
            c: c.to_affine(),
        }
    }
}
