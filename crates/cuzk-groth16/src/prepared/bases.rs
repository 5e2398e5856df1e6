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

/// The g that a key of this flavour is prepared with: the 2n-th root whose square is w for circom keys,
/// whose H are Lagrange points of that coset already, else 7.
///
/// # Errors
/// [`Error::Domain`] where there is no such domain.
pub fn shift(flavour: KeyFlavour, domain_size: usize) -> Result<Fr, Error> {
    let size_error = cuzk_ntt::Error::Size { size: domain_size };
    match flavour.h_basis {
        HBasis::OddLagrange => Ok(flavour
            .root_generator
            .root_of_unity(domain_size.trailing_zeros() + 1)
            .ok_or(size_error)?),
        HBasis::CosetLagrange { shift } => Ok(shift),
        _ => Ok(Fr::from(TAU_POWER_SHIFT)),
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
    let key_ref = KeyRef::from(&*key);
    key_ref.check()?;
    Circuit::R1cs(r1cs).check(&key_ref.header())?;
    if matches!(key.flavour.h_basis, HBasis::CosetLagrange { .. }) {
        return Err(Error::Key {
            what: "it is prepared for four transforms already".into(),
        });
    }
    check_subgroup("H", &key.h_query)?;
    let shift = shift(key.flavour, key.domain_size)?;
    let domain = Domain::new(key.domain_size, key.flavour.root_generator)?;
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

/// The endomorphism by which points are multiplied is a multiplication in the subgroup only.
fn check_subgroup(name: &str, points: &[G1Affine]) -> Result<(), Error> {
    match points
        .par_iter()
        .position_first(|point| !point.is_in_subgroup())
    {
        None => Ok(()),
        Some(index) => Err(Error::Point {
            point: format!("{name}[{index}]"),
            what: "is not in the subgroup of order r",
        }),
    }
}

/// P_j = (n z)^-1 sum_i w^(-ij) g^(-i) H_i and Q_k = (n z)^-1 sum_i w^(-ik) H_i, H_(n-1) at infinity.
fn of_tau_powers(
    domain: &Domain,
    h: &[G1Affine],
    shift: Fr,
    progress: ProgressFn<'_>,
) -> Result<(Vec<G1Affine>, Vec<G1Affine>), Error> {
    let inverse = |value: Fr| value.inverse().unwrap_or(Fr::ZERO);
    // g^n is not one: g = 7 generates the group, of whose order n is a small part.
    let z_inverse = inverse(shift.pow(domain.size() as u64) - Fr::ONE);
    let mut q = Vec::with_capacity(domain.size());
    q.extend_from_slice(h);
    q.resize(domain.size(), Affine::INFINITY);
    scale(&mut q, Fr::ONE, z_inverse * domain.size_inverse(), progress)?;
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
