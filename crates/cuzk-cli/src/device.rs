//! Which device proves.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::exit::Failure;

/// `--device`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DeviceChoice {
    /// A GPU if one works, else the CPU.
    Auto,
    /// The CPU; nothing else is touched.
    Cpu,
    /// A GPU, the one named if one is.
    Cuda(Option<String>),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            _ => match text.strip_prefix("cuda:") {
                Some(name) if is_device_name(name) => Ok(Self::Cuda(Some(name.to_owned()))),
                _ => Err("a device is auto, cpu, cuda, cuda:N or cuda:UUID".into()),
            },
        }
    }
}

/// A number, or a UUID as the driver prints it, in full or in part.
fn is_device_name(name: &str) -> bool {
    let is_uuid = name.starts_with("GPU-") || name.starts_with("MIG-");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '/';
    name.parse::<u32>().is_ok() || (is_uuid && name.len() > 4 && name.chars().all(is_plain))
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(name)) => write!(f, "cuda:{name}"),
        }
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
    pub(crate) reason: &'static str,
    /// Host threads.
    pub(crate) threads: usize,
}

/// Why no GPU is used.
pub(crate) const NO_GPU: &str = "this build of cuzk proves on the CPU only";

/// Takes a device, and starts the threads.
pub(crate) fn take(choice: &DeviceChoice, threads: Option<u16>) -> Result<DeviceUsed, Failure> {
    let reason = match choice {
        DeviceChoice::Auto => NO_GPU,
        DeviceChoice::Cpu => "as asked",
        DeviceChoice::Cuda(_) => {
            return Err(Failure::Device(format!(
                "no usable device for --device {choice}: {NO_GPU}; use --device cpu, or auto to \
                 take whatever there is"
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

fn start_threads(threads: Option<u16>) -> Result<usize, Failure> {
    let mut builder = rayon::ThreadPoolBuilder::new().thread_name(|i| format!("cuzk-{i}"));
    if let Some(threads) = threads {
        builder = builder.num_threads(usize::from(threads));
    }
    builder
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
