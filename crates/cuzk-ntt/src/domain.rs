//! Domains: the n-th roots of unity of one family, with their tables.

use std::fmt;

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
    /// An array has not the domain's length, or is not of whole transforms; or there are more rows than that.
    #[error("{what}: {found} elements, expected {expected}")]
    Length {
        /// Which array.
        what: &'static str,
        /// What it should have been; the next multiple, for a batch.
        expected: usize,
        /// What it was.
        found: usize,
    },
    /// The system has no memory for a domain's tables.
    #[error("no memory for the tables of a domain of {size} elements: {bytes} bytes")]
    Memory {
        /// The size asked for.
        size: usize,
        /// Bytes of its tables.
        bytes: u64,
    },
}

/// The n-th roots of unity of one family.
#[derive(Clone)]
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
    /// [`Error::Size`] unless `size` is a power of two up to 2^32; [`Error::Memory`].
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
        let table = |root| {
            let bits = log_n.saturating_sub(1);
            let mut powers = Vec::new();
            let room = powers.try_reserve_exact(1 << bits);
            room.map_err(|_| Error::Memory {
                size,
                bytes: 32 * size as u64,
            })?;
            push_bit_reversed_powers(&mut powers, root, Fr::ONE, bits);
            Ok(powers)
        };
        Ok(Self {
            log_n,
            root_generator,
            root,
            root_inverse,
            size_inverse,
            forward: table(root)?,
            inverse: table(root_inverse)?,
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

    /// `what` has as many elements as the domain.
    pub(crate) fn check_len(&self, what: &'static str, found: usize) -> Result<(), Error> {
        check_len(what, self.size(), found)
    }
}

/// The tables have 32 bytes for each element.
impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("size", &self.size())
            .field("root_generator", &self.root_generator)
            .finish_non_exhaustive()
    }
}

pub(crate) fn check_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Length {
        what,
        expected,
        found,
    })
}

/// `first * base^bit_reverse(i)` for i below 2^bits, bits reversed within `bits`.
pub(crate) fn bit_reversed_powers(base: Fr, first: Fr, bits: u32) -> Vec<Fr> {
    let mut powers = Vec::with_capacity(1 << bits);
    push_bit_reversed_powers(&mut powers, base, first, bits);
    powers
}

/// The same, into an empty list.
fn push_bit_reversed_powers(powers: &mut Vec<Fr>, base: Fr, first: Fr, bits: u32) {
    // Position bit s stands for exponent bit `bits - 1 - s`.
    let mut squares: Vec<Fr> = std::iter::successors(Some(base), |x| Some(x.square()))
        .take(bits as usize)
        .collect();
    powers.push(first);
    while let Some(step) = squares.pop() {
        for i in 0..powers.len() {
            powers.push(powers[i] * step);
        }
    }
}
