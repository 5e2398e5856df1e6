//! What happened when: host clocks and device events on one axis, in milliseconds since the engine's
//! start.
//!
//! [`Run`] is what `cuzk prove --timeline` writes and `cuzk timeline` reads. [`Report`] is what it
//! says; [`svg`] and [`chrome`] draw it.

mod analysis;
pub mod chrome;
mod cover;
mod log;
pub mod svg;

use std::collections::{BTreeMap, BTreeSet};

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
    /// What is wrong with it: no JSON of this format, a device twice, or times that make no sense.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let run: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if run.format != Self::FORMAT {
            return Err(format!(
                "expected the format {}, found {}",
                Self::FORMAT,
                run.format.escape_debug()
            ));
        }
        let mut numbers = BTreeSet::new();
        if let Some(device) = run.devices.iter().find(|d| !numbers.insert(d.number)) {
            return Err(format!("device {} is there twice", device.number));
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

    /// What was recorded, by device.
    fn by_device(&self) -> BTreeMap<usize, Spans<'_>> {
        let mut all: BTreeMap<usize, Spans<'_>> = BTreeMap::new();
        for span in &self.host {
            all.entry(span.device).or_default().host.push(span);
        }
        for span in &self.kernels {
            all.entry(span.device).or_default().kernels.push(span);
        }
        for span in &self.transfers {
            all.entry(span.device).or_default().transfers.push(span);
        }
        all
    }
}

/// What was recorded of one device.
#[derive(Default)]
struct Spans<'r> {
    host: Vec<&'r HostSpan>,
    kernels: Vec<&'r KernelSpan>,
    transfers: Vec<&'r TransferSpan>,
}

/// A name from a file, on one line.
fn on_one_line(name: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    name.chars().map(plain).collect()
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

#[cfg(test)]
mod tests {
    use cuzk_gpu_mem::WIPE;

    use super::analysis::tests::{kernel, phase, run as plain_run};
    use super::*;

    /// A small file with large numbers, or many spans on one stretch: neither overflows nor grows beyond
    /// the spans that there are.
    #[test]
    fn hostile_numbers_do_no_harm() {
        let last = HostSpan {
            worker: usize::MAX,
            job: u64::MAX,
            partition: usize::MAX,
            attempt: u32::MAX,
            ..phase(0, Phase::Compute, 0.0, 5e-324)
        };
        let mut run = plain_run(vec![last.clone(), last]);
        run.transfers = vec![
            TransferSpan {
                device: 0,
                stream: "s".to_owned(),
                label: "a\u{1b}[31m\nb".to_owned(),
                is_upload: true,
                bytes: u64::MAX,
                pinned: true,
                begin_ms: 0.0,
                end_ms: 5e-324,
            };
            2
        ];
        run.devices[0].name = "\u{1b}[31m\nd".to_owned();
        let run = Run::from_json(&serde_json::to_vec(&run).unwrap()).unwrap();
        let mut trace = Vec::new();
        chrome::write(&run, &mut trace).unwrap();
        let trace = String::from_utf8(trace).unwrap();
        let events: serde_json::Value = serde_json::from_str(&trace).unwrap();
        assert_eq!(events["traceEvents"].as_array().unwrap().len(), 9);
        let texts = [Report::of(&run).to_string(), svg::waterfall(&run), trace];
        for text in texts {
            assert!(text.len() < 10_000, "{} bytes", text.len());
            assert!(!text.contains('\u{1b}'), "{text}");
        }

        let mut run = plain_run(vec![phase(0, Phase::Compute, 0.0, 1.0)]);
        for _ in 0..20_000 {
            run.kernels.push(kernel(0.0, 1.0));
            run.kernels.push(KernelSpan {
                label: WIPE.to_owned(),
                ..kernel(0.25, 0.5)
            });
        }
        let device = &Report::of(&run).devices[0];
        assert_eq!((device.busy_ms, device.kernel_sum_ms), (0.75, 15_000.0));

        run.devices.push(run.devices[0].clone());
        let error = Run::from_json(&serde_json::to_vec(&run).unwrap()).unwrap_err();
        assert_eq!(error, "device 0 is there twice");
    }
}
