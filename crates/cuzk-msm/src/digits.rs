//! Signed digits of scalars.
//!
//! A scalar k is replaced by its magnitude |k| = min(k, r - k) < 2^254 and a sign. With window width
//! c there are W = floor(254 / c) + 1 digits. Adding the constant B = sum_(i < W-1) 2^(ci + c - 1)
//! once makes every digit independent of the others: digit i is window i of |k| + B, less 2^(c-1)
//! for all but the last window. Digits lie in [-2^(c-1), 2^(c-1)]: the last window holds at most
//! 254 - c(W-1) <= c - 1 bits and a carry.

use cuzk_field::Scalar;
use cuzk_field::constants::FR_MODULUS;

/// Bits of a magnitude: (r - 1) / 2 < 2^254.
const MAGNITUDE_BITS: u32 = 254;

/// The top bit of a recoded scalar says that its base is to be negated.
const SIGN: u64 = 1 << 63;

/// A window width with what follows from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    width: u32,
    count: u32,
    bias: [u64; 4],
}

/// A digit as bucket number (its magnitude, 0 for none) and whether the point is subtracted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digit {
    pub(crate) bucket: u32,
    pub(crate) negative: bool,
}

impl Windows {
    /// Windows of `width` bits, 2 to 24.
    pub(crate) fn new(width: u32) -> Self {
        let count = MAGNITUDE_BITS / width + 1;
        let mut bias = [0u64; 4];
        for window in 0..count - 1 {
            let bit = window * width + width - 1;
            bias[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        Self { width, count, bias }
    }

    /// The width with the least estimated work for `terms` terms.
    ///
    /// A window costs one addition per term and two per bucket; what a window costs beyond that
    /// (sorting, the last rounds of each tree) is a few additions' worth and does not move the
    /// minimum.
    pub(crate) fn for_terms(terms: usize) -> Self {
        let cost = |width: u32| {
            let windows = u64::from(MAGNITUDE_BITS / width + 1);
            windows * (terms as u64 + (2 << (width - 1)) + u64::from(width))
        };
        Self::new((2..=20).min_by_key(|width| cost(*width)).unwrap_or(2))
    }

    /// Bits of a digit.
    pub(crate) fn width(self) -> u32 {
        self.width
    }

    /// Digits of a scalar.
    pub(crate) fn count(self) -> u32 {
        self.count
    }

    /// Buckets of a window, numbered from 1.
    pub(crate) fn buckets(self) -> usize {
        1 << (self.width - 1)
    }

    /// The biased magnitude with the sign in the top bit.
    pub(crate) fn recode(self, scalar: &Scalar) -> [u64; 4] {
        let negated = subtract(&FR_MODULUS, scalar.limbs());
        let is_upper_half = less_than(&negated, scalar.limbs());
        let magnitude = if is_upper_half {
            &negated
        } else {
            scalar.limbs()
        };
        let mut biased = add(magnitude, &self.bias);
        if is_upper_half {
            biased[3] |= SIGN;
        }
        biased
    }

    /// A digit of a recoded scalar.
    #[inline]
    pub(crate) fn digit(self, recoded: &[u64; 4], window: u32) -> Digit {
        let bit = window * self.width;
        let (limb, shift) = ((bit / 64) as usize, bit % 64);
        let scalar_negative = recoded[3] & SIGN != 0;
        let limb_at = |i: usize| match i {
            0..=2 => recoded[i],
            3 => recoded[3] & !SIGN,
            _ => 0,
        };
        let mut bits = limb_at(limb) >> shift;
        if shift + self.width > 64 {
            bits |= limb_at(limb + 1) << (64 - shift);
        }
        let bits = (bits & ((1 << self.width) - 1)) as i64;
        let offset = if window + 1 == self.count {
            0
        } else {
            1i64 << (self.width - 1)
        };
        let digit = bits - offset;
        Digit {
            bucket: digit.unsigned_abs() as u32,
            negative: (digit < 0) != scalar_negative,
        }
    }
}

fn add(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut carry = 0;
    std::array::from_fn(|i| {
        let sum = u128::from(a[i]) + u128::from(b[i]) + carry;
        carry = sum >> 64;
        sum as u64
    })
}

fn subtract(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (difference, b1) = a[i].overflowing_sub(b[i]);
        let (difference, b2) = difference.overflowing_sub(u64::from(borrow));
        borrow = b1 | b2;
        difference
    })
}

fn less_than(a: &[u64; 4], b: &[u64; 4]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_field::{Field as _, Fr};
    use proptest::prelude::*;

    /// sum digit_i 2^(ci) as a field element.
    fn value_of(windows: Windows, recoded: &[u64; 4]) -> Fr {
        (0..windows.count()).rev().fold(Fr::ZERO, |sum, window| {
            let digit = windows.digit(recoded, window);
            assert!(digit.bucket as usize <= windows.buckets());
            let term = Fr::from(u64::from(digit.bucket));
            let shifted = sum * Fr::from(1 << windows.width());
            if digit.negative {
                shifted - term
            } else {
                shifted + term
            }
        })
    }

    fn check(scalar: Scalar) {
        for width in 2..=20 {
            let windows = Windows::new(width);
            let value = value_of(windows, &windows.recode(&scalar));
            assert!(value == Fr::from(scalar), "width {width}");
        }
    }

    #[test]
    fn extreme_scalars_recode() {
        check(Scalar::ZERO);
        check(Scalar::ONE);
        check(Scalar::MINUS_ONE);
        let half = Scalar::from(Fr::from(2).inverse().unwrap());
        check(half);
        check(Scalar::from(Fr::from(half) - Fr::ONE));
        for bit in 0..255 {
            let mut limbs = [0u64; 4];
            limbs[bit / 64] = 1 << (bit % 64);
            if let Some(power) = Scalar::from_limbs(limbs) {
                check(power);
                check(Scalar::from(Fr::from(power) - Fr::ONE));
                check(Scalar::from(-Fr::from(power)));
            }
        }
    }

    proptest! {
        #[test]
        fn random_scalars_recode(limbs in any::<[u64; 4]>()) {
            let limbs = [limbs[0], limbs[1], limbs[2], limbs[3] >> 2];
            check(Scalar::from_limbs(limbs).unwrap());
        }
    }
}
