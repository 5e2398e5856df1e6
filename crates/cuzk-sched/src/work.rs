//! What the scheduler drives: work that comes in partitions, each done in three phases.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cuzk_gpu_mem::{
    Admission, Compute, Device, Footprint, OpenSpan, Recorder, StagingRequest, Stream,
};

use crate::message::{PartId, Phase};
use crate::timeline::{HostSpan, Log};

/// A kind of work: what a proof is to the prover of this crate. One value serves any number of
/// partitions at once; it holds what they share, as the key.
pub trait Work: Send + Sync {
    /// What one partition is made from: a witness, or where to find it.
    type Part: Send + Sync;
    /// What can be made of it before the device has room.
    type Prepared: Send;
    /// What staging leaves for computing.
    type Staged: Send;
    /// What computing leaves for finishing: host data.
    type Computed: Send;
    /// The result of a partition.
    type Output: Send;
    /// What can go wrong.
    type Error: std::error::Error + Send + Sync + From<cuzk_gpu_mem::Error> + 'static;

    /// What the partition needs at `place`; `None` if it cannot be done there. Cheap: it is asked
    /// for each device when a job is handed in. What is known only when the partition has been prepared is an
    /// estimate: the least for device memory, the most for the host's.
    fn demand(&self, part: &Self::Part, place: &Place) -> Option<Demand>;

    /// What can be done before the device has room for the partition, and asks nothing of it: a witness is loaded and
    /// packed. The engine keeps the result until there is room; it is of use on this device only.
    ///
    /// # Errors
    /// See [`Fault`], here and below: its variant decides what the engine does next.
    fn prepare(
        &self,
        part: &Self::Part,
        context: &Context<'_>,
    ) -> Result<Preparation<Self::Prepared>, Fault<Self::Error>>;

    /// Brings the partition to the device, while another may be computing there.
    ///
    /// # Errors
    /// See [`Fault`].
    fn stage(
        &self,
        part: &Self::Part,
        prepared: Self::Prepared,
        context: &Context<'_>,
        staging: Staging<'_>,
    ) -> Result<Self::Staged, Fault<Self::Error>>;

    /// Computes: on a GPU nobody else does meanwhile.
    ///
    /// # Errors
    /// See [`Fault`].
    fn compute(
        &self,
        part: &Self::Part,
        staged: Self::Staged,
        context: &Context<'_>,
        section: Section<'_, '_>,
    ) -> Result<Self::Computed, Fault<Self::Error>>;

    /// What is left to do on the host.
    ///
    /// # Errors
    /// See [`Fault`].
    fn finish(
        &self,
        part: &Self::Part,
        computed: Self::Computed,
        context: &Context<'_>,
    ) -> Result<Self::Output, Fault<Self::Error>>;

    /// Checks a result independently of how it was made. No output leaves the engine without it.
    ///
    /// # Errors
    /// [`Fault::Wrong`] if it is not what it should be.
    fn verify(
        &self,
        part: &Self::Part,
        output: &mut Self::Output,
        context: &Context<'_>,
    ) -> Result<(), Fault<Self::Error>>;
}

/// A partition before it is brought to its device.
#[derive(Clone, Debug)]
pub struct Preparation<P> {
    /// What has been made of it.
    pub prepared: P,
    /// What it needs of the device, where [`Work::demand`] could only estimate that; of its figures those for device
    /// memory count.
    pub demand: Option<Demand>,
}

/// What a partition needs at some place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Buffers to fill before computing, in order of preference; what does not fit beside the
    /// section that computes is filled inside its own.
    pub staging: Vec<StagingRequest>,
    /// Device memory for computing, besides the staged buffers.
    pub compute_bytes: u64,
    /// Page-locked host memory, from staging until the end.
    pub pinned_bytes: u64,
    /// Ordinary host memory, from staging until the end.
    pub host_bytes: u64,
}

impl Demand {
    /// All of it, by kind of memory.
    pub fn footprint(&self) -> Footprint {
        let staged = self
            .staging
            .iter()
            .fold(0_u64, |sum, request| sum.saturating_add(request.bytes));
        Footprint {
            device: staged.saturating_add(self.compute_bytes),
            pinned: self.pinned_bytes,
            host: self.host_bytes,
        }
    }
}

/// Where partitions are done.
#[derive(Clone, Debug)]
pub enum Place {
    /// The host's processors, on the thread pool that the caller's code uses.
    Cpu,
    /// A GPU, or the emulated one.
    Device(Device),
}

impl Place {
    /// For logs and results.
    pub fn name(&self) -> String {
        match self {
            Self::Cpu => "cpu".to_owned(),
            Self::Device(device) => {
                format!("cuda:{} {}", device.info().ordinal, device.info().name)
            }
        }
    }

    /// Device memory that jobs may commit there; a CPU has none.
    pub(crate) fn device_bytes(&self) -> u64 {
        match self {
            Self::Cpu => 0,
            Self::Device(device) => device.budget().state().limit,
        }
    }
}

/// Why a phase did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault<E> {
    /// The partition itself is at fault: no device would do better. Never tried again.
    Input(E),
    /// The result failed its verification. Tried again, first on the same device.
    Wrong(E),
    /// The device failed. Tried again there, or elsewhere if it is lost.
    Device(E),
    /// Memory that had been admitted could not be had: other processes have it. What was staged is
    /// let go, and the partition is admitted again later.
    Memory(E),
    /// [`Context::check`] said to stop.
    Stopped,
}

impl<E> From<Stopped> for Fault<E> {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

/// A fault of the device layer by what can be done about it: out of memory is waited for, all else
/// is the device's.
impl<E: From<cuzk_gpu_mem::Error>> From<cuzk_gpu_mem::Error> for Fault<E> {
    fn from(error: cuzk_gpu_mem::Error) -> Self {
        match error {
            error if error.is_out_of_memory() => Self::Memory(error.into()),
            error => Self::Device(error.into()),
        }
    }
}

/// The partition is no longer wanted: cancelled, past its deadline, or taken from this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Where the staged data go.
#[derive(Debug)]
pub enum Staging<'a> {
    /// Host memory.
    Cpu,
    /// Device memory.
    Device {
        /// The admission: [`Admission::stage`] gives the buffers that it promised.
        admission: &'a mut Admission,
        /// The worker's own stream for uploads.
        upload: &'a Stream,
    },
}

/// Where the partition computes.
#[derive(Clone, Copy, Debug)]
pub enum Section<'a, 'cx> {
    /// On the host.
    Cpu,
    /// In a compute section of the device.
    Device(&'a Compute<'cx>),
}

/// Stops the attempts of a job, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a phase knows about where it runs.
pub struct Context<'a> {
    pub(crate) part: PartId,
    pub(crate) attempt: u32,
    pub(crate) device: usize,
    pub(crate) worker: usize,
    pub(crate) place: &'a Place,
    pub(crate) stop: &'a [Arc<Flag>; 3],
    pub(crate) keep_device_bytes: u64,
    pub(crate) verify: bool,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) log: Option<&'a Log>,
}

impl Context<'_> {
    /// The job and the number of the partition in it.
    pub fn part(&self) -> PartId {
        self.part
    }

    /// How often it has been tried before.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The worker's number in the engine.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Whether results are to be verified.
    pub fn verifies(&self) -> bool {
        self.verify
    }

    /// Where this runs.
    pub fn place(&self) -> &Place {
        self.place
    }

    /// Device memory that this partition must leave to others: what it says it needs is to be that much less than the
    /// device has room for.
    pub fn keep_device_bytes(&self) -> u64 {
        self.keep_device_bytes
    }

    /// Whether to stop. Long phases ask between kernels, or a few times a second.
    ///
    /// # Errors
    /// [`Stopped`], which `?` turns into a [`Fault`].
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_stopped() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    /// The same as a question.
    pub fn is_stopped(&self) -> bool {
        self.stop.iter().any(|flag| flag.is_set())
    }

    /// A flag for code that asks by itself, as a prover between its stages.
    pub fn stop_check(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let flags = self.stop.clone();
        move || flags.iter().any(|flag| flag.is_set())
    }

    /// The recorder of this device, where a timeline is wanted: transfers are recorded into it, and
    /// spans around launch groups, which count as time in which kernels ran, and as this worker's.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Opens a span around launches on `stream`. To be ended with [`OpenSpan::end`].
    pub fn device_span(&self, label: &'static str, stream: &Stream) -> Option<OpenSpan> {
        self.recorder.as_ref()?.span(label, stream).ok()
    }

    /// Runs `work` as a stage of its own in the timeline.
    pub fn span<T>(&self, label: &'static str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        self.note(label, begun, Instant::now());
        result
    }

    /// Puts a stage into the timeline that has been timed elsewhere.
    pub fn note(&self, label: &'static str, begun: Instant, ended: Instant) {
        self.write(label, None, begun, ended);
    }

    pub(crate) fn note_phase(&self, label: &str, phase: Phase, begun: Instant) {
        self.write(label, Some(phase), begun, Instant::now());
    }

    fn write(&self, label: &str, phase: Option<Phase>, begun: Instant, ended: Instant) {
        let Some(log) = self.log else { return };
        log.push(HostSpan {
            device: self.device,
            worker: self.worker,
            job: self.part.job.0,
            partition: self.part.index,
            attempt: self.attempt,
            label: label.to_owned(),
            phase,
            begin_ms: log.at(begun),
            end_ms: log.at(ended),
        });
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on worker {}", self.part, self.worker)
    }
}
