//! Keys with a known trapdoor.

use std::convert::Infallible;

use cuzk_field::{G1Affine, G2Affine, Scalar};
use cuzk_formats::{KeyFlavour, ProvingKey, R1cs, VerifyingKey};
use cuzk_msm::FixedBase;

use super::exponents::KeyExponents;
use crate::error::Error;
use crate::key::KeyHeader;

/// Whose conventions a synthetic key follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyFamily {
    /// snarkjs: roots of 5, odd Lagrange H, full queries.
    Circom,
    /// arkworks: roots of 7, tau-power H, full queries.
    Arkworks,
    /// bellman: as arkworks, but without points at infinity.
    Bellman,
}

impl KeyFamily {
    /// Roots of unity and H basis.
    pub const fn flavour(self) -> KeyFlavour {
        match self {
            Self::Circom => KeyFlavour::CIRCOM,
            Self::Arkworks | Self::Bellman => KeyFlavour::LIBSNARK,
        }
    }
}

impl KeyExponents {
    /// All but the queries.
    pub fn header(&self) -> KeyHeader {
        let g1 = FixedBase::new(&G1Affine::generator());
        let g2 = FixedBase::new(&G2Affine::generator());
        let single_g1 = |value: Scalar| g1.multiply_all(&[value])[0];
        let single_g2 = |value: Scalar| g2.multiply_all(&[value])[0];
        let [alpha, beta, gamma, delta] = self.secrets;
        KeyHeader {
            flavour: self.flavour,
            domain_size: self.domain_size,
            query_layout: self.query_layout,
            num_variables: self.flavour.first_in_l(self.gamma_abc.len()) + self.l.len(),
            points_in_a: self.a.len(),
            points_in_b: self.b.len(),
            vk: VerifyingKey {
                alpha_g1: single_g1(alpha),
                beta_g2: single_g2(beta),
                gamma_g2: single_g2(gamma),
                delta_g2: single_g2(delta),
                gamma_abc_g1: g1.multiply_all(&self.gamma_abc),
            },
            beta_g1: single_g1(beta),
            delta_g1: single_g1(delta),
        }
    }

    /// The key.
    pub fn points(&self) -> ProvingKey {
        let g1 = FixedBase::new(&G1Affine::generator());
        let g2 = FixedBase::new(&G2Affine::generator());
        let made: Result<_, Infallible> = self.points_by(
            |exponents| Ok(g1.multiply_all(exponents)),
            |exponents| Ok(g2.multiply_all(exponents)),
        );
        match made {
            Ok(key) => key,
            Err(never) => match never {},
        }
    }

    /// The key, its points made by functions that multiply the generators.
    pub(crate) fn points_by<E>(
        &self,
        mut g1: impl FnMut(&[Scalar]) -> Result<Vec<G1Affine>, E>,
        g2: impl FnOnce(&[Scalar]) -> Result<Vec<G2Affine>, E>,
    ) -> Result<ProvingKey, E> {
        let KeyHeader {
            vk,
            beta_g1,
            delta_g1,
            ..
        } = self.header();
        Ok(ProvingKey {
            flavour: self.flavour,
            domain_size: self.domain_size,
            vk,
            beta_g1,
            delta_g1,
            query_layout: self.query_layout,
            a_query: g1(&self.a)?,
            b_g1_query: g1(&self.b)?,
            h_query: g1(&self.h)?,
            l_query: g1(&self.l)?,
            b_g2_query: g2(&self.b)?,
        })
    }
}

/// Makes a key for a circuit from secrets that follow from `seed`. It protects nothing.
///
/// # Errors
/// [`Error::Domain`] for circuits above 2^32 rows.
pub fn proving_key(r1cs: &R1cs, family: KeyFamily, seed: u64) -> Result<ProvingKey, Error> {
    Ok(KeyExponents::new(r1cs, family, seed)?.points())
}
