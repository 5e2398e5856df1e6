//! A multiple of each of many points: nothing is summed.
//!
//! A scalar k is k1 + k2 lambda with both parts below 2^128, and lambda P costs one product
//! ([`G1Affine::endomorphism`]), so that 128 doublings serve where 255 would. Points of a block go in
//! step: the same doubling and the same digit for all of them at once, each step a batch of affine
//! additions that share one inversion.

use cuzk_field::constants::G1_LAMBDA;
use cuzk_field::{Fp, G1Affine, Scalar};
use rayon::prelude::*;

use crate::cpu;
use crate::pair_tree::Sums;
use crate::pippenger::Error;

/// Bits of a digit.
const WIDTH: u32 = 4;
/// Signed digits of a part: 32 of four bits, and a carry.
const DIGITS: usize = 33;
/// Multiples held of each point: 1 to 8.
const MULTIPLES: usize = 1 << (WIDTH - 1);
/// Points that go in step: 17 points held for each, 835 KB in all.
const BLOCK: usize = 512;

/// `scalars[i] points[i]` for every i. The points are **of order r**: outside the subgroup the results are
/// wrong. Not for secret scalars: their digits show in the time taken.
///
/// # Errors
/// [`Error::LengthMismatch`] when the lengths differ.
pub fn multiply_each(points: &[G1Affine], scalars: &[Scalar]) -> Result<Vec<G1Affine>, Error> {
    if points.len() != scalars.len() {
        return Err(Error::LengthMismatch {
            bases: points.len(),
            scalars: scalars.len(),
        });
    }
    let mut products = vec![G1Affine::INFINITY; points.len()];
    // As many blocks as threads at least, where there are few points.
    let block = BLOCK.min(points.len().div_ceil(rayon::current_num_threads()).max(8));
    products
        .par_chunks_mut(block)
        .zip(points.par_chunks(block).zip(scalars.par_chunks(block)))
        .for_each_init(
            Lockstep::default,
            |lockstep, (products, (points, scalars))| {
                products.copy_from_slice(lockstep.multiply(points, scalars));
            },
        );
    Ok(products)
}

/// The scratch of one worker.
struct Lockstep {
    sums: Box<dyn Sums<Fp>>,
    /// The results so far; then (multiples, points) of each point; then the same of lambda times it.
    points: Vec<G1Affine>,
    digits: Vec<[[i8; DIGITS]; 2]>,
    terms: Vec<u32>,
    lengths: Vec<u32>,
}

impl Default for Lockstep {
    fn default() -> Self {
        Self {
            sums: cpu::sums(),
            points: Vec::new(),
            digits: Vec::new(),
            terms: Vec::new(),
            lengths: Vec::new(),
        }
    }
}

impl Lockstep {
    fn multiply(&mut self, points: &[G1Affine], scalars: &[Scalar]) -> &[G1Affine] {
        let count = points.len();
        self.digits.clear();
        self.digits.extend(scalars.iter().map(|scalar| {
            let (low, high) = split(scalar);
            [recode(low), recode(high)]
        }));
        self.tabulate(points);
        let top = (0..DIGITS).rev().find(|place| {
            let mut digits = self.digits.iter().flatten();
            digits.any(|digits| digits[*place] != 0)
        });
        for place in (0..=top.unwrap_or(0)).rev() {
            if Some(place) != top {
                for _ in 0..WIDTH {
                    self.double();
                }
            }
            self.add_digits(place, count);
        }
        &self.points[..count]
    }

    /// Fills in the multiples; the results start at infinity.
    fn tabulate(&mut self, points: &[G1Affine]) {
        let count = points.len();
        self.points.clear();
        self.points.resize(count, G1Affine::INFINITY);
        self.points.extend_from_slice(points);
        for multiple in 2..=MULTIPLES {
            // m P = (m - h) P + h P with h half of m.
            let half = multiple / 2;
            let at = |multiple: usize, i: usize| ((multiple * count + i) as u32) << 1;
            self.terms.clear();
            self.terms
                .extend((0..count).flat_map(|i| [at(multiple - half, i), at(half, i)]));
            let sums = self.run_pairs(count);
            self.points.extend_from_slice(&sums);
        }
        for i in count..(1 + MULTIPLES) * count {
            self.points.push(self.points[i].endomorphism());
        }
    }

    fn double(&mut self) {
        let count = self.digits.len();
        self.terms.clear();
        self.terms
            .extend((0..count as u32).flat_map(|i| [i << 1, i << 1]));
        let sums = self.run_pairs(count);
        self.points[..count].copy_from_slice(&sums);
    }

    fn run_pairs(&mut self, count: usize) -> Vec<G1Affine> {
        self.lengths.clear();
        self.lengths.resize(count, 2);
        self.sums
            .sum_runs(&self.points, &self.terms, &mut self.lengths)
    }

    fn add_digits(&mut self, place: usize, count: usize) {
        self.terms.clear();
        self.lengths.clear();
        for (i, parts) in self.digits.iter().enumerate() {
            let before = self.terms.len();
            self.terms.push((i as u32) << 1);
            for (table, digits) in parts.iter().enumerate() {
                let digit = digits[place];
                if digit != 0 {
                    // Multiple 1 stands behind the results, one table behind the other.
                    let multiple = usize::from(digit.unsigned_abs()) + table * MULTIPLES;
                    let index = multiple * count + i;
                    self.terms.push((index as u32) << 1 | u32::from(digit < 0));
                }
            }
            self.lengths.push((self.terms.len() - before) as u32);
        }
        let sums = self
            .sums
            .sum_runs(&self.points, &self.terms, &mut self.lengths);
        self.points[..count].copy_from_slice(&sums);
    }
}

/// k1 and k2 with k = k1 + k2 lambda: remainder and quotient. k < r = lambda^2 + lambda + 1, so that the
/// quotient is at most lambda + 1 and has 128 bits.
fn split(scalar: &Scalar) -> (u128, u128) {
    let (mut remainder, mut quotient) = (0u128, 0u128);
    for limb in scalar.limbs().iter().rev() {
        for bit in (0..64).rev() {
            // The remainder is below lambda: doubled it may have 129 bits, less lambda it has 128.
            let carry = remainder >> 127;
            remainder = remainder << 1 | u128::from(limb >> bit & 1);
            quotient <<= 1;
            if carry == 1 || remainder >= G1_LAMBDA {
                remainder = remainder.wrapping_sub(G1_LAMBDA);
                quotient |= 1;
            }
        }
    }
    (remainder, quotient)
}

/// Digits from -7 to 8 with sum digit_i 16^i = `value`.
fn recode(value: u128) -> [i8; DIGITS] {
    let mut carry = 0;
    std::array::from_fn(|place| {
        let bits = if place < 32 {
            (value >> (4 * place)) as i8 & 15
        } else {
            0
        };
        let digit = bits + carry;
        carry = i8::from(digit > 8);
        digit - 16 * carry
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_field::Fr;

    /// k1 + k2 lambda and the digits as field elements.
    fn check(scalar: Scalar) {
        let element = |value: u128| {
            Fr::from((value >> 64) as u64) * Fr::from(1 << 32) * Fr::from(1 << 32)
                + Fr::from(value as u64)
        };
        let (low, high) = split(&scalar);
        assert!(low < G1_LAMBDA);
        assert!(element(low) + element(high) * element(G1_LAMBDA) == Fr::from(scalar));
        for part in [low, high] {
            let digits = recode(part);
            assert!(digits.iter().all(|digit| (-7..=8).contains(digit)));
            let value = digits.iter().rev().fold(Fr::from(0), |sum, digit| {
                let magnitude = Fr::from(u64::from(digit.unsigned_abs()));
                let sum = sum * Fr::from(16);
                if *digit < 0 {
                    sum - magnitude
                } else {
                    sum + magnitude
                }
            });
            assert!(value == element(part));
        }
    }

    #[test]
    fn scalars_are_split_and_recoded() {
        for scalar in [Scalar::ZERO, Scalar::ONE, Scalar::MINUS_ONE] {
            check(scalar);
        }
        let lambda = [G1_LAMBDA as u64, (G1_LAMBDA >> 64) as u64, 0, 0];
        let lambda = Fr::from(Scalar::from_limbs(lambda).unwrap());
        let one = Fr::from(1);
        for value in [
            lambda,
            lambda - one,
            lambda * lambda,
            lambda * lambda + lambda,
            -lambda,
        ] {
            check(value.into());
            check((value + one).into());
        }
        let mut value = Fr::from(3);
        for _ in 0..200 {
            value = value * value + one;
            check(value.into());
        }
    }
}
