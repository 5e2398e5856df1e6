//! What the bases of the four-transform quotient cost, before they are made.

use std::time::{Duration, Instant};

use cuzk_field::{G1Affine, Scalar};
use cuzk_formats::{HBasis, KeyFlavour, R1cs};
use cuzk_msm::multiply_each;

use super::columns::num_multiples;
use crate::error::Error;

/// What [`super::four_transform_bases`] takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Scalar multiplications in G1, nearly all of the time.
    pub multiplications: u64,
    /// Memory beside the key and the constraint system.
    pub host_bytes: u64,
}

impl Cost {
    /// The cost for a key of this flavour and domain and its constraint system.
    pub fn of(flavour: KeyFlavour, domain_size: usize, r1cs: &R1cs) -> Self {
        Self::of_counts(
            flavour,
            domain_size as u64,
            r1cs.num_variables as u64,
            r1cs.c.num_entries() as u64,
            num_multiples(r1cs) as u64,
        )
    }

    /// The same from counts: variables, entries of C, and those of them that are neither 1 nor -1.
    pub fn of_counts(
        flavour: KeyFlavour,
        domain_size: u64,
        variables: u64,
        entries: u64,
        multiples: u64,
    ) -> Self {
        let n = domain_size;
        let transform = n / 2 * u64::from(n.trailing_zeros()) - (n - 1);
        let (scalings, arrays) = match flavour.h_basis {
            HBasis::OddLagrange => (n, 1),
            _ => (2 * n, 2),
        };
        let point = size_of::<G1Affine>() as u64;
        Self {
            multiplications: 2 * transform + scalings + multiples,
            // P and Q, twiddles; Q with L and multiples behind it, which may move as it grows; terms,
            // their places and offsets; L' and what its sums are collected in.
            host_bytes: point * (arrays * n + 2 * (n + variables + multiples))
                + 32 * (n / 2)
                + 4 * (entries + variables)
                + 16 * variables
                + (point + 16) * 2 * variables,
        }
    }

    /// The time it takes at that of one multiplication, [`measure_multiplication`].
    pub fn time(&self, multiplication: Duration) -> Duration {
        Duration::from_secs_f64(multiplication.as_secs_f64() * self.multiplications as f64)
    }
}

/// The time of one scalar multiplication when all threads of the current `rayon` pool work: some ten
/// milliseconds are spent on finding out.
///
/// # Errors
/// None that a caller could meet.
pub fn measure_multiplication() -> Result<Duration, Error> {
    let count = 512 * rayon::current_num_threads();
    let points = vec![G1Affine::generator(); count];
    // Digits that are rarely zero.
    let scalars: Vec<Scalar> = (0..count as u64)
        .map(|i| {
            let word = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Scalar::from_limbs([word, !word, word.rotate_left(17), word >> 2])
                .unwrap_or(Scalar::ONE)
        })
        .collect();
    let begun = Instant::now();
    let products = multiply_each(&points, &scalars)?;
    let elapsed = begun.elapsed();
    std::hint::black_box(products);
    Ok(elapsed / count as u32)
}
