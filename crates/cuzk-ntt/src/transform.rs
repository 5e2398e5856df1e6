//! The transforms, in place, on all threads of the current `rayon` pool.
//!
//! With bit-reversed twiddle tables every block of a stage has one twiddle: stage s of the
//! natural-to-bit-reversed direction splits a polynomial modulo x^m - c^2 into its remainders modulo
//! x^(m/2) - c and x^(m/2) + c (Cooley-Tukey), and the other direction undoes those steps
//! (Gentleman-Sande). Blocks are worked on depth first, so that all but the first stages run in cache.

use cuzk_field::{Field as _, Fr};
use rayon::prelude::*;

use crate::domain::{Domain, Error, bit_reversed_powers};

/// Which root a transform uses: w forward, w^-1 inverse. Neither scales by 1/n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Coefficients to values.
    Forward,
    /// Values to coefficients, times n.
    Inverse,
}

/// Blocks of up to this many elements (1 MiB) are transformed by one thread, in its cache.
const SEQUENTIAL: usize = 1 << 15;

/// Pairs of elements handled by one task of a parallel stage.
const STAGE_CHUNK: usize = 1 << 12;

impl Domain {
    /// Transforms `data`, in natural order, to bit-reversed order. Unscaled.
    ///
    /// # Panics
    /// Unless `data` has the domain's size.
    pub fn natural_to_bit_reversed(&self, data: &mut [Fr], direction: Direction) {
        assert_eq!(
            data.len(),
            self.size(),
            "a transform takes as many values as its domain"
        );
        split(data, self.twiddles(direction), 0);
    }

    /// Transforms `data`, in bit-reversed order, to natural order. Unscaled.
    ///
    /// # Panics
    /// Unless `data` has the domain's size.
    pub fn bit_reversed_to_natural(&self, data: &mut [Fr], direction: Direction) {
        assert_eq!(
            data.len(),
            self.size(),
            "a transform takes as many values as its domain"
        );
        // Undoing the steps of one root is the transform of its inverse.
        merge(data, self.twiddles(direction), 0);
    }

    /// Multiplies the element that stands for exponent i, in **bit-reversed** order, by
    /// `first * base^i`: the scaling by 1/n and a coset shift in one pass.
    ///
    /// # Panics
    /// Unless `data` has the domain's size.
    pub fn scale_bit_reversed(&self, data: &mut [Fr], base: Fr, first: Fr) {
        assert_eq!(
            data.len(),
            self.size(),
            "a transform takes as many values as its domain"
        );
        scale_bit_reversed(data, base, first);
    }

    /// Values on the domain, in natural order, to values on the coset `shift` times the domain, in
    /// natural order.
    ///
    /// # Errors
    /// [`Error::Length`] unless `data` has the domain's size.
    pub fn extend_to_coset(&self, data: &mut [Fr], shift: Fr) -> Result<(), Error> {
        self.check_len("the array", data.len())?;
        self.natural_to_bit_reversed(data, Direction::Inverse);
        self.scale_bit_reversed(data, shift, self.size_inverse());
        self.bit_reversed_to_natural(data, Direction::Forward);
        Ok(())
    }
}

/// Multiplies the element that stands for exponent i, in bit-reversed order, by `first * base^i`; of a power of two.
pub(crate) fn scale_bit_reversed(data: &mut [Fr], base: Fr, first: Fr) {
    // The low position bits are the high exponent bits: base^(2^high * rev(low)) from a small
    // table, base^(rev(high)) from the chunk.
    let log_n = data.len().trailing_zeros();
    let low_bits = log_n.min(STAGE_CHUNK.trailing_zeros());
    let high_bits = log_n - low_bits;
    let low_base = (0..high_bits).fold(base, |x, _| x.square());
    let low_powers = bit_reversed_powers(low_base, first, low_bits);
    let high_powers = bit_reversed_powers(base, Fr::ONE, high_bits);
    data.par_chunks_mut(1 << low_bits)
        .zip(&high_powers)
        .for_each(|(chunk, high)| {
            for (value, low) in chunk.iter_mut().zip(&low_powers) {
                *value *= *low * *high;
            }
        });
}

/// One stage and, depth first, those below it; `block` is the block's number in its stage.
fn split(data: &mut [Fr], twiddles: &[Fr], block: usize) {
    if data.len() <= SEQUENTIAL {
        split_sequential(data, twiddles, block);
        return;
    }
    let (low, high) = data.split_at_mut(data.len() / 2);
    low.par_chunks_mut(STAGE_CHUNK)
        .zip(high.par_chunks_mut(STAGE_CHUNK))
        .for_each(|(low, high)| split_block(low, high, twiddles, block));
    rayon::join(
        || split(low, twiddles, 2 * block),
        || split(high, twiddles, 2 * block + 1),
    );
}

fn split_sequential(data: &mut [Fr], twiddles: &[Fr], block: usize) {
    let (mut size, mut first) = (data.len(), block);
    while size > 1 {
        for (i, block) in data.chunks_exact_mut(size).enumerate() {
            let (low, high) = block.split_at_mut(size / 2);
            split_block(low, high, twiddles, first + i);
        }
        (size, first) = (size / 2, 2 * first);
    }
}

#[inline(always)]
fn split_block(low: &mut [Fr], high: &mut [Fr], twiddles: &[Fr], block: usize) {
    let pairs = low.iter_mut().zip(high);
    if block == 0 {
        // The twiddle is 1 in the first block of every stage: n of the n/2 log n products in all.
        for (a, b) in pairs {
            (*a, *b) = (*a + *b, *a - *b);
        }
        return;
    }
    let twiddle = twiddles[block];
    for (a, b) in pairs {
        let t = *b * twiddle;
        (*a, *b) = (*a + t, *a - t);
    }
}

/// The steps of [`split`] undone, each scaled by 2; the twiddles are the inverses of its.
fn merge(data: &mut [Fr], twiddles: &[Fr], block: usize) {
    if data.len() <= SEQUENTIAL {
        merge_sequential(data, twiddles, block);
        return;
    }
    let (low, high) = data.split_at_mut(data.len() / 2);
    rayon::join(
        || merge(low, twiddles, 2 * block),
        || merge(high, twiddles, 2 * block + 1),
    );
    low.par_chunks_mut(STAGE_CHUNK)
        .zip(high.par_chunks_mut(STAGE_CHUNK))
        .for_each(|(low, high)| merge_block(low, high, twiddles, block));
}

fn merge_sequential(data: &mut [Fr], twiddles: &[Fr], block: usize) {
    let len = data.len();
    let mut size = 2;
    while size <= len {
        let first = block * (len / size);
        for (i, block) in data.chunks_exact_mut(size).enumerate() {
            let (low, high) = block.split_at_mut(size / 2);
            merge_block(low, high, twiddles, first + i);
        }
        size *= 2;
    }
}

#[inline(always)]
fn merge_block(low: &mut [Fr], high: &mut [Fr], twiddles: &[Fr], block: usize) {
    let pairs = low.iter_mut().zip(high);
    if block == 0 {
        for (a, b) in pairs {
            (*a, *b) = (*a + *b, *a - *b);
        }
        return;
    }
    let twiddle = twiddles[block];
    for (a, b) in pairs {
        let difference = *a - *b;
        *a += *b;
        *b = difference * twiddle;
    }
}

/// Exchanges natural and bit-reversed order in place.
///
/// # Panics
/// Unless the length is a power of two.
pub fn bit_reverse_permute<T>(data: &mut [T]) {
    assert!(
        data.len().is_power_of_two(),
        "bit reversal is of a power of two"
    );
    let bits = data.len().trailing_zeros();
    if bits == 0 {
        return;
    }
    for i in 0..data.len() {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            data.swap(i, j);
        }
    }
}
