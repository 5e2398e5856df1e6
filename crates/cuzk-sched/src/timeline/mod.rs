//! What happened when: host clocks and device events on one axis, in milliseconds since the engine's
//! start.
//!
//! [`Run`] is what `cuzk prove --timeline` writes and `cuzk timeline` reads. [`Report`] is what it
//! says; [`svg`] and [`chrome`] draw it.

mod analysis;
pub mod chrome;
mod log;
pub mod svg;

use serde::{Deserialize, Serialize};

pub(crate) use self::analysis::NOT_ADMITTED;
pub use self::analysis::{Cause, DeviceReport, Report, Stall};
pub(crate) use self::log::Log;
use crate::message::Phase;

/// A run of an engine, with everything that was recorded. No value of a witness is in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// [`Run::FORMAT`].
    pub format: String,
    /// The devices, by number.
    pub devices: Vec<DeviceFacts>,
    /// What workers did, by the host's clock.
    pub host: Vec<HostSpan>,
    /// Groups of launches, by the devices' clocks.
    pub kernels: Vec<KernelSpan>,
    /// Copies over the bus, by the devices' clocks.
    pub transfers: Vec<TransferSpan>,
    /// What could not be recorded.
    pub notes: Vec<String>,
}

impl Run {
    /// The name and version of the format.
    pub const FORMAT: &str = "cuzk-timeline-1";

    /// Reads what [`serde_json`] wrote.
    ///
    /// # Errors
    /// What is wrong with it: no JSON of this format, or times that make no sense.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let run: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if run.format != Self::FORMAT {
            return Err(format!(
                "expected the format {}, found {}",
                Self::FORMAT,
                run.format.escape_debug()
            ));
        }
        let host = run.host.iter().map(|s| (s.begin_ms, s.end_ms));
        let kernels = run.kernels.iter().map(|s| (s.begin_ms, s.end_ms));
        let copies = run.transfers.iter().map(|s| (s.begin_ms, s.end_ms));
        let is_time = |ms: f64| ms.abs() <= LONGEST_MS;
        let mut spans = host.chain(kernels).chain(copies);
        match spans.position(|(begin, end)| !(is_time(begin) && is_time(end))) {
            Some(index) => Err(format!("span {index} is at no time within ten years")),
            None => Ok(run),
        }
    }
}

/// Ten years.
const LONGEST_MS: f64 = 10.0 * 365.0 * 86_400e3;

/// A device of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Its number.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Whether it runs kernels; a CPU's time of computing is the computing phase itself.
    pub is_gpu: bool,
    /// Its workers.
    pub workers: usize,
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSpan {
    /// The device's number.
    pub device: usize,
    /// The worker's number in the engine.
    pub worker: usize,
    /// The job's number.
    pub job: u64,
    /// The partition's number in the job.
    pub partition: usize,
    /// How often it had been tried before.
    pub attempt: u32,
    /// A phase's name, or that of a stage within one.
    pub label: String,
    /// The phase, if this is one.
    pub phase: Option<Phase>,
    /// Since the engine's start.
    pub begin_ms: f64,
    /// Since the engine's start.
    pub end_ms: f64,
}

/// A group of launches, or, with the label [`cuzk_gpu_mem::WIPE`], memory being overwritten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelSpan {
    /// The device's number.
    pub device: usize,
    /// The worker's number.
    pub worker: usize,
    /// The stream's name.
    pub stream: String,
    /// What was launched.
    pub label: String,
    /// Since the engine's start.
    pub begin_ms: f64,
    /// Since the engine's start.
    pub end_ms: f64,
}

/// A copy over the bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferSpan {
    /// The device's number.
    pub device: usize,
    /// The stream's name.
    pub stream: String,
    /// The device buffer.
    pub label: String,
    /// To the device.
    pub is_upload: bool,
    /// How much.
    pub bytes: u64,
    /// Whether from or to page-locked memory.
    pub pinned: bool,
    /// Since the engine's start.
    pub begin_ms: f64,
    /// Since the engine's start.
    pub end_ms: f64,
}
