//! What the threads of an engine say to each other, and what the engine says to its users.
//!
//! Every queue is bounded. The engine's thread never waits for a full one: a worker is sent to only
//! while it is idle, a job's reply has its own place. Others may wait for the engine's.

use std::fmt;
use std::sync::Arc;

use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};

use crate::error::JobError;
use crate::job::{Finished, Shared};
use crate::ledger::{Hold, Pass};
use crate::options::JobOptions;
use crate::queue::Order;
use crate::work::{Demand, Fault, Flag, Work};

/// A job's number, given by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub(crate) u64);

impl JobId {
    /// As a number.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", self.0)
    }
}

/// A partition: its job, and its number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    /// The job.
    pub job: JobId,
    /// Counted from 0.
    pub index: usize,
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, partition {}", self.job, self.index)
    }
}

/// The phases of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Admission and uploads; others may compute.
    Stage,
    /// Staged, and another computes.
    Wait,
    /// Under the device's permit.
    Compute,
    /// On the host, verification included.
    Finish,
}

impl Phase {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Wait => "wait",
            Self::Compute => "compute",
            Self::Finish => "finish",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A partition enters a phase.
    Phase {
        /// Which.
        part: PartId,
        /// The device's number in [`Options::devices`](crate::Options::devices).
        device: usize,
        /// The phase.
        phase: Phase,
    },
    /// A partition is done and verified.
    Done {
        /// Which.
        part: PartId,
        /// Partitions done so far.
        done: usize,
        /// Partitions of the job.
        of: usize,
    },
    /// A partition failed and will be tried again.
    Retry {
        /// Which.
        part: PartId,
        /// The device it failed on.
        device: usize,
        /// Why.
        why: String,
    },
    /// The job has ended; its handle has the result.
    Ended {
        /// Which.
        job: JobId,
        /// "done", "failed" or "cancelled".
        how: &'static str,
    },
}

/// To the engine.
pub(crate) enum ToEngine<W: Work> {
    Submit(Box<NewJob<W>>),
    Report(Report<W>),
    /// Give a quarantined device work again.
    Reinstate {
        device: usize,
        reply: Sender<bool>,
    },
    /// End when nothing is left to do; `cancel` sees to that.
    Stop {
        cancel: bool,
    },
}

/// Where a job's end is told, once.
pub(crate) type Reply<W> =
    Sender<Result<Finished<<W as Work>::Output>, JobError<<W as Work>::Error>>>;

/// A job as its submitter has prepared it.
pub(crate) struct NewJob<W: Work> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) work: Arc<W>,
    pub(crate) parts: Vec<NewPart<W>>,
    pub(crate) options: JobOptions,
    pub(crate) reply: Reply<W>,
    pub(crate) pass: Pass,
}

pub(crate) struct NewPart<W: Work> {
    pub(crate) input: Arc<W::Part>,
    /// For each device.
    pub(crate) demands: Vec<Option<Arc<Demand>>>,
}

/// To a worker.
pub(crate) enum ToWorker<W: Work> {
    Run(Box<Task<W>>),
    End,
}

/// One attempt at one partition.
pub(crate) struct Task<W: Work> {
    pub(crate) id: PartId,
    pub(crate) order: Order,
    pub(crate) attempt: u32,
    pub(crate) work: Arc<W>,
    pub(crate) input: Arc<W::Part>,
    pub(crate) demand: Arc<Demand>,
    /// From an attempt that found no room.
    pub(crate) prepared: Option<W::Prepared>,
    /// Device memory that this attempt must leave free.
    pub(crate) keep_device_bytes: u64,
    /// The job's, the attempt's, the device's.
    pub(crate) stop: [Arc<Flag>; 3],
    /// Given back with the task, before the report.
    pub(crate) hold: Hold,
    pub(crate) verify: bool,
}

/// A partition that has been prepared for a device and waits for its memory.
pub(crate) struct Waiting<W: Work> {
    pub(crate) prepared: W::Prepared,
    pub(crate) demand: Arc<Demand>,
    pub(crate) hold: Hold,
}

/// From a worker.
pub(crate) enum Report<W: Work> {
    Began { worker: usize, phase: Phase },
    Ended { worker: usize, outcome: Outcome<W> },
}

/// How an attempt ended. Everything that it held has been let go, but for what waits for memory.
pub(crate) enum Outcome<W: Work> {
    Done(W::Output),
    /// The device has no room yet; what has been prepared is kept, with its hold on host memory.
    NotAdmitted(cuzk_gpu_mem::Error, Box<Waiting<W>>),
    Fault(Fault<W::Error>),
    Panicked(Phase, String),
}
