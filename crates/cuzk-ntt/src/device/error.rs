//! Why transforms on a device are refused.

use cuzk_kernels::ntt::Points;

use crate::transform::Direction;

/// Why a transform on a device was not begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory, launches, the device itself.
    #[error(transparent)]
    Kernels(#[from] cuzk_kernels::Error),

    /// There is no room for the tables.
    #[error("the tables need {needed} bytes, and the device has {free} free")]
    TooLittleMemory {
        /// Bytes of all tables.
        needed: u64,
        /// What there is, within the limit of the device's ledger.
        free: u64,
    },

    /// The plan was made without these tables.
    #[error("the plan has no tables for {direction:?} transforms with values on {points:?}")]
    NotPlanned {
        /// The direction asked for.
        direction: Direction,
        /// Where the values are.
        points: Points,
    },

    /// The size is larger than the plan's.
    #[error("the plan is for transforms of up to 2^{max_log_n} elements, not 2^{log_n}")]
    Size {
        /// log2 of the size asked for.
        log_n: u32,
        /// log2 of the largest.
        max_log_n: u32,
    },

    /// An array does not hold whole transforms; or there are more rows than that.
    #[error("{what}: {found} elements, expected {expected}")]
    Length {
        /// Which array.
        what: &'static str,
        /// What it should have been; the next multiple, for a batch.
        expected: usize,
        /// What it was.
        found: usize,
    },
}

impl From<cuzk_gpu_mem::Error> for Error {
    fn from(error: cuzk_gpu_mem::Error) -> Self {
        Self::Kernels(error.into())
    }
}

/// The result of this module's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An array of `found` elements holds transforms of 2^`log_n`.
pub(super) fn check_len(log_n: u32, found: usize) -> Result<()> {
    let unit = 1_usize << log_n.min(usize::BITS - 2);
    if found.is_multiple_of(unit) {
        return Ok(());
    }
    Err(Error::Length {
        what: "the array",
        expected: found.next_multiple_of(unit),
        found,
    })
}
