//! `cuzk devices`.

use cuzk_gpu_mem::{Bytes, DeviceInfo};
use serde_json::{Value, json};

use crate::args::DevicesArgs;
use crate::device::NOT_YET;
use crate::exit::Failure;
use crate::memory;
use crate::report::{Lines, Outcome};

/// Runs the command.
#[expect(clippy::unnecessary_wraps, reason = "as every command")]
pub(crate) fn run(_args: &DevicesArgs) -> Result<Outcome, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = memory::host_bytes();
    let model = cpu_model();
    let (total, available) = (memory.map(|m| m.0), memory.map(|m| m.1));
    let mut devices = vec![json!({
        "device": "cpu",
        "model": model,
        "threads": threads,
        "total_bytes": total,
        "available_bytes": available,
    })];
    let mut lines = Lines::default();
    let model = model.map_or_else(String::new, |model| format!(", {model}"));
    let memory = memory.map_or_else(String::new, |(total, available)| {
        format!(", {} memory, {} available", Bytes(total), Bytes(available))
    });
    lines.line("cpu", format_args!("{threads} threads{memory}{model}"));
    let reason = match cuzk_gpu_mem::list() {
        Ok(gpus) => {
            for gpu in &gpus {
                devices.push(to_json(gpu));
                lines.line("gpu", gpu);
            }
            lines.line("gpu use", NOT_YET);
            NOT_YET.to_owned()
        }
        Err(why) => {
            lines.line("gpu", format_args!("none: {why}"));
            why.to_string()
        }
    };
    let json = json!({
        "command": "devices",
        "version": env!("CARGO_PKG_VERSION"),
        "devices": devices,
        "gpu": { "usable": false, "reason": reason },
    });
    Ok(Outcome::success(json, lines.finish()))
}

fn to_json(gpu: &DeviceInfo) -> Value {
    let version = gpu.driver_version;
    json!({
        "device": format!("cuda:{}", gpu.ordinal),
        "model": gpu.name,
        "uuid": format!("GPU-{}", gpu.uuid),
        "pci": gpu.pci.to_string(),
        "compute_capability": gpu.capability.to_string(),
        "multiprocessors": gpu.multiprocessors,
        "total_bytes": gpu.total_bytes,
        "driver_cuda": format!("{}.{}", version / 1000, version % 1000 / 10),
    })
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
