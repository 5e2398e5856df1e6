//! What can go wrong on the way to a sum on the device.

/// The result of this module's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything sums on the device can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory, streams, the device itself.
    #[error(transparent)]
    Memory(#[from] cuzk_gpu_mem::Error),

    /// A kernel, or its image.
    #[error(transparent)]
    Kernel(#[from] cuzk_kernels::Error),

    /// No plan works in so few bytes.
    #[error("{what} needs {needed} bytes of scratch on the device, and may have {limit}")]
    TooLittleScratch {
        /// What was planned.
        what: &'static str,
        /// The least that works.
        needed: usize,
        /// What there may be.
        limit: usize,
    },

    /// A size beyond what the kernels' indices reach.
    #[error("{what}: {found}, where {most} is the most")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The most.
        most: usize,
        /// What there was.
        found: usize,
    },

    /// An array of another length than the plan's.
    #[error("{what} has {found} elements, the plan is for {expected}")]
    Length {
        /// Which.
        what: &'static str,
        /// The plan's.
        expected: usize,
        /// What there was.
        found: usize,
    },

    /// A [`Pace`](super::Pace) that was asked whether to go on has said no.
    #[error("the sum was stopped")]
    Stopped,

    /// Bases were to be streamed by a plan for resident ones.
    #[error("the plan is for bases on the device, and has no batches")]
    NotStreamed,
}
