//! Why a job is not taken in, and why one has no result.

use cuzk_gpu_mem::Footprint;

use crate::message::Phase;

/// Why a job is not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// Back-pressure: come again when a job has ended.
    #[error("busy: {jobs} jobs are taken in already, which is the limit")]
    Busy {
        /// The limit.
        jobs: usize,
    },
    /// The engine takes no more jobs.
    #[error("the engine is shutting down")]
    ShuttingDown,
    /// A job without partitions.
    #[error("a job has at least one partition")]
    Empty,
    /// No device will ever have room for it, or the host has not.
    #[error(
        "partition {partition} fits on no device: it needs {needed}; the largest device allows \
         {largest_device_bytes} bytes, the host pinned {} and other {} bytes",
        host.pinned, host.host
    )]
    TooLarge {
        /// Which partition.
        partition: usize,
        /// What it needs, where it needs least device memory.
        needed: Footprint,
        /// What the largest device allows.
        largest_device_bytes: u64,
        /// What the host allows.
        host: Footprint,
    },
    /// No device can do this kind of work.
    #[error("partition {partition} can be done on none of the devices")]
    NoDevice {
        /// Which partition.
        partition: usize,
    },
}

/// Why a job has no result. One of its partitions is named where one is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError<E> {
    /// A partition failed for good.
    #[error("partition {partition} failed after {attempts} attempts: {error}")]
    Failed {
        /// Which partition.
        partition: usize,
        /// How often it was tried.
        attempts: u32,
        /// What went wrong the last time.
        error: E,
    },
    /// A phase panicked: a bug. Other jobs are not affected.
    #[error("partition {partition} panicked while in {phase}: {what}")]
    Panicked {
        /// Which partition.
        partition: usize,
        /// In which phase.
        phase: Phase,
        /// What the panic said.
        what: String,
    },
    /// A phase took longer than its watchdog allows.
    #[error("partition {partition} took too long in {phase}, in {attempts} attempts")]
    TimedOut {
        /// Which partition.
        partition: usize,
        /// In which phase.
        phase: Phase,
        /// How often it was tried.
        attempts: u32,
    },
    /// Device memory that others hold did not come back.
    #[error("partition {partition} found no device memory: {error}")]
    OutOfMemory {
        /// Which partition.
        partition: usize,
        /// What the device said.
        error: E,
    },
    /// No device is left that could do it.
    #[error("no device is left for partition {partition}: the last one was taken out of service")]
    NoDevice {
        /// Which partition.
        partition: usize,
    },
    /// The deadline passed.
    #[error("the deadline has passed")]
    Deadline,
    /// Somebody cancelled it, or dropped its handle.
    #[error("cancelled")]
    Cancelled,
    /// The engine went down first.
    #[error("the engine was shut down")]
    ShutDown,
}

impl<E> JobError<E> {
    /// "failed" or "cancelled": nobody is to blame for the latter.
    pub fn how(&self) -> &'static str {
        match self {
            Self::Deadline | Self::Cancelled | Self::ShutDown => "cancelled",
            _ => "failed",
        }
    }
}
