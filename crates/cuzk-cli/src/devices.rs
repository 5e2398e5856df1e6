//! `cuzk devices`.

use std::time::Instant;

use cuzk_gpu_mem::{Bytes, Device, DeviceInfo, Selector, Settings};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::DevicesArgs;
use crate::exit::{self, Exit, Failure};
use crate::memory;
use crate::report::{Lines, Outcome};

/// Runs the command.
pub(crate) fn run(args: &DevicesArgs) -> Result<Outcome, Failure> {
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
    let mut exit = Exit::Success;
    let reason = match cuzk_gpu_mem::list() {
        Ok(gpus) => {
            for gpu in &gpus {
                let mut entry = to_json(gpu);
                lines.line("gpu", gpu);
                if args.self_test {
                    match self_test(gpu) {
                        Ok(tested) => {
                            lines.line(
                                "self-test",
                                format_args!(
                                    "passed: {} parts, {} results, {:.1} ms",
                                    tested.parts, tested.results, tested.ms
                                ),
                            );
                            entry["self_test"] = json!(tested);
                        }
                        Err(why) => {
                            exit::say(&format!("GPU {} ({}): {why}", gpu.ordinal, gpu.name));
                            exit = Exit::NoDevice;
                            lines.line("self-test", format_args!("failed: {why}"));
                            entry["self_test"] = json!({ "error": why.to_string() });
                        }
                    }
                }
                devices.push(entry);
            }
            None
        }
        Err(why) if args.self_test => {
            return Err(Failure::Device(format!("no GPU to test: {why}")));
        }
        Err(why) => {
            lines.line("gpu", format_args!("none: {why}"));
            Some(why.to_string())
        }
    };
    let json = json!({
        "command": "devices",
        "version": env!("CARGO_PKG_VERSION"),
        "devices": devices,
        "gpu": { "found": reason.is_none(), "reason": reason },
    });
    Ok(Outcome {
        json,
        text: lines.finish(),
        exit,
    })
}

/// What a self-test did.
#[derive(Serialize, Debug)]
struct Tested {
    parts: usize,
    results: usize,
    /// Loading of the kernels included.
    ms: f64,
}

fn self_test(gpu: &DeviceInfo) -> cuzk_groth16::device::Result<Tested> {
    let started = Instant::now();
    let device = Device::open(&Selector::Ordinal(gpu.ordinal), Settings::default())?;
    let launcher = cuzk_kernels::open(&device)?;
    let tested = cuzk_groth16::device::self_test(&*launcher)?;
    Ok(Tested {
        parts: tested.passed.len(),
        results: tested.passed.iter().map(|(_, results)| results).sum(),
        ms: started.elapsed().as_secs_f64() * 1e3,
    })
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
