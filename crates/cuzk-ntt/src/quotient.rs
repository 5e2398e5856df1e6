//! The quotient polynomial h = (a b - c) / Z, in the two forms that ordinary keys ask for;
//! `products` has that of keys with the bases of four transforms.
//!
//! c is the entry-wise product of a and b, which is what C w is for a satisfying witness: it is
//! neither evaluated nor stored beforehand. Z(X) = X^n - 1 is the constant z = g^n - 1 on the coset
//! g w^i. Both forms take six transforms. The arrays hold witness data and are wiped.

use cuzk_field::{Field as _, Fr, Scalar};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::domain::{Domain, Error};
use crate::transform::{Direction, bit_reverse_permute};

/// The coset shift for tau-power keys: any g with g^n != 1 will do, and 7 generates the
/// multiplicative group.
pub const TAU_POWER_SHIFT: u64 = 7;

/// h's coefficients 0 to n - 2, for tau-power keys (bellman, arkworks).
///
/// `a` and `b` hold A w and B w on the domain, in natural order. c needs no coset transform:
/// h_i = z^-1 ([x^i] interpolant of a b on the coset - [x^i] c) for i <= n - 2, since
/// a b - c = z h there and deg c < n.
///
/// # Errors
/// [`Error::Length`] unless both arrays have the domain's size.
pub fn quotient_coefficients(
    domain: &Domain,
    a: Vec<Fr>,
    b: Vec<Fr>,
) -> Result<Vec<Scalar>, Error> {
    let mut coefficients = all_coefficients(domain, a, b)?;
    coefficients.truncate(domain.size() - 1);
    Ok(coefficients)
}

/// The same with the one of exponent n - 1, which is zero.
pub(crate) fn all_coefficients(
    domain: &Domain,
    a: Vec<Fr>,
    b: Vec<Fr>,
) -> Result<Vec<Scalar>, Error> {
    let (mut a, mut b) = (Zeroizing::new(a), Zeroizing::new(b));
    domain.check_len("a", a.len())?;
    domain.check_len("b", b.len())?;
    let n = domain.size();
    let shift = Fr::from(TAU_POWER_SHIFT);
    // g^n = 1 only for n a multiple of r - 1.
    let z_inverse = inverse_of_nonzero(shift.pow(n as u64) - Fr::ONE);
    let shift_inverse = inverse_of_nonzero(shift);

    let mut c = product(&a, &b);
    domain.natural_to_bit_reversed(&mut c, Direction::Inverse);
    domain.extend_to_coset(&mut a, shift)?;
    domain.extend_to_coset(&mut b, shift)?;
    multiply(&mut a, &b);
    drop(b);
    domain.natural_to_bit_reversed(&mut a, Direction::Inverse);

    // n z h_i = g^-i a_i - c_i.
    let scale = z_inverse * domain.size_inverse();
    domain.scale_bit_reversed(&mut a, shift_inverse, scale);
    a.par_iter_mut()
        .zip(c.as_slice())
        .for_each(|(a, c)| *a -= *c * scale);
    drop(c);
    bit_reverse_permute(&mut a);
    Ok(a.par_iter().map(|value| Scalar::from(*value)).collect())
}

/// (a b - c)(g w^j) for j = 0 to n - 1 with g^2 = w, for keys of circom and snarkjs.
///
/// # Errors
/// [`Error::Length`] unless both arrays have the domain's size; [`Error::Size`] for n = 2^32.
pub fn quotient_odd_values(domain: &Domain, a: Vec<Fr>, b: Vec<Fr>) -> Result<Vec<Scalar>, Error> {
    let (mut a, mut b) = (Zeroizing::new(a), Zeroizing::new(b));
    domain.check_len("a", a.len())?;
    domain.check_len("b", b.len())?;
    let shift = domain.odd_coset_shift()?;
    let mut c = product(&a, &b);
    domain.extend_to_coset(&mut a, shift)?;
    domain.extend_to_coset(&mut b, shift)?;
    domain.extend_to_coset(&mut c, shift)?;
    Ok(a.par_iter()
        .zip(b.as_slice())
        .zip(c.as_slice())
        .map(|((a, b), c)| Scalar::from(*a * *b - *c))
        .collect())
}

fn product(a: &[Fr], b: &[Fr]) -> Zeroizing<Vec<Fr>> {
    Zeroizing::new(a.par_iter().zip(b).map(|(a, b)| *a * *b).collect())
}

fn multiply(a: &mut [Fr], b: &[Fr]) {
    a.par_iter_mut().zip(b).for_each(|(a, b)| *a *= *b);
}

fn inverse_of_nonzero(value: Fr) -> Fr {
    value.inverse().unwrap_or(Fr::ZERO)
}
