//! What a prepared key asks of the rows: the product of a and b on a coset, and nothing of c.

use cuzk_field::{Fr, Scalar};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::domain::{Domain, Error};

/// (a b)(g w^j) for j = 0 to n - 1, g = `shift`: four transforms and two arrays.
///
/// `a` and `b` hold A w and B w on the domain, in natural order; they are witness data and wiped. The
/// values are the scalars of the bases P of `docs/groth16.md`, which divide by Z and expect g. What c
/// would contribute is in such a key's L.
///
/// # Errors
/// [`Error::Length`] unless both arrays have the domain's size.
pub fn quotient_products(
    domain: &Domain,
    a: Vec<Fr>,
    b: Vec<Fr>,
    shift: Fr,
) -> Result<Vec<Scalar>, Error> {
    let (mut a, mut b) = (Zeroizing::new(a), Zeroizing::new(b));
    domain.check_len("a", a.len())?;
    domain.check_len("b", b.len())?;
    domain.extend_to_coset(&mut a, shift)?;
    domain.extend_to_coset(&mut b, shift)?;
    Ok(a.par_iter()
        .zip(b.as_slice())
        .map(|(a, b)| Scalar::from(*a * *b))
        .collect())
}
