//! Domains: the n-th roots of unity of one family, with their tables.

use cuzk_field::{Field as _, Fr, RootGenerator};

use crate::transform::Direction;

/// Why there is no such domain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The size is not a power of two from 1 to 2^32.
    #[error("a domain has a power of two of elements, at most 2^32, not {size}")]
    Size {
        /// The size asked for.
        size: usize,
    },
    /// The size is larger than the plan's, or than any plan's.
    #[error("the plan is for transforms of up to 2^{max_log_n} elements, not 2^{log_n}")]
    TooLarge {
        /// log2 of the size asked for.
        log_n: u32,
        /// log2 of the largest.
        max_log_n: u32,
    },
    /// An array has not the domain's length, or is not of whole transforms.
    #[error("{found} values do not fill a domain of {expected}")]
    Length {
        /// The domain's size.
        expected: usize,
        /// Values given.
        found: usize,
    },
}

/// The n-th roots of unity of one family.
#[derive(Clone, Debug)]
pub struct Domain {
    log_n: u32,
    root_generator: RootGenerator,
    root: Fr,
    root_inverse: Fr,
    size_inverse: Fr,
    /// `root^bit_reverse(i)` for i below n/2, bits reversed within log n - 1; the first n/2^k of
    /// them serve a domain of n/2^(k-1) as well.
    forward: Vec<Fr>,
    /// The same for the inverse root.
    inverse: Vec<Fr>,
}

impl Domain {
    /// The domain of `size` elements; tables of 32 `size` bytes are made.
    ///
    /// # Errors
    /// [`Error::Size`] unless `size` is a power of two up to 2^32.
    pub fn new(size: usize, root_generator: RootGenerator) -> Result<Self, Error> {
        if !size.is_power_of_two() {
            return Err(Error::Size { size });
        }
        let log_n = size.trailing_zeros();
        let root = root_generator
            .root_of_unity(log_n)
            .ok_or(Error::Size { size })?;
        // Roots of unity and powers of two are not zero.
        let root_inverse = root.inverse().ok_or(Error::Size { size })?;
        let size_inverse = Fr::from(size as u64)
            .inverse()
            .ok_or(Error::Size { size })?;
        Ok(Self {
            log_n,
            root_generator,
            root,
            root_inverse,
            size_inverse,
            forward: bit_reversed_powers(root, Fr::ONE, log_n.saturating_sub(1)),
            inverse: bit_reversed_powers(root_inverse, Fr::ONE, log_n.saturating_sub(1)),
        })
    }

    /// n.
    pub fn size(&self) -> usize {
        1 << self.log_n
    }

    /// log2 n.
    pub fn log_size(&self) -> u32 {
        self.log_n
    }

    /// The family of the roots.
    pub fn root_generator(&self) -> RootGenerator {
        self.root_generator
    }

    /// The primitive n-th root of unity w.
    pub fn root(&self) -> Fr {
        self.root
    }

    /// w^-1.
    pub fn root_inverse(&self) -> Fr {
        self.root_inverse
    }

    /// 1/n.
    pub fn size_inverse(&self) -> Fr {
        self.size_inverse
    }

    /// A primitive 2n-th root of unity whose square is w: the shift of the odd coset.
    ///
    /// # Errors
    /// [`Error::Size`] for n = 2^32, whose 2n-th roots are not in the field.
    pub fn odd_coset_shift(&self) -> Result<Fr, Error> {
        self.root_generator
            .root_of_unity(self.log_n + 1)
            .ok_or(Error::Size { size: self.size() })
    }

    pub(crate) fn twiddles(&self, direction: Direction) -> &[Fr] {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Inverse => &self.inverse,
        }
    }

    pub(crate) fn check_len(&self, len: usize) -> Result<(), Error> {
        if len == self.size() {
            Ok(())
        } else {
            Err(Error::Length {
                expected: self.size(),
                found: len,
            })
        }
    }
}

/// `first * base^bit_reverse(i)` for i below 2^bits, bits reversed within `bits`.
pub(crate) fn bit_reversed_powers(base: Fr, first: Fr, bits: u32) -> Vec<Fr> {
    // Position bit s stands for exponent bit `bits - 1 - s`.
    let mut squares: Vec<Fr> = std::iter::successors(Some(base), |x| Some(x.square()))
        .take(bits as usize)
        .collect();
    let mut powers = Vec::with_capacity(1 << bits);
    powers.push(first);
    while let Some(step) = squares.pop() {
        for i in 0..powers.len() {
            powers.push(powers[i] * step);
        }
    }
    powers
}
