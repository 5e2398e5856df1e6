//! The closed form of the bases of the four-transform quotient (`docs/groth16.md`).

use cuzk_field::{Field as _, Fr, RootGenerator, Scalar};
use cuzk_formats::{HBasis, R1cs};
use rayon::prelude::*;

use super::exponents::{KeyExponents, TASK, column_sums, lagrange_at};
use super::key::KeyFamily;
use super::random::Random;
use crate::error::Error;
use crate::prepared;

impl KeyExponents {
    /// Those of the key of [`Self::new`] prepared for four transforms: of P in `h`, of E and L' in `l`.
    ///
    /// # Errors
    /// [`Error::Domain`] for circuits above 2^32 rows.
    pub fn for_four_transforms(r1cs: &R1cs, family: KeyFamily, seed: u64) -> Result<Self, Error> {
        let mut exponents = Self::new(r1cs, family, seed)?;
        let n = exponents.domain_size;
        let shift = prepared::shift(exponents.flavour, n)?;
        let inverse = |value: Fr| value.inverse().unwrap_or(Fr::ZERO);
        // The first of the secrets.
        let tau = Random::new(seed, 1).full_size();
        let [.., delta] = exponents.secrets;
        let z = shift.pow(n as u64) - Fr::ONE;
        let bases = Bases {
            n,
            root_generator: exponents.flavour.root_generator,
            scale: (tau.pow(n as u64) - Fr::ONE) * inverse(z * Fr::from(delta)),
            without_top: exponents.flavour.h_basis == HBasis::TauPowers,
        };
        // l_j(x) = L_j(x / g).
        let p = bases.at(tau * inverse(shift))?;
        exponents.h = p.par_iter().map(|value| Scalar::from(*value)).collect();
        drop(p);
        let q = bases.at(tau)?;
        let c_parts = column_sums(&r1cs.c, r1cs, &q);
        drop(q);
        let inputs = r1cs.num_inputs;
        exponents.l = c_parts
            .par_iter()
            .with_min_len(TASK)
            .enumerate()
            .map(|(v, part)| {
                let own = v.checked_sub(inputs).map(|v| Fr::from(exponents.l[v]));
                Scalar::from(own.unwrap_or(Fr::ZERO) - *part)
            })
            .collect();
        exponents.flavour.h_basis = HBasis::CosetLagrange { shift };
        Ok(exponents)
    }
}

/// What the closed forms of P and Q share.
struct Bases {
    n: usize,
    root_generator: RootGenerator,
    /// f = Z(tau) / (z delta).
    scale: Fr,
    /// Keys of tau powers have no H_(n-1), whose part is missing in P and Q alike; Lagrange points have it.
    without_top: bool,
}

impl Bases {
    /// L_k(x) f for every k; the term of x^(n-1) in L_k(x) is n^-1 w^k x^(n-1).
    fn at(&self, x: Fr) -> Result<Vec<Fr>, Error> {
        let n = self.n;
        let mut values = lagrange_at(x, n, self.root_generator)?;
        let root = self.root_generator.root_of_unity(n.trailing_zeros());
        let root = root.ok_or(cuzk_ntt::Error::Size { size: n })?;
        let top = if self.without_top {
            x.pow(n as u64 - 1) * Fr::from(n as u64).inverse().unwrap_or(Fr::ZERO)
        } else {
            Fr::ZERO
        };
        values
            .par_chunks_mut(TASK)
            .enumerate()
            .for_each(|(task, values)| {
                let mut top = top * root.pow((task * TASK) as u64);
                for value in values {
                    *value = (*value - top) * self.scale;
                    top *= root;
                }
            });
        Ok(values)
    }
}
