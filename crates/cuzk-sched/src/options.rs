//! How an engine and its jobs are set up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_gpu_mem::Footprint;

use crate::message::{Event, Phase};
use crate::work::Place;

/// Which job goes first. A job of a higher class overtakes those of lower ones that were handed in
/// up to [`Options::ageing`] before it for each class between them, and no others: so nothing
/// starves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// When there is nothing else to do.
    Low,
    /// As most jobs.
    #[default]
    Normal,
    /// Before those.
    High,
    /// Before all; where it is small, in the lane reserved for such ([`Options::lane`]).
    Urgent,
}

impl Priority {
    /// Classes below [`Priority::Urgent`].
    pub(crate) fn steps_below_urgent(self) -> u32 {
        match self {
            Self::Low => 3,
            Self::Normal => 2,
            Self::High => 1,
            Self::Urgent => 0,
        }
    }
}

/// What to do when a device fails or a result does not verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeviceError {
    /// The job fails.
    Fail,
    /// Once more on the same device, then on another one of the same rank.
    #[default]
    Retry,
    /// As `Retry`, then on a fallback device: the CPU.
    Cpu,
}

/// Whether a device takes work from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It does.
    #[default]
    Primary,
    /// Only what cannot be done elsewhere, or has failed there; [`OnDeviceError::Cpu`] allows it.
    Fallback,
}

/// One device of an engine.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Where.
    pub place: Place,
    /// When.
    pub role: Role,
    /// Worker threads, each with one partition in hand; `None`: [`Options::workers_per_device`].
    pub workers: Option<usize>,
}

impl DeviceOptions {
    /// A device that takes work from the start.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            role: Role::Primary,
            workers: None,
        }
    }

    /// A device for what fails elsewhere.
    pub fn fallback(place: Place) -> Self {
        Self {
            role: Role::Fallback,
            ..Self::new(place)
        }
    }
}

/// A lane for small urgent jobs: on each device a worker of its own, and memory that others leave
/// free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// What a partition may need at most to be small.
    pub most: Footprint,
}

/// The longest that each phase may take; `None` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watchdog {
    /// Staging.
    pub stage: Option<Duration>,
    /// Computing, from the moment that the permit is had.
    pub compute: Option<Duration>,
    /// Finishing and verifying.
    pub finish: Option<Duration>,
}

impl Watchdog {
    pub(crate) fn limit(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Stage => self.stage,
            // Its turn is somebody else's time.
            Phase::Wait => None,
            Phase::Compute => self.compute,
            Phase::Finish => self.finish,
        }
    }
}

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The devices.
    pub devices: Vec<DeviceOptions>,
    /// Worker threads for each device that does not say otherwise.
    pub workers_per_device: usize,
    /// Jobs worked on at once; a job of a higher class may begin beside them.
    pub concurrency: usize,
    /// Jobs taken in, those worked on included. More are refused as busy.
    pub jobs_max: usize,
    /// Host memory that partitions in flight may hold: `pinned` and `host`.
    pub host_limit: Footprint,
    /// What to do about failures.
    pub on_device_error: OnDeviceError,
    /// How often a partition is tried in all.
    pub attempts_max: u32,
    /// Failures in a row, or results proved wrong elsewhere, after which a device is given no more
    /// work.
    pub strikes_max: u32,
    /// How much later a job of the next higher class may come and still go first.
    pub ageing: Duration,
    /// A lane for small urgent jobs.
    pub lane: Option<Lane>,
    /// Limits on each phase.
    pub watchdog: Watchdog,
    /// How long a partition waits for device memory that nobody in this engine holds.
    pub memory_patience: Duration,
    /// Whether results are verified. Only for callers who do so themselves.
    pub verify: bool,
    /// Whether to keep a timeline.
    pub timeline: bool,
}

impl Options {
    /// The defaults over these devices.
    pub fn new(devices: impl IntoIterator<Item = DeviceOptions>) -> Self {
        Self {
            devices: devices.into_iter().collect(),
            workers_per_device: 2,
            concurrency: 2,
            jobs_max: 64,
            host_limit: Footprint {
                device: u64::MAX,
                pinned: u64::MAX,
                host: u64::MAX,
            },
            on_device_error: OnDeviceError::Retry,
            attempts_max: 3,
            strikes_max: 3,
            ageing: Duration::from_secs(30),
            lane: None,
            watchdog: Watchdog::default(),
            memory_patience: Duration::from_secs(60),
            verify: true,
            timeline: false,
        }
    }
}

/// Told of everything that happens to a job, on the engine's thread: it holds everything up for as
/// long as it takes, and must not wait for the engine.
#[derive(Clone)]
pub struct Observer(pub(crate) Arc<dyn Fn(&Event) + Send + Sync>);

impl Observer {
    /// An observer.
    pub fn new(observe: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer(..)")
    }
}

/// How a job is to be done.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// When its turn is.
    pub priority: Priority,
    /// When its result is of no use any more.
    pub deadline: Option<Instant>,
    /// Who is told of its progress.
    pub observer: Option<Observer>,
}
