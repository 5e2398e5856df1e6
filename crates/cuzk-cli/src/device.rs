//! Which device proves.

use std::fmt;
use std::str::FromStr;

use cuzk_gpu_mem::{DeviceInfo, Selector, Unavailable};
use serde::Serialize;

use crate::exit::Failure;

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
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = match text {
            "auto" => Wanted::Auto,
            "cpu" => Wanted::Cpu,
            "cuda" => Wanted::Cuda(None),
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
    pub(crate) used: &'static str,
    /// Why.
    pub(crate) reason: String,
    /// Host threads.
    pub(crate) threads: usize,
}

/// Why a GPU that works is not used.
pub(crate) const NOT_YET: &str = "proving on a GPU is not in this build yet";

/// Takes a device, and starts the threads. The only place that asks for GPUs to prove on, once.
pub(crate) fn take(choice: &DeviceChoice, threads: Option<u16>) -> Result<DeviceUsed, Failure> {
    let reason = match &choice.wanted {
        Wanted::Cpu => "as asked".to_owned(),
        Wanted::Auto => match find(None) {
            Ok(info) => unused(&info),
            Err(why) => format!("no GPU: {why}"),
        },
        Wanted::Cuda(selector) => {
            let why = match find(selector.as_ref()) {
                Ok(info) => format!(
                    "{}; use --device cpu, or auto to take whatever there is",
                    unused(&info)
                ),
                Err(why) => why.to_string(),
            };
            return Err(Failure::Device(format!(
                "no usable device for --device {choice}: {why}"
            )));
        }
    };
    let threads = start_threads(threads)?;
    tracing::info!("proving on the CPU, {threads} threads: {reason}");
    Ok(DeviceUsed {
        requested: choice.to_string(),
        used: "cpu",
        reason,
        threads,
    })
}

/// The GPU named, or the first. Opens none.
fn find(selector: Option<&Selector>) -> Result<DeviceInfo, Unavailable> {
    let first = Selector::Ordinal(0);
    selector.unwrap_or(&first).pick(&cuzk_gpu_mem::list()?)
}

fn unused(info: &DeviceInfo) -> String {
    format!(
        "GPU {} ({}) is there, but {NOT_YET}",
        info.ordinal, info.name
    )
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

    #[test]
    fn devices_are_named_as_documented() {
        for text in [
            "auto",
            "cpu",
            "cuda",
            "cuda:0",
            "cuda:12",
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
