//! The bases of the four-transform quotient, from those of an ordinary key.

use cuzk_field::{Affine, Field as _, Fr, G1Affine};
use cuzk_formats::{HBasis, KeyFlavour, ProvingKey, R1cs};
use cuzk_ntt::{Domain, TAU_POWER_SHIFT};
use rayon::prelude::*;

use super::columns::l_without_c;
use super::transform::{ProgressFn, scale, transform};
use crate::circuit::Circuit;
use crate::error::Error;
use crate::key::KeyRef;

/// The g that a key of this flavour is prepared with: the 2n-th root of unity whose square is w. The H of
/// circom keys are Lagrange points of that coset already, and it is the one that tables on a device are for.
/// Tau-power keys over the largest domain, which has no such root, take 7.
///
/// # Errors
/// [`Error::Domain`] where there is no such domain.
pub fn shift(flavour: KeyFlavour, domain_size: usize) -> Result<Fr, Error> {
    let root = flavour
        .root_generator
        .root_of_unity(domain_size.trailing_zeros() + 1);
    match flavour.h_basis {
        HBasis::CosetLagrange { shift } => Ok(shift),
        HBasis::OddLagrange => Ok(root.ok_or(cuzk_ntt::Error::Size { size: domain_size })?),
        _ => Ok(root.unwrap_or(Fr::from(TAU_POWER_SHIFT))),
    }
}

/// Replaces H by P, and L by L' and E over all variables, as `docs/groth16.md` derives them.
///
/// Takes time: see [`super::Cost`]. `progress` counts scalar multiplications; [`super::Cost`] says how many
/// there will be. After an error the key is as it was.
///
/// # Errors
/// When the constraint system is not the key's by its counts, the key has these bases already, or a point
/// of H is not of order r.
pub fn four_transform_bases(
    key: &mut ProvingKey,
    r1cs: &R1cs,
    progress: ProgressFn<'_>,
) -> Result<(), Error> {
    let (domain, shift) = begin(key, r1cs)?;
    check_subgroup("H", &key.h_query)?;
    let (p, q) = match key.flavour.h_basis {
        HBasis::OddLagrange => {
            let q = q_of_odd_lagrange(&domain, &key.h_query, shift, progress)?;
            (None, q)
        }
        _ => {
            let (p, q) = of_tau_powers(&domain, &key.h_query, shift, progress)?;
            (Some(p), q)
        }
    };
    let l = l_without_c(&key.l_query, q, r1cs, progress)?;
    if let Some(p) = p {
        key.h_query = p;
    }
    key.l_query = l;
    key.flavour.h_basis = HBasis::CosetLagrange { shift };
    Ok(())
}

/// The domain and g, if there is something to be made and the constraint system is the key's.
pub(super) fn begin(key: &ProvingKey, r1cs: &R1cs) -> Result<(Domain, Fr), Error> {
    let key_ref = KeyRef::from(key);
    key_ref.check()?;
    Circuit::R1cs(r1cs).check(&key_ref.header())?;
    if matches!(key.flavour.h_basis, HBasis::CosetLagrange { .. }) {
        return Err(Error::Key {
            what: "it is prepared for four transforms already".into(),
        });
    }
    let shift = shift(key.flavour, key.domain_size)?;
    let domain = Domain::new(key.domain_size, key.flavour.root_generator)?;
    Ok((domain, shift))
}

/// 1 / (n z)
pub(super) fn scale_of_tau_powers(domain: &Domain, shift: Fr) -> Fr {
    // g^n is -1 for the root of order 2n, and not one for 7, which generates the group.
    inverse(shift.pow(domain.size() as u64) - Fr::ONE) * domain.size_inverse()
}

/// Of what is not zero.
pub(super) fn inverse(value: Fr) -> Fr {
    value.inverse().unwrap_or(Fr::ZERO)
}

/// The endomorphism by which points are multiplied is a multiplication in the subgroup only.
fn check_subgroup(name: &str, points: &[G1Affine]) -> Result<(), Error> {
    match points
        .par_iter()
        .position_first(|point| !point.is_in_subgroup())
    {
        None => Ok(()),
        Some(index) => Err(outside_subgroup(name, index)),
    }
}

pub(super) fn outside_subgroup(name: &str, index: usize) -> Error {
    Error::Point {
        point: format!("{name}[{index}]"),
        what: "is not in the subgroup of order r",
    }
}

/// P_j = (n z)^-1 sum_i w^(-ij) g^(-i) H_i and Q_k = (n z)^-1 sum_i w^(-ik) H_i, H_(n-1) at infinity.
fn of_tau_powers(
    domain: &Domain,
    h: &[G1Affine],
    shift: Fr,
    progress: ProgressFn<'_>,
) -> Result<(Vec<G1Affine>, Vec<G1Affine>), Error> {
    let mut q = Vec::with_capacity(domain.size());
    q.extend_from_slice(h);
    q.resize(domain.size(), Affine::INFINITY);
    let first = scale_of_tau_powers(domain, shift);
    scale(&mut q, Fr::ONE, first, progress)?;
    let mut p = q.clone();
    scale(&mut p, inverse(shift), Fr::ONE, progress)?;
    transform(&mut p, domain.root_inverse(), progress)?;
    transform(&mut q, domain.root_inverse(), progress)?;
    Ok((p, q))
}

/// Q_k = n^-1 sum_i w^(-ik) g^i sum_j w^(ij) H_j.
fn q_of_odd_lagrange(
    domain: &Domain,
    h: &[G1Affine],
    shift: Fr,
    progress: ProgressFn<'_>,
) -> Result<Vec<G1Affine>, Error> {
    let mut q = h.to_vec();
    transform(&mut q, domain.root(), progress)?;
    scale(&mut q, shift, domain.size_inverse(), progress)?;
    transform(&mut q, domain.root_inverse(), progress)?;
    Ok(q)
}
