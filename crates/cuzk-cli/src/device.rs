//! Which device proves.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use cuzk_gpu_mem::{Bytes, Device, DeviceInfo, Error as Memory, Selector, Settings, Unavailable};
use cuzk_groth16::device::Gpu;
use serde::Serialize;

use crate::args::ResourceArgs;
use crate::exit::Failure;
use crate::report::millis;

/// `--device`, and how it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeviceChoice {
    text: String,
    wanted: Wanted,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Wanted {
    /// A GPU if one works, else the CPU.
    Auto,
    /// The CPU; nothing else is touched.
    Cpu,
    /// A GPU, the one named if one is.
    Cuda(Option<Selector>),
    /// Every GPU there is.
    All,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = match text {
            "auto" => Wanted::Auto,
            "cpu" => Wanted::Cpu,
            "cuda" => Wanted::Cuda(None),
            "cuda:all" => Wanted::All,
            _ => {
                let name = text
                    .strip_prefix("cuda:")
                    .ok_or("a device is auto, cpu, cuda or cuda:NAME")?;
                let selector = name.parse().map_err(|error: Unavailable| error.to_string());
                Wanted::Cuda(Some(selector?))
            }
        };
        Ok(Self {
            text: text.to_owned(),
            wanted,
        })
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The device that was taken, for the result.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct DeviceUsed {
    /// What was asked for.
    pub(crate) requested: String,
    /// What proved.
    pub(crate) used: String,
    /// Why.
    pub(crate) reason: String,
    /// Host threads.
    pub(crate) threads: usize,
    /// How long it took to open the GPUs, load their kernels and test them: once a run, and part of no proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) opened_ms: Option<f64>,
}

impl fmt::Display for DeviceUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requested,
            used,
            reason,
            threads,
            opened_ms,
        } = self;
        write!(
            f,
            "{used}, {threads} threads (--device {requested}: {reason})"
        )?;
        match opened_ms {
            Some(ms) => write!(f, ", opened and tested in {ms:.0} ms"),
            None => Ok(()),
        }
    }
}

impl DeviceUsed {
    /// The CPU proves instead, because of this failure.
    pub(crate) fn fall_back(&mut self, failure: &Failure) {
        self.reason = format!("{} failed: {failure}", self.used);
        self.used = "cpu".to_owned();
        tracing::warn!("{}; proving on the CPU", self.reason);
    }
}

/// What may prove, before it is known how large the circuit is.
#[derive(Debug)]
pub(crate) struct Taken {
    requested: String,
    threads: usize,
    vram_limit: Option<u64>,
    prospect: Prospect,
    /// Of the GPUs that have been opened.
    opened_ms: Option<f64>,
}

#[derive(Debug)]
enum Prospect {
    /// The CPU, and why.
    Cpu(String),
    /// The GPUs that were asked for.
    Gpus(Vec<Gpu>),
    /// A GPU that is there and not opened yet.
    Maybe(DeviceInfo),
}

/// Starts the threads and takes a device. The only place that asks for GPUs to prove on, once.
pub(crate) fn take(resources: &ResourceArgs) -> Result<Taken, Failure> {
    let (choice, vram_limit) = (&resources.device, resources.vram_limit);
    // First: the self-test of a GPU computes on the host as well, and would start threads of its own.
    let threads = start_threads(resources.threads)?;
    let mut opened_ms = None;
    let prospect = match &choice.wanted {
        Wanted::Cpu => Prospect::Cpu("as asked".to_owned()),
        Wanted::Auto => match find(None) {
            Ok(info) => Prospect::Maybe(info),
            Err(why) => Prospect::Cpu(format!("no GPU: {why}")),
        },
        wanted => {
            let unusable = |why: String| {
                Failure::Device(format!("no usable device for --device {choice}: {why}"))
            };
            let infos = match wanted {
                Wanted::Cuda(selector) => find(selector.as_ref()).map(|info| vec![info]),
                _ => cuzk_gpu_mem::list(),
            };
            let infos = infos.map_err(|why| unusable(why.to_string()))?;
            let begun = Instant::now();
            let gpus = infos.iter().map(|info| {
                open(info, vram_limit).map_err(|why| match why {
                    Unopened::TooLittleMemory(why) => Failure::OutOfMemory(why),
                    Unopened::Unusable(why) => unusable(why),
                })
            });
            let gpus = gpus.collect::<Result<_, _>>()?;
            opened_ms = Some(millis(begun.elapsed()));
            Prospect::Gpus(gpus)
        }
    };
    Ok(Taken {
        requested: choice.to_string(),
        threads,
        vram_limit,
        prospect,
        opened_ms,
    })
}

impl Taken {
    /// GPUs that were asked for by name.
    #[cfg(test)]
    pub(crate) fn of_gpus(gpus: Vec<Gpu>) -> Self {
        Self {
            requested: "cuda".to_owned(),
            threads: 1,
            vram_limit: None,
            prospect: Prospect::Gpus(gpus),
            opened_ms: None,
        }
    }

    /// Host threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether a GPU was asked for by name, so that nothing else will do.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.prospect, Prospect::Gpus(_))
    }

    /// What can be had of the memory of the GPUs that were asked for by name: the least of them.
    pub(crate) fn usable_bytes(&self) -> Option<u64> {
        let Prospect::Gpus(gpus) = &self.prospect else {
            return None;
        };
        gpus.iter()
            .map(|gpu| gpu.device().usable().unwrap_or(0))
            .min()
    }

    /// Whether a GPU is there that would prove a circuit of this domain, if it works.
    pub(crate) fn has_gpu_for(&self, domain_size: u64) -> bool {
        match self.prospect {
            Prospect::Cpu(_) => false,
            Prospect::Gpus(_) => true,
            Prospect::Maybe(_) => domain_size >= WORTH_A_GPU as u64,
        }
    }

    /// What proves a circuit of this domain: the CPU where there is no GPU.
    pub(crate) fn settle(self, domain_size: usize) -> (DeviceUsed, Vec<Gpu>) {
        self.settle_worth(domain_size, WORTH_A_GPU)
    }

    /// What works on a circuit of this domain, where a GPU is worth its start from `least` rows on.
    pub(crate) fn settle_worth(self, domain_size: usize, least: usize) -> (DeviceUsed, Vec<Gpu>) {
        let mut opened_ms = self.opened_ms;
        let (gpus, reason) = match self.prospect {
            Prospect::Cpu(reason) => (Vec::new(), reason),
            Prospect::Gpus(gpus) => (gpus, "as asked".to_owned()),
            Prospect::Maybe(info) if domain_size < least => {
                let reason = format!(
                    "GPU {} ({}) is there, but a circuit of {domain_size} rows is done sooner \
                     than a GPU is opened",
                    info.ordinal, info.name
                );
                (Vec::new(), reason)
            }
            Prospect::Maybe(info) => {
                let begun = Instant::now();
                match open(&info, self.vram_limit) {
                    Ok(gpu) => {
                        opened_ms = Some(millis(begun.elapsed()));
                        (vec![gpu], format!("{} works", info.name))
                    }
                    Err(why) => (Vec::new(), format!("{why} (so it is not used)")),
                }
            }
        };
        let used = match gpus.len() {
            0 => "cpu".to_owned(),
            _ => gpus.iter().map(name_of).collect::<Vec<_>>().join(", "),
        };
        let device = DeviceUsed {
            requested: self.requested,
            used,
            reason,
            threads: self.threads,
            opened_ms,
        };
        tracing::info!("working on {device}");
        (device, gpus)
    }
}

/// What `--device` takes it by.
pub(crate) fn name_of(gpu: &Gpu) -> String {
    format!("cuda:{}", gpu.device().info().ordinal)
}

/// Rows from which on a GPU is worth its start, some 0.3 s of driver and self-test.
const WORTH_A_GPU: usize = 1 << 14;

/// The GPU named, or the first. Opens none.
fn find(selector: Option<&Selector>) -> Result<DeviceInfo, Unavailable> {
    let first = Selector::Ordinal(0);
    selector.unwrap_or(&first).pick(&cuzk_gpu_mem::list()?)
}

/// Why a GPU that is there was not opened.
#[derive(Debug, thiserror::Error)]
enum Unopened {
    /// Its memory, or the limit set for it, does not suffice for the self-test.
    #[error("{0}")]
    TooLittleMemory(String),
    /// Anything else.
    #[error("{0}")]
    Unusable(String),
}

/// Opens a GPU, loads the kernels and tests it.
fn open(info: &DeviceInfo, vram_limit: Option<u64>) -> Result<Gpu, Unopened> {
    let settings = Settings {
        limit: vram_limit,
        ..Settings::default()
    };
    Device::open(&Selector::Ordinal(info.ordinal), settings)
        .map_err(cuzk_groth16::device::Error::from)
        .and_then(|device| Gpu::new(&device))
        .map_err(|error| {
            let name = format!("GPU {} ({})", info.ordinal, info.name);
            unopened(&name, vram_limit, &error)
        })
}

fn unopened(name: &str, vram_limit: Option<u64>, error: &cuzk_groth16::device::Error) -> Unopened {
    use cuzk_groth16::device::Error;
    match (error, vram_limit) {
        (Error::Memory(Memory::OutOfMemory(_)), Some(limit)) => Unopened::TooLittleMemory(format!(
            "{name}: a limit of {} (--vram-limit) is too small for its self-test, let alone a proof: {error}",
            Bytes(limit)
        )),
        (Error::Memory(Memory::OutOfMemory(_)), None) => Unopened::TooLittleMemory(format!(
            "{name}: there is too little memory for its self-test, let alone a proof: {error}"
        )),
        _ => Unopened::Unusable(format!("{name}: {error}")),
    }
}

/// Starts the threads, and says how many.
pub(crate) fn start_threads(threads: Option<u16>) -> Result<usize, Failure> {
    // Always a number of our own: without one rayon takes RAYON_NUM_THREADS, whatever it says.
    let threads = threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    rayon::ThreadPoolBuilder::new()
        .thread_name(|i| format!("cuzk-{i}"))
        .num_threads(threads)
        .build_global()
        .map_err(|error| Failure::System(std::io::Error::other(error)))?;
    Ok(rayon::current_num_threads())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use cuzk_gpu_mem::driver::SimDriver;

    #[test]
    fn a_limit_below_the_self_test_is_out_of_memory() {
        let settings = Settings {
            limit: Some(1 << 10),
            ..Settings::default()
        };
        let driver = Arc::new(SimDriver::new(1 << 30));
        let device = Device::with_driver(driver, settings).unwrap();
        let stream = device.stream("test").unwrap();
        let error = device
            .alloc::<u8>("self-test", 1 << 20, &stream)
            .unwrap_err();
        let error = unopened("GPU 0 (H)", Some(1 << 10), &error.into());
        let Unopened::TooLittleMemory(text) = error else {
            panic!("{error}");
        };
        assert!(
            text.contains("a limit of 1 KiB (--vram-limit) is too small"),
            "{text}"
        );
    }

    /// PF-10: what is paid once a run is not in the time of a proof.
    #[test]
    fn the_time_to_open_a_gpu_is_told_apart() {
        let mut device = DeviceUsed {
            requested: "auto".to_owned(),
            used: "cuda:0".to_owned(),
            reason: "it works".to_owned(),
            threads: 8,
            opened_ms: Some(351.6),
        };
        let text = "cuda:0, 8 threads (--device auto: it works), opened and tested in 352 ms";
        assert_eq!(device.to_string(), text);
        assert_eq!(serde_json::to_value(&device).unwrap()["opened_ms"], 351.6);
        device.opened_ms = None;
        assert_eq!(
            device.to_string(),
            "cuda:0, 8 threads (--device auto: it works)"
        );
        let json = serde_json::to_value(&device).unwrap();
        assert!(json.get("opened_ms").is_none());
    }

    #[test]
    fn devices_are_named_as_documented() {
        for text in [
            "auto",
            "cpu",
            "cuda",
            "cuda:0",
            "cuda:12",
            "cuda:all",
            "cuda:GPU-5a0f3d2e-0b1c",
            "cuda:MIG-8f6c",
            "cuda:0000:3b:00.0",
        ] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "gpu",
            "cuda:",
            "cuda:-1",
            "cuda:GPU-",
            "CPU",
            "cpu:0",
            "cuda:x y",
        ] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }
}
