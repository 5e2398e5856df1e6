//! `cuzk devices`.

use serde_json::json;

use crate::args::DevicesArgs;
use crate::device::NO_GPU;
use crate::exit::Failure;
use crate::memory;
use crate::report::{Lines, Outcome};
use crate::sizes::Bytes;

/// Runs the command.
#[expect(clippy::unnecessary_wraps, reason = "as every command")]
pub(crate) fn run(_args: &DevicesArgs) -> Result<Outcome, Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = memory::host_bytes();
    let model = cpu_model();
    let (total, available) = (memory.map(|m| m.0), memory.map(|m| m.1));
    let json = json!({
        "command": "devices",
        "version": env!("CARGO_PKG_VERSION"),
        "devices": [{
            "device": "cpu",
            "model": model,
            "threads": threads,
            "total_bytes": total,
            "available_bytes": available,
        }],
        "gpu": { "usable": false, "reason": NO_GPU },
    });
    let mut lines = Lines::default();
    let model = model.map_or_else(String::new, |model| format!(", {model}"));
    let memory = memory.map_or_else(String::new, |(total, available)| {
        format!(", {} memory, {} available", Bytes(total), Bytes(available))
    });
    lines.line("cpu", format_args!("{threads} threads{memory}{model}"));
    lines.line("gpu", format_args!("none: {NO_GPU}"));
    Ok(Outcome::success(json, lines.finish()))
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
